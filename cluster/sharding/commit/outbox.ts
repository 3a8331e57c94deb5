// The outbox of one shard: messages to other actors and keys that leave after their entry is
// committed. What goes to one target goes in log order, one envelope in flight; the target's
// offsets make a repeat harmless, so it survives restarts without a handshake. Source: PROTOCOL 3.6
// "Outbox".
//
// An effect that names its actor by a key first asks who that is, in log order among all effects to
// actors of that type, for any of them may be for the same one. Who it is stands in the log before
// the effect leaves: asked again after a restart, the key could lead to another. What nobody has
// yet an earlier effect may still give to its actor: it stays, and so does what is behind it for
// such an actor. All others go past it.

import { LIMITS } from '../../../config/limits.ts'
import { assert, isRetryable } from '../../../protocol/errors.ts'
import { encodeEntry } from '../../../protocol/entry/entry.ts'
import type { Entry, EntryHead } from '../../../protocol/entry/entry.ts'
import type { Envelope, WireReply } from '../../../protocol/message.ts'
import type { Joining, ShardContext, ShardState } from '../core.ts'
import type { OutputGate } from './output-gate.ts'
import { addressed, begin, isEarlier, nameOf, newLine, placeOf, waitMs } from './outbox-queues.ts'
import type { Item, Line, Queue } from './outbox-queues.ts'

/** Who a key was found to lead to, and where the log says so. */
interface Found {
  readonly actorId: string
  readonly at: number
}

/** Whether an outbox has to know an entry again after a restart. */
export function isRelayed(entry: EntryHead): boolean {
  return entry.e !== undefined || isResolution(entry)
}

/** Says to which actor an effect by key goes. */
function isResolution({ n, s }: EntryHead): boolean {
  return n === 0 && s !== undefined
}

/** What a relay has from its shard. */
export interface OutboxHost {
  readonly number: number
  readonly state: ShardState
  readonly context: Pick<ShardContext, 'behaviours' | 'clock' | 'send'>
  readonly gate: Pick<OutputGate, 'wait'>
  /** The shard's clock, milliseconds (PROTOCOL 3.0). */
  clockMs(): number
  join(joining: Joining): number
}

export class Outbox {
  readonly #shard: OutboxHost
  readonly #queues = new Map<string, Queue>()
  readonly #lines = new Map<string, Line>()
  /** Offsets with effects that are not taken yet, and how many of each. */
  readonly #open = new Map<number, number>()
  /** Up to here no entry has effects that we know of. */
  #seen: number
  /** Older effects up to this offset are still being read: until then nothing leaves. */
  #behind: number | null
  /** What is committed before anything may leave, in log order. */
  #waiting: Item[] | null = []
  /** Who the keys of those lead to, as far as the log says it. */
  readonly #resolved = new Map<string, Found>()
  #isRead = false
  #stopped = false

  /**
   * `from`: every entry at or below is relayed, or will be handed in by `older`, which must be
   * called when `behind` (up to there everything is relayed) is given. Nothing leaves before
   * `sees`.
   */
  constructor(shard: OutboxHost, from: number, behind: number | null = null) {
    this.#shard = shard
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
    return this.#open.size >= LIMITS.sharding.outboxEntriesMax
  }

  stop(): void {
    this.#stopped = true
  }

  /** Entries of before that `isRelayed` names, oldest first: they leave ahead of all others. */
  older(entries: readonly { readonly entry: EntryHead; readonly offset: number }[]): void {
    const newer = this.#waiting ?? []
    this.#waiting = []
    for (const { entry, offset } of entries) this.#take(entry, offset)
    this.#waiting = [...this.#waiting, ...newer]
    this.#behind = null
    this.#begin()
  }

  /** Nothing up to here has effects but what was handed in. */
  sees(offset: number): void {
    this.#seen = offset
    this.#isRead = true
    this.#begin()
  }

  committed(entry: EntryHead, offset: number): void {
    this.#seen = offset
    this.#take(entry, offset)
  }

