// The outbox of one shard: messages to other actors and keys that leave after their entry is
// committed. What goes to one target goes in log order, one envelope in flight; the target's
// offsets make a repeat harmless, so it survives restarts without a handshake. It stands between
// committed entries and the wire. Source: PROTOCOL 3.6 "Outbox".

import { LIMITS } from '../../config/limits.ts'
import { isRetryable } from '../../protocol/errors.ts'
import type { Effect } from '../../protocol/behaviour.ts'
import type { Entry } from '../../protocol/entry.ts'
import type { Envelope, WireReply } from '../../protocol/message.ts'
import type { ShardContext } from './core.ts'

interface Item {
  readonly effect: Effect
  readonly offset: number
  readonly index: number
  readonly by: string
}

interface Queue {
  readonly items: Item[]
  sending: boolean
  failures: number
}

export class Outbox {
  readonly #shard: number
  readonly #context: ShardContext
  readonly #queues = new Map<string, Queue>()
  /** Offsets with effects that are not taken yet, and how many of each. */
  readonly #open = new Map<number, number>()
  /** Up to here no entry has effects that we know of. */
  #seen: number
  #stopped = false

  constructor(shard: number, context: ShardContext, from: number) {
    this.#shard = shard
    this.#context = context
    this.#seen = from
  }

  /** Behind the oldest effect not yet taken: where the relay goes on after a restart. */
  get relayed(): number {
    let oldest = this.#seen + 1
    for (const offset of this.#open.keys()) oldest = Math.min(oldest, offset)
    return oldest - 1
  }

  get size(): number {
    return this.#open.size
  }

  stop(): void {
    this.#stopped = true
  }

  committed(entry: Entry, offset: number): void {
    this.#seen = offset
    if (!entry.e) return
    this.#open.set(offset, entry.e.length)
    entry.e.forEach((effect, index) => {
      const { to } = effect
      const target = 'id' in to ? `${to.type}/${to.id}` : `${to.type}\0${to.key}`
      let queue = this.#queues.get(target)
      if (!queue) this.#queues.set(target, (queue = { items: [], sending: false, failures: 0 }))
      queue.items.push({ effect, offset, index, by: entry.b })
      this.#pump(target, queue)
    })
  }

  #pump(target: string, queue: Queue): void {
    const item = queue.items[0]
    if (this.#stopped || queue.sending) return
    if (!item) {
      this.#queues.delete(target)
      return
    }
    queue.sending = true
    this.#context.send(this.#envelope(item), (reply) => {
      queue.sending = false
      if (this.#stopped) return
      if (mustRepeat(reply)) {
        const wait = Math.min(LIMITS.relayRetryMsMax, 50 * 2 ** Math.min(queue.failures++, 10))
        this.#context.clock.after(wait, () => this.#pump(target, queue))
        return
      }
      queue.failures = 0
      queue.items.shift()
      this.#taken(item.offset)
      this.#pump(target, queue)
    })
  }

  #taken(offset: number): void {
    const left = this.#open.get(offset)! - 1
    if (left === 0) this.#open.delete(offset)
    else this.#open.set(offset, left)
  }

  #envelope(item: Item): Envelope {
    const id = `relay-${this.#shard}-${item.offset}-${item.index}`
    return {
      messageId: { id, kind: 'edge' },
      to: item.effect.to,
      virtual: false,
      copy: 0,
      messages: item.effect.messages,
      bodyHash: '',
      budgetMs: LIMITS.requestBudgetMs,
      by: item.by,
      preview: false,
      crashes: 0,
      trace: id,
      relay: [this.#shard, item.offset, item.index],
    }
  }
}

/** A relayed message ends in an entry at its target, or is tried again (PROTOCOL 3.6). */
function mustRepeat(reply: WireReply): boolean {
  if (reply.outcome === 'unknown') return true
  return reply.outcome === 'refused' && isRetryable(reply.error.code)
}
