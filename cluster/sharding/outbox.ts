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
  /** Older effects up to this offset are still being read: until then nothing leaves. */
  #behind: number | null
  #stopped = false

  /**
   * `from`: every entry at or below is relayed, or will be handed in by `older`, which must be
   * called when `behind` (up to there everything is relayed) is given.
   */
  constructor(shard: number, context: ShardContext, from: number, behind: number | null = null) {
    this.#shard = shard
    this.#context = context
    this.#seen = from
    this.#behind = behind
  }

  /** Behind the oldest effect not yet taken: where the relay goes on after a restart. */
  get relayed(): number {
    if (this.#behind !== null) return this.#behind
    let oldest = this.#seen + 1
    for (const offset of this.#open.keys()) oldest = Math.min(oldest, offset)
    return oldest - 1
  }

  get size(): number {
    return this.#open.size
  }

  /** Nothing more should be decided here that may have effects. */
  get isFull(): boolean {
    return this.#open.size >= LIMITS.outboxEntriesMax
  }

  stop(): void {
    this.#stopped = true
  }

  /** Entries of before that may have effects, oldest first: they leave ahead of all others. */
  older(entries: readonly { readonly entry: Entry; readonly offset: number }[]): void {
    const newer = [...this.#queues]
    this.#queues.clear()
    for (const { entry, offset } of entries) this.#add(entry, offset)
    for (const [target, { items }] of newer) this.#queue(target).items.push(...items)
    this.#behind = null
    for (const [target, queue] of this.#queues) this.#pump(target, queue)
  }

  /** Nothing up to here has effects but what was handed in. */
  sees(offset: number): void {
    this.#seen = offset
  }

  committed(entry: Entry, offset: number): void {
    this.#seen = offset
    if (!entry.e) return
    for (const target of this.#add(entry, offset)) this.#pump(target, this.#queue(target))
  }

  /** Puts the effects of an entry behind those that wait; returns their targets. */
  #add(entry: Entry, offset: number): readonly string[] {
    const effects = entry.e ?? []
    if (effects.length > 0) this.#open.set(offset, effects.length)
    return effects.map((effect, index) => {
      const { to } = effect
      const target = 'id' in to ? `${to.type}/${to.id}` : `${to.type}\0${to.key}`
      this.#queue(target).items.push({ effect, offset, index, by: entry.b })
      return target
    })
  }

  #queue(target: string): Queue {
    let queue = this.#queues.get(target)
    if (!queue) this.#queues.set(target, (queue = { items: [], sending: false, failures: 0 }))
    return queue
  }

  #pump(target: string, queue: Queue): void {
    const item = queue.items[0]
    if (this.#stopped || queue.sending || this.#behind !== null) return
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
