// The history of a run against real processes: every operation of every client, from its invocation
// to what its client has come to know of it, and as lines of JSON for a person or a tool. The
// workload writes it; the checkers see nothing else of the clients. Source: PROTOCOL 4.1.

/** `repeat` sends an earlier operation again under its key, `other-body` another one. */
export type OperationKind =
  | 'create'
  | 'mark'
  | 'reject'
  | 'preview'
  | 'read'
  | 'graph'
  | 'repeat'
  | 'other-body'

/**
 * What a client knows. `ok`: it was answered (a rejection is an answer). `fail`: it surely did not
 * happen. `info`: nobody knows.
 */
export type Outcome = 'ok' | 'fail' | 'info'

/** One time that a request was sent. */
export interface Attempt {
  readonly member: string
  readonly sentAt: number
  readonly tookMs: number
  readonly outcome: Outcome
  /** `200`, status and code of what is wrong, or the code of the connection's error. */
  readonly how: string
}

/** An order as somebody was shown it. */
export interface Shown {
  readonly orderNumber: string
  readonly orderTotal: number
  /** Marks in the order of their lines. */
  readonly marks: readonly string[]
  readonly lineTotals: readonly number[]
}

/** Times are milliseconds since the run began, on one monotonic clock. */
export interface Operation {
  readonly id: number
  readonly process: string
  readonly op: OperationKind
  /** The order: its UUID once it is known, else its number. */
  pid: string
  readonly orderNumber: string
  /** What it leaves in the order; several are a batch. */
  readonly marks: readonly string[]
  readonly key: string | null
  /** Of a repeat: the operation that it repeats. */
  readonly of: number | null
  readonly invokedAt: number
  /** null: open, or nobody knows. */
  returnedAt: number | null
  outcome: Outcome
  /** It was answered: nothing of this was done. */
  rejected: boolean
  status: number
  /** Of an answer what every repeat must get too. */
  answer: string
  readonly attempts: Attempt[]
  shard: number | null
  offset: number | null
  /** X-Consistency: of a graph request the one sent, of any other the one received. */
  token: string | null
  /** What a read or a graph request was shown; null: nothing, or no order. */
  shown: Shown | null
  /** Answers to repeats of the same body that differ from the first. */
  readonly otherAnswers: string[]
}

export type Begin = Pick<Operation, 'process' | 'op' | 'pid' | 'orderNumber'> &
  Partial<Pick<Operation, 'marks' | 'key' | 'of' | 'token'>>

export class OperationHistory {
  readonly operations: Operation[] = []
  readonly #now: () => number

  /** `now`: milliseconds since the run began. */
  constructor(now: () => number) {
    this.#now = now
  }

  begin(what: Begin): Operation {
    const operation: Operation = {
      marks: [],
      key: null,
      of: null,
      token: null,
      ...what,
      id: this.operations.length,
      invokedAt: this.#now(),
      returnedAt: null,
      outcome: 'info',
      rejected: false,
      status: 0,
      answer: '',
      attempts: [],
      shard: null,
      offset: null,
      shown: null,
      otherAnswers: [],
    }
    this.operations.push(operation)
    return operation
  }

  /** One line of JSON an operation. */
  lines(): string {
    return this.operations.map((operation) => `${JSON.stringify(operation)}\n`).join('')
  }
}

/** Shard and offset inside an X-Consistency token: opaque to callers, but not to this suite. */
export function positionOf(token: string): { shard: number; offset: number } | null {
  const text = Buffer.from(token, 'base64url').toString('latin1')
  const [, shard, offset] = /^[^.]*\.[^.]*\.(-?\d+):(\d+)\./.exec(text) ?? []
  return shard === undefined ? null : { shard: Number(shard), offset: Number(offset) }
}
