// The output gate of one shard: entries that have been decided but not committed, and the answers
// that wait for them. No answer leaves before the newest entry that it was computed on is committed
// (PROTOCOL 3.6 step 5).

import { LIMITS } from '../../../config/limits.ts'
import { assert } from '../../../protocol/errors.ts'
import type { WireReply } from '../../../protocol/message.ts'
import type { AliasRow } from '../../../storage/journal.ts'
import type { CommittedEntry } from '../../committed-entry.ts'
import type { Activation, SnapshotCapture } from '../turn/activation.ts'
import type { LoadedEntry } from '../turn/loading.ts'
import type { Mark } from '../turn/marks.ts'

/** Called with null when the awaited entry is committed, else with what its callers are told. */
export type Waiter = (failure: WireReply | null) => void

/** An entry on its way into the log. */
export interface OpenEntry extends CommittedEntry {
  readonly offset: number
  /** null for an entry of a key alone. */
  readonly activation: Activation | null
  /** Rows of natural keys as this entry leaves them. */
  readonly aliases: readonly AliasRow[]
  /** Marks that left the actor's window with this entry. */
  readonly spilled: readonly Mark[]
  /** The actor's state right after the entry, when a snapshot of it is due. */
  readonly snapshot: SnapshotCapture | null
  waiters: Waiter[] | null
}

export class OutputGate {
  /** Offset of the newest committed entry. */
  head: number
  /** Groups that were taken for an append. */
  taken = 0
  #flying: OpenEntry[] = []
  #open: OpenEntry[] = []
  /** Committed, their answers still here. */
  #freed: readonly OpenEntry[] = []
  #openBytes = 0

  constructor(head: number) {
    this.head = head
  }

  /** Offset of the newest decided entry. */
  get newest(): number {
    return this.head + this.#flying.length + this.#open.length
  }

  get hasOpen(): boolean {
    return this.#open.length > 0
  }

  get isFlying(): boolean {
    return this.#flying.length > 0
  }

  /** Whether there is room for one more state of this actor beside what waits for its commit. */
  keeps(activation: Activation | null): boolean {
    if (activation === null) return false
    const count = this.newest + 1 - this.head
    return count * activation.stateBytesBound <= LIMITS.sharding.openStatesBytesMax
  }

  join(open: OpenEntry): void {
    assert(open.offset === this.newest + 1, 'entries join in the order of their offsets')
    // A list made here, not when the last group was taken: one that has waited empty until it is
    // old keeps what it once held from dying young, though nobody knows it any more.
    if (this.#open.length === 0) this.#open = [open]
    else this.#open.push(open)
    this.#openBytes += open.bytes.length
  }

  /** Runs `waiter` once the entry at `offset` is committed: now, when it already is. */
  wait(offset: number, waiter: Waiter): void {
    if (offset <= this.head) {
      waiter(null)
      return
    }
    let i = offset - this.head - 1
    const list = i < this.#flying.length ? this.#flying : this.#open
    if (list === this.#open) i -= this.#flying.length
    const entry = list[i]
    assert(entry !== undefined, 'an answer waits for an entry that nobody has decided')
    if (entry.waiters === null) entry.waiters = [waiter]
    else entry.waiters.push(waiter)
  }

  /** Closes the open group, at most what one append may carry; a larger entry goes alone. */
  take(): readonly OpenEntry[] {
    assert(this.#flying.length === 0, 'one append in flight per shard')
    this.taken++
    const open = this.#open
    if (
      open.length <= LIMITS.storage.groupEntriesMax &&
      this.#openBytes <= LIMITS.storage.groupBytesMax
    ) {
      this.#flying = open
      this.#open = []
      this.#openBytes = 0
      return open
    }
    let count = 0
    let bytes = 0
    while (count < open.length && count < LIMITS.storage.groupEntriesMax) {
      bytes += open[count]!.bytes.length
      if (count > 0 && bytes > LIMITS.storage.groupBytesMax) {
        bytes -= open[count]!.bytes.length
        break
      }
      count++
    }
    this.#flying = open.slice(0, count)
    this.#open = open.slice(count)
    this.#openBytes -= bytes
    return this.#flying
  }

  /** The group in flight is in the log: moves the head. Its answers leave with `release`. */
  committed(): readonly OpenEntry[] {
    const group = this.#flying
    this.#flying = []
    this.head += group.length
    if (this.#freed.length === 0) this.#freed = group
    else this.#freed = [...this.#freed, ...group]
    return group
  }

  /** Releases the answers of committed entries, in the order of their offsets. */
  release(): void {
    const freed = this.#freed
    this.#freed = []
    for (const { waiters } of freed) {
      if (waiters) for (const waiter of waiters) waiter(null)
    }
  }

  /** Actors with decided entries that are not committed; some several times. */
  *decided(): Iterable<Activation> {
    for (const { activation } of this.#flying) if (activation !== null) yield activation
    for (const { activation } of this.#open) if (activation !== null) yield activation
  }

  /** Decided, uncommitted entries of an actor, oldest first. */
  openOf(actorId: string): LoadedEntry[] {
    if (this.#flying.length === 0 && this.#open.length === 0) return []
    const mine = (open: OpenEntry): boolean => open.activation?.id === actorId
    return [...this.#flying.filter(mine), ...this.#open.filter(mine)].map(({ offset, bytes }) => ({
      offset,
      body: bytes,
    }))
  }

  /** Answers what waits for the group in flight, without saying what became of it. */
  failWaiters(reply: WireReply): void {
    for (const open of this.#flying) {
      const { waiters } = open
      open.waiters = null
      if (waiters) for (const waiter of waiters) waiter(reply)
    }
  }

  /** Fails the answers of all that is not committed: it never will be. */
  drop(failure: WireReply): void {
    const lost = [...this.#flying, ...this.#open]
    this.#flying = []
    this.#open = []
    this.#openBytes = 0
    for (const { waiters } of lost) {
      if (waiters) for (const waiter of waiters) waiter(failure)
    }
  }
}