  #take(entry: EntryHead, offset: number): void {
    if (isResolution(entry)) {
      const [, of, index] = entry.s!
      const place = placeOf({ offset: of, index })
      if (this.#waiting === null) return this.#leadsTo(entry.y, place, entry.p)
      // Earlier versions may have written two: it went where the first one says.
      const known = this.#resolved.get(place)
      if (!known || offset < known.at) this.#resolved.set(place, { actorId: entry.p, at: offset })
      return
    }
    if (entry.e === undefined) return
    this.#open.set(offset, entry.e.length)
    for (const [index, effect] of entry.e.entries()) {
      const item: Item = { effect, offset, index, by: entry.b }
      if (this.#waiting === null) this.#add(item)
      else this.#waiting.push(item)
    }
  }

  /** From now on effects leave, those first that have waited. */
  #begin(): void {
    if (!this.#isRead || this.#behind !== null || this.#waiting === null) return
    const waiting = this.#waiting
    this.#waiting = null
    for (const item of waiting)
      this.#add(addressed(item, this.#resolved.get(placeOf(item))?.actorId))
    this.#resolved.clear()
  }

  #add(item: Item): void {
    const { to } = item.effect
    if (this.#isOfKeys(item)) {
      this.#queueUp(nameOf(to), item)
      return
    }
    let line = this.#lines.get(to.type)
    if (!line) this.#lines.set(to.type, (line = newLine()))
    line.items.push(item)
    this.#advance(to.type, line)
  }

