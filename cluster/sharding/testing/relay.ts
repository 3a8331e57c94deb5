// An outbox alone on a gate, for tests of when its effects leave: what is committed, what becomes
// of an append and what each envelope is answered, is up to the test.

import type { Effect } from '../../../protocol/behaviour.ts'
import { errorItem } from '../../../protocol/errors.ts'
import type { Entry } from '../../../protocol/entry/entry.ts'
import type { Envelope, WireReply } from '../../../protocol/message.ts'
import { TestClock } from '../../testing/harness.ts'
import { ledger } from '../../testing/ledger.ts'
import type { Joining, ShardState } from '../core.ts'
import { OutputGate } from '../commit/output-gate.ts'
import { Outbox } from '../commit/outbox.ts'

export const NOBODY = refusal('NOT_FOUND')
export const AWAY = refusal('UNAVAILABLE')

function refusal(code: 'NOT_FOUND' | 'UNAVAILABLE'): WireReply {
  return { outcome: 'refused', error: errorItem(code, 'as the test says') }
}

/** What a target answers that has taken its message, or a key that leads to that actor. */
export function answered(actorId: string): WireReply {
  return { outcome: 'answered', actorId, keys: [], results: [], position: null }
}

export interface Sent {
  readonly envelope: Envelope
  readonly respond: (reply: WireReply) => void
}

/** An effect to a ledger, by its id `#x` or by its number. */
export function effect(to: string, token = ''): Effect {
  const address = to.startsWith('#')
    ? { type: 'ledger', id: to.slice(1) }
    : { type: 'ledger', key: to }
  return { to: address, messages: [{ type: 'append', body: { token } }] }
}

/** Where an envelope goes, as `effect` says it. */
export function targetOf({ envelope: { to } }: Sent): string {
  return 'key' in to ? to.key : `#${to.id}`
}

export class Relay {
  readonly clock = new TestClock()
  readonly gate = new OutputGate(0)
  readonly outbox: Outbox
  state: ShardState = 'serving'
  /** Envelopes that nobody has answered yet, oldest first. */
  readonly open: Sent[] = []
  /** Where all envelopes so far have gone. */
  readonly sent: string[] = []
  /** Committed entries by their offsets. */
  readonly log = new Map<number, Entry>()

  constructor(begins = true) {
    const send = (envelope: Envelope, respond: Sent['respond']): void => {
      this.open.push({ envelope, respond })
      this.sent.push(targetOf(this.open.at(-1)!))
    }
    const stateNow = () => this.state
    const shard = {
      number: 0,
      get state() {
        return stateNow()
      },
      context: { clock: this.clock, behaviours: new Map([['ledger', ledger]]), send },
      gate: this.gate,
      clockMs: () => this.clock.monotonicMs(),
      join: (joining: Joining) => this.#join(joining),
    }
    this.outbox = new Outbox(shard, 0)
    if (begins) this.outbox.sees(0)
  }

  #join({ entry, bytes, activation }: Joining): number {
    const offset = this.gate.newest + 1
    const nothing = { aliases: [], spilled: [], snapshot: null, waiters: null }
    const stateless = { state: undefined, stateBytes: 0 }
    this.gate.join({ entry, bytes, activation, offset, ...nothing, ...stateless })
    return offset
  }

  /** Commits what is decided. */
  commit(): void {
    if (!this.gate.isFlying) this.gate.take()
    for (const { entry, offset } of this.gate.committed()) {
      this.log.set(offset, entry)
      this.outbox.committed(entry, offset)
    }
    this.gate.release()
  }

  /** An entry with effects is decided and committed. */
  has(...e: readonly Effect[]): void {
    const entry = { y: 'ledger', p: 'source', n: 1, b: 'tester', e } as unknown as Entry
    this.#join({ entry, bytes: new Uint8Array(1), activation: null, state: null, bases: new Map() })
    this.commit()
  }

  /** Answers the oldest open envelope that went there, and commits what is decided upon it. */
  answer(to: string, reply: WireReply): void {
    const at = this.open.findIndex((sent) => targetOf(sent) === to)
    if (at < 0) throw new Error(`nothing is open for ${to}: ${this.open.map(targetOf).join()}`)
    this.open.splice(at, 1)[0]!.respond(reply)
    if (this.gate.hasOpen && !this.gate.isFlying) this.commit()
  }
}
