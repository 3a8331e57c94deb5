// A shard's account of itself while it is served: its clock, the bytes of its log, how far its
// relay is. Source: PROTOCOL 3.0 `shard_snap`, 3.5 "Trim".

import type { OutputGate } from './commit/output-gate.ts'
import type { ShardContext } from './core.ts'
import type { Numbers } from './keys/numbers.ts'
import { NEW_SNAPSHOT } from './recovery/shard-snapshot.ts'
import type { ShardSnapshot } from './recovery/shard-snapshot.ts'
import type { Outbox } from './commit/outbox.ts'

/** What the account goes by. */
export interface Accounted {
  readonly context: Pick<ShardContext, 'servedMs'>
  readonly gate: Pick<OutputGate, 'head'>
  readonly numbers: Pick<Numbers, 'told'>
  readonly outbox: Pick<Outbox, 'relayed'>
  /** The shard's clock, milliseconds (PROTOCOL 3.0). */
  clockMs(): number
}

export class Account {
  readonly #shard: Accounted
  #clockBase = 0
  #clockFrom: number
  /** As it was told last, with what has changed since. */
  kept: ShardSnapshot = NEW_SNAPSHOT

  constructor(shard: Accounted) {
    this.#shard = shard
    this.#clockFrom = shard.context.servedMs()
  }

  /** Goes on from what the owner before remembers. */
  inherit(snapshot: ShardSnapshot): void {
    this.kept = snapshot
    this.#clockBase = snapshot.clockMs
    this.#clockFrom = this.#shard.context.servedMs()
  }

  clockMs(): number {
    return Math.floor(this.#clockBase + this.#shard.context.servedMs() - this.#clockFrom)
  }

  /** What the shard's own row should hold when everything up to `offset` is flushed. */
  at(offset: number): ShardSnapshot {
    const shard = this.#shard
    const { numbers, gate, outbox } = shard
    this.kept = {
      ...this.kept,
      ...numbers.told(),
      clockMs: shard.clockMs(),
      // An account that is not known to be right stays marked as such.
      ...(this.kept.counted !== undefined && { counted: gate.head }),
      relayed: Math.min(outbox.relayed, offset),
    }
    return this.kept
  }

  appended(bytes: number): void {
    this.kept = { ...this.kept, logBytes: this.kept.logBytes + bytes }
  }

  /** The log is trimmed up to an offset, by so many bytes. */
  trimmed(upTo: number, bytes: number): void {
    this.kept = { ...this.kept, trimmed: upTo, trimmedBytes: this.kept.trimmedBytes + bytes }
  }

  /** The log begins behind `trimmed` and held so many bytes when `kept` was what it is now. */
  recounted(kept: ShardSnapshot, trimmed: number, bytes: number): void {
    const trimmedBytes = kept.logBytes - bytes
    this.kept = { ...this.kept, counted: this.#shard.gate.head, trimmed, trimmedBytes }
  }
}