  /** For a key itself, or for an actor of the `system` shard, which its key alone tells. */
  #isOfKeys({ effect: { to, messages } }: Item): boolean {
    if (!('key' in to)) return false
    if (messages[0]!.type.startsWith('!')) return true
    return this.#shard.context.behaviours.get(to.type)?.home === 'system'
  }

  /** Lets those go to their actors that are known, up to the first that isn't, and asks for it. */
  #advance(type: string, line: Line): void {
    if (line.busy || this.#stopped) return
    if (line.round === 'over') begin(line)
    for (let item = line.items[0]; item !== undefined; item = line.items[0]) {
      const { to } = item.effect
      if (!('id' in to)) return this.#resolve(type, line, item)
      const name = nameOf(to)
      if (line.held.has(name)) this.#stays(type, line)
      else {
        line.items.shift()
        line.ahead.add(name)
        this.#queueUp(name, item)
      }
    }
    if (line.staying.length === 0) line.rounds = 0
  }

  #resolve(type: string, line: Line, item: Item): void {
    line.busy = true
    // As of now: what is taken while the answer is on its way may give the key to somebody.
    const before = this.#before(line, item)
    const mayCome = before.length > 0 || line.staying.length > 0
    this.#shard.context.send(this.#envelope(item), (reply) => {
      if (this.#stopped) return
      if (reply.outcome === 'answered' && reply.actorId !== null) {
        this.#note(type, line, item, reply.actorId)
      } else if (mustRepeat(reply)) {
        this.#later(line, () => this.#advance(type, line))
      } else {
        line.busy = false
        line.failures = 0
        if (mayCome) {
          for (const name of before) line.held.add(name)
          this.#stays(type, line)
        } else {
          line.items.shift()
          this.#taken(item.offset)
        }
        this.#advance(type, line)
      }
    })
  }

  /** Queues that have something of before this one, which may give its key to their actor. */
  #before({ ahead }: Line, item: Item): readonly string[] {
    return [...ahead].filter((name) => isEarlier(this.#queues.get(name)!.items[0]!, item))
  }

  /** The first one is looked at again in the next round, and that comes ever later. */
  #stays(type: string, line: Line): void {
    line.staying.push(line.items.shift()!)
    if (line.round !== 'open') return
    line.round = 'ends'
    this.#shard.context.clock.after(waitMs(line.rounds++), () => {
      line.round = 'over'
      this.#advance(type, line)
    })
  }

  /** Puts into the log to whom the effect goes; it goes on once that is committed. */
  #note(type: string, line: Line, { offset, index }: Item, actorId: string): void {
    const shard = this.#shard
    const again = (): void => this.#later(line, () => this.#advance(type, line))
    if (shard.state !== 'serving') return again()
    const entry: Entry = {
      y: type,
      p: actorId,
      v: 0,
      n: 0,
      r: [],
      m: relayId(shard.number, offset, index),
      l: 0,
      a: { type: '!resolved', success: true },
      s: [shard.number, offset, index],
      t: shard.context.clock.nowMs(),
      c: shard.clockMs(),
      b: 'kontor',
    }
    const bytes = encodeEntry(entry)
    const at = shard.join({ entry, bytes, activation: null, state: null, bases: NO_BASES })
    const isLost = (lost: WireReply | null): void => {
      if (lost === null || this.#stopped) return
      // It may be in the log all the same: nothing else is noted before that is known.
      if (lost.outcome === 'unknown') shard.gate.wait(at, isLost)
      else again()
    }
    shard.gate.wait(at, isLost)
  }

  /** The log has it: the first of its line goes to that actor. */
  #leadsTo(type: string, place: string, actorId: string): void {
    const line = this.#lines.get(type)
    const item = line?.items[0]
    if (!line || !item || placeOf(item) !== place) return
    line.busy = false
    line.failures = 0
    line.items[0] = addressed(item, actorId)
    this.#advance(type, line)
  }

  #queueUp(target: string, item: Item): void {
    let queue = this.#queues.get(target)
    if (!queue) this.#queues.set(target, (queue = { items: [], busy: false, failures: 0 }))
    queue.items.push(item)
    this.#pump(target, queue)
  }

  #pump(target: string, queue: Queue): void {
    if (this.#stopped || queue.busy) return
    const item = queue.items[0]!
    queue.busy = true
    this.#shard.context.send(this.#envelope(item), (reply) => {
      if (this.#stopped) return
      if (mustRepeat(reply)) {
        this.#later(queue, () => this.#pump(target, queue))
        return
      }
      queue.busy = false
      queue.failures = 0
      queue.items.shift()
      this.#taken(item.offset)
      if (queue.items.length > 0) return this.#pump(target, queue)
      this.#queues.delete(target)
      this.#lines.get(item.effect.to.type)?.ahead.delete(target)
    })
  }

  /** Tries the first one again, ever later. */
  #later(queue: Queue, again: () => void): void {
    const [item] = queue.items
    this.#shard.context.clock.after(waitMs(queue.failures++), () => {
      assert(queue.items[0] === item, 'nothing becomes of an effect while it waits for its turn')
      queue.busy = false
      again()
    })
  }

  #taken(offset: number): void {
    const left = this.#open.get(offset)
    assert(left !== undefined, 'an effect is taken once')
    if (left === 1) this.#open.delete(offset)
    else this.#open.set(offset, left - 1)
  }

  #envelope({ effect, offset, index, by }: Item): Envelope {
    const { number } = this.#shard
    const id = relayId(number, offset, index)
    return {
      messageId: { id, kind: 'edge' },
      to: effect.to,
      virtual: false,
      copy: 0,
      messages: effect.messages,
      bodyHash: '',
      budgetMs: LIMITS.sharding.requestBudgetMs,
      by,
      preview: false,
      crashes: 0,
      trace: id,
      relay: [number, offset, index],
    }
  }
}

function relayId(shard: number, offset: number, index: number): string {
  return `relay-${shard}-${offset}-${index}`
}

const NO_BASES: ReadonlyMap<string, null> = new Map()

/** A relayed message ends in an entry at its target, or is tried again (PROTOCOL 3.6). */
function mustRepeat(reply: WireReply): boolean {
  if (reply.outcome === 'unknown') return true
  return reply.outcome === 'refused' && isRetryable(reply.error.code)
}
