// Plays the asks of order decisions for tests: a small world of one order, with keys, numbers,
// checkpoints and rules, and the invariants that every decision must keep. It takes the runtime's
// place in the tests of this folder.

import t from 'tap'
import type {
  ActorRecord,
  RuntimeCall,
  Decision,
  NodeDoc,
  Turn,
} from '../../../protocol/behaviour.ts'
import { checkpointId, turnIds } from '../../../protocol/checkpoint.ts'
import type { ErrorItem } from '../../../protocol/errors.ts'
import type { ChannelView } from '../channels.ts'
import type { Completion } from '../completion.ts'
import { orderBehaviour } from '../order.ts'
import type { OrderState } from '../state/state.ts'

export interface DriverOptions {
  readonly channels?: ChannelView
  readonly completion?: Completion
  /** Keys that other orders have, as `keyType/key`. */
  readonly taken?: readonly string[]
  /** Effects that the rules of a hook answer. */
  readonly rules?: Readonly<Record<string, (payload: Payload) => readonly unknown[]>>
  readonly orderId?: string
}

export type Payload = Readonly<Record<string, unknown>>
type Refusal = { readonly ok: false; readonly errors: readonly ErrorItem[] }
export type Answer =
  | { readonly ok: true; readonly data: unknown; readonly records: readonly ActorRecord[] }
  | Refusal

interface Committed {
  readonly messageId: string
  readonly timeMs: number
  readonly records: readonly ActorRecord[]
}

export const ORDER_ID = '0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b'
export const START_MS = Date.UTC(2026, 0, 31, 12)

/** One order and its world. */
export class OrderDriver {
  readonly behaviour
  readonly orderId: string
  state: OrderState | null = null
  readonly entries: Committed[] = []
  readonly asks: RuntimeCall[] = []
  readonly effects: unknown[] = []
  nowMs = START_MS
  #messages = 0
  #version = 0
  readonly #options: DriverOptions
  readonly #counters = new Map<string, number>()

  constructor(options: DriverOptions = {}) {
    this.#options = options
    this.behaviour = orderBehaviour(options.channels, options.completion)
    this.orderId = options.orderId ?? ORDER_ID
  }

  /** Its natural keys, `keyType/key`. */
  get naturalKeys(): readonly string[] {
    return this.behaviour.naturalKeys(this.state!).map(({ keyType, key }) => `${keyType}/${key}`)
  }

  /** Sends one message as the runtime would; a second passes between messages. */
  send(type: string, body: unknown = {}): Answer {
    const problems = this.behaviour.check({ type, body })
    if (problems !== null) return { ok: false, errors: problems }
    this.nowMs += 1_000
    const before = this.state === null ? null : JSON.stringify(this.snapshot())
    const turn = this.#turn()
    const decision = this.#play(this.behaviour.decide(this.state, { type, body }, turn))
    if (before !== null && JSON.stringify(this.snapshot()) !== before) {
      throw new Error(`${type} changed the state that it was given`)
    }
    if (!decision.ok) return decision
    if (decision.records.length > 0) this.#commit(decision, turn)
    return { ok: true, data: decision.data, records: decision.records }
  }

  /** Sends a create with the usual body. */
  create(commands: readonly unknown[] = [], body: Payload = {}): Answer {
    return this.send('create', { currencyCode: 'EUR', taxIncluded: true, ...body, commands })
  }

  apply(...commands: readonly unknown[]): Answer {
    return this.send('applyCommands', { commands })
  }

  /** The same, where a refusal is the test's mistake. */
  do(...commands: readonly unknown[]): readonly ActorRecord[] {
    const answer = this.apply(...commands)
    if (!answer.ok) throw new Error(JSON.stringify(answer.errors))
    return answer.records
  }

