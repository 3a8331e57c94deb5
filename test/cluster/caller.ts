// One attempt of an operation over one member, and what it tells: answered, surely not done, or
// nobody knows. What an answer means is CONTRACT 1.13 and PROTOCOL 4.1 (429, 503, 507: nothing was
// done; 504 and a lost connection: nobody knows).

import type { Answer, RuntimeCall } from '../harness/node-process.ts'
import { positionOf } from './operation-history.ts'
import type { Attempt, Operation, Outcome, Shown } from './operation-history.ts'

/** A member as clients see it. */
export interface Door {
  readonly name: string
  ask(path: string, ask: RuntimeCall): Promise<Answer>
}

export interface Sending {
  readonly path: string
  readonly body: unknown
  readonly key: string | null
}

/** What surely was not done, though nothing was wrong with it. */
const NOTHING_DONE = new Set([413, 429, 503, 507])

export class Caller {
  readonly #now: () => number
  readonly #patienceMs: number
  /** Answers that no request should get: 500s, refused tokens. */
  readonly strange: string[] = []

  constructor(now: () => number, patienceMs: number) {
    this.#now = now
    this.#patienceMs = patienceMs
  }

  async send(door: Door, operation: Operation, { path, body, key }: Sending): Promise<void> {
    const sentAt = this.#now()
    const { token, op } = operation
    const headers = {
      ...(key === null ? {} : { 'Idempotency-Key': key }),
      ...(op === 'graph' && token !== null ? { 'X-Consistency': token } : {}),
    }
    try {
      const answer = await door.ask(path, { body, headers, timeoutMs: this.#patienceMs })
      const outcome = outcomeOf(answer)
      this.#attempted(operation, { door, sentAt, outcome, how: howOf(answer) })
      if (outcome === 'ok') this.#answered(operation, answer)
      this.#watch(answer, door, operation)
    } catch (error) {
      const how = (error as NodeJS.ErrnoException).code ?? (error as Error).name
      // Nobody was there to hear it.
      const outcome = how === 'ECONNREFUSED' ? 'fail' : 'info'
      this.#attempted(operation, { door, sentAt, outcome, how })
    }
    settle(operation, this.#now())
  }

  #attempted(
    operation: Operation,
    { door, sentAt, ...rest }: Pick<Attempt, 'sentAt' | 'outcome' | 'how'> & { door: Door },
  ): void {
    const tookMs = Math.round(this.#now() - sentAt)
    operation.attempts.push({ member: door.name, sentAt, tookMs, ...rest })
  }

  #answered(operation: Operation, answer: Answer): void {
    const said = `${answer.status} ${lasting(answer)}`
    if (operation.outcome === 'ok') {
      if (operation.key !== null && said !== operation.answer) operation.otherAnswers.push(said)
      return
    }
    operation.outcome = 'ok'
    operation.returnedAt = this.#now()
    operation.status = answer.status
    operation.rejected = answer.status !== 200
    operation.answer = said
    if (operation.rejected) return
    if (operation.op === 'create') operation.pid = idOf(answer)
    if (operation.op === 'graph') {
      operation.shown = shownOf(answer.json<{ orders: RawOrder[] }>().orders[0] ?? null)
      return
    }
    if (operation.op === 'read') operation.shown = shownOf(answer.json<{ data: RawOrder }>().data)
    const token = answer.headers['x-consistency']
    if (typeof token !== 'string') return
    operation.token = token
    Object.assign(operation, positionOf(token))
  }

  #watch({ status, text }: Answer, { name }: Door, { id, op }: Operation): void {
    if (status !== 500 && status !== 401 && status !== 403 && status !== 400) return
    if (this.strange.length < 50) {
      this.strange.push(`operation ${id} (${op}) over ${name}: ${status} ${text.slice(0, 300)}`)
    }
  }
}

function outcomeOf({ status }: Answer): Outcome {
  if (NOTHING_DONE.has(status)) return 'fail'
  return status < 500 ? 'ok' : 'info'
}

/** `200`, or the status and the code of what is wrong: `503 INDEX_BEHIND`. */
function howOf({ status, text }: Answer): string {
  if (status === 200) return '200'
  return `${status} ${/"code":"([A-Z_]+)"/.exec(text)?.[1] ?? ''}`.trimEnd()
}

/** Only when every attempt was refused did it surely not happen. */
function settle(operation: Operation, nowAt: number): void {
  if (operation.outcome === 'ok') return
  const isRefused = operation.attempts.every(({ outcome }) => outcome === 'fail')
  operation.outcome = isRefused ? 'fail' : 'info'
  operation.returnedAt = isRefused ? nowAt : null
}

/** An answer without the id of its request. */
function lasting({ text }: Answer): string {
  return text.replace(/,"requestId":"[^"]*"/, '')
}

function idOf(answer: Answer): string {
  return answer.json<{ data: { orderId: string } }>().data.orderId
}

interface RawOrder {
  readonly orderNumber: string
  readonly orderTotal: number
  readonly orderLines: readonly { productNumber: string; orderLineTotal: number }[]
}

export function shownOf(order: RawOrder | null): Shown | null {
  if (order === null) return null
  const { orderNumber, orderTotal, orderLines } = order
  return {
    orderNumber,
    orderTotal,
    marks: orderLines.map(({ productNumber }) => productNumber),
    lineTotals: orderLines.map(({ orderLineTotal }) => orderLineTotal),
  }
}

export type { RawOrder }