  /** The error of a batch that must be refused, and must change nothing. */
  refusal(...commands: readonly unknown[]): ErrorItem {
    const before = JSON.stringify(this.snapshot())
    const answer = this.apply(...commands)
    if (answer.ok) throw new Error('the commands were not refused')
    t.equal(JSON.stringify(this.snapshot()), before, 'a refused batch changes nothing')
    return answer.errors[0]!
  }

  snapshot(): unknown {
    return this.behaviour.toSnapshot(this.state!)
  }

  doc(node: string, nodeId: string = this.orderId): Readonly<Record<string, unknown>> {
    const found = this.behaviour.project(this.state!, { node, id: nodeId })
    if (found === null) throw new Error(`there is no ${node} ${nodeId}`)
    return found.doc
  }

  docs(node: string): readonly Readonly<Record<string, unknown>>[] {
    const refs = this.behaviour.nodes(this.state!).filter((ref) => ref.node === node)
    return refs.map((ref) => this.doc(node, ref.id))
  }

  /** Journal and activity entries, oldest first. */
  history(): NodeDoc[] {
    let version = 0
    return this.entries.flatMap(({ records, messageId, timeMs }) =>
      records.flatMap((record) => {
        version++
        const meta = { actorId: this.orderId, version, timeMs, by: 'tester', messageId }
        return this.behaviour.history(record, meta)
      }),
    )
  }

  checkpoints(): string[] {
    return this.entries.map(({ messageId, timeMs }) =>
      checkpointId(this.orderId, messageId, timeMs),
    )
  }

  /** The state after the first `count` messages that committed something. */
  replay(count = this.entries.length): OrderState | null {
    let state: OrderState | null = null
    let version = 0
    for (const { records, messageId, timeMs } of this.entries.slice(0, count)) {
      for (const record of structuredClone(records)) {
        version++
        const meta = { actorId: this.orderId, version, timeMs, by: 'tester', messageId }
        state = this.behaviour.evolve(state, record, meta)
      }
    }
    return state
  }

  #turn(): Turn {
    const messageId = `message-${++this.#messages}`
    return {
      actorId: this.orderId,
      key: null,
      nowMs: this.nowMs,
      by: 'tester',
      messageId,
      version: this.#version,
      preview: false,
      newId: turnIds(messageId, this.#version, this.nowMs),
      hooks: { has: (hook) => this.#options.rules?.[hook] !== undefined },
    }
  }

  #play(deciding: Generator<RuntimeCall, Decision<OrderState>, unknown>): Decision<OrderState> {
    let step = deciding.next()
    while (!step.done) {
      this.asks.push(step.value)
      step = deciding.next(this.#answer(step.value))
    }
    return step.value
  }

  #answer(call: RuntimeCall): unknown {
    switch (call.call) {
      case 'configuration':
        throw new Error('an order asks for no configuration')
      case 'reserve':
        return !(this.#options.taken ?? []).includes(`${call.keyType}/${call.key}`)
      case 'number': {
        const next = (this.#counters.get(call.prefix) ?? 0) + 1
        this.#counters.set(call.prefix, next)
        return `${call.prefix}${next}`
      }
      case 'effects':
        return structuredClone(this.#options.rules![call.hook]!(call.payload as Payload))
      case 'checkpoints':
        return this.checkpoints()
      case 'state-at': {
        const at = this.checkpoints().indexOf(call.checkpointId)
        return at === -1 ? null : this.replay(at + 1)
      }
      case 'query':
        return this.behaviour.project(call.state as OrderState, { node: 'order', id: this.orderId })
          ?.doc
    }
  }

  #commit(decision: Decision<OrderState> & { ok: true }, turn: Turn): void {
    const { records } = decision
    this.entries.push({ messageId: turn.messageId, timeMs: turn.nowMs, records })
    this.#version += records.length
    this.state = decision.state
    this.effects.push(...(decision.effects ?? []))
  }
}

/** A UUID of a small number, for children in tests. */
export function id(n: number): string {
  return `00000000-0000-7000-8000-${n.toString().padStart(12, '0')}`
}
