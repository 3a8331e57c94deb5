// The flusher of one shard: writes what is derived from committed entries (the actors' entries,
// alias rows, spilled marks, snapshots, the shard's own row) and moves the flush offset. Until a
// row is durable its content stays in memory. It stands between the committed log and the derived
// store. Source: PROTOCOL 3.12.

import { LIMITS } from '../../config/limits.ts'
import type { AliasRow, DerivedRow } from '../../storage/journal.ts'
import { encodeSnapshot } from './activation.ts'
import type { LoadedEntry } from './activation.ts'
import type { ShardCore } from './core.ts'
import type { OpenEntry } from './gate.ts'
import { markDay } from './marks.ts'

export interface FlusherOptions {
  readonly shard: ShardCore
  readonly epoch: number
  readonly flush: number
  /** The store refused: the epoch is another's, or the disk is full. */
  readonly onRefused: (outcome: 'fenced' | 'full' | 'unknown') => void
}

export class Flusher {
  readonly #options: FlusherOptions
  /** Up to here every derived row is durable. */
  flushed: number
  /** Up to here the store says so: what a claim starts its replay from. */
  #stored: number
  #storedAtMs: number
  readonly #tail = new Map<string, LoadedEntry[]>()
  #tailBytes = 0
  #writing = 0
  #stopped = false

  constructor(options: FlusherOptions) {
    this.#options = options
    this.flushed = options.flush
    this.#stored = options.flush
    this.#storedAtMs = options.shard.context.clock.monotonicMs()
  }

  /** Committed entries of an actor whose rows are not durable yet, oldest first. */
  tail(actorId: string): readonly LoadedEntry[] {
    return this.#tail.get(actorId) ?? NONE
  }

  /** What a claim would replay from. */
  get stored(): number {
    return this.#stored
  }

  get tailBytes(): number {
    return this.#tailBytes
  }

  get idle(): boolean {
    return this.#writing === 0
  }

  stop(): void {
    this.#stopped = true
  }

  /** Writes the rows of a committed group. */
  committed(group: readonly OpenEntry[]): void {
    const rows: DerivedRow[] = []
    let bytes = 0
    for (const open of group) {
      bytes += open.bytes.length
      this.#rowsOf(open, rows)
    }
    this.#tailBytes += bytes
    const upTo = group.at(-1)!.offset
    this.#memory(rows, upTo)
    this.#write(group.map(flushingOf), rows, { upTo, bytes })
  }

  #rowsOf(open: OpenEntry, rows: DerivedRow[]): void {
    const { entry, offset, bytes } = open
    if (open.activation) {
      rows.push({ kind: 'entry', actorId: entry.p, n: entry.n, offset, body: bytes })
      const known = this.#tail.get(entry.p)
      if (known) known.push({ offset, body: bytes })
      else this.#tail.set(entry.p, [{ offset, body: bytes }])
    }
    for (const row of open.aliases) rows.push({ kind: 'alias', offset, row })
    for (const mark of open.spilled) {
      rows.push({
        kind: 'mark',
        actorId: entry.p,
        day: markDay(mark.clock),
        messageId: mark.messageId,
        offset,
        body: Buffer.from(JSON.stringify(mark)),
      })
    }
    if (open.snapshot) {
      const body = encodeSnapshot(open.snapshot, this.#options.shard.clockMs())
      open.snapshot.activation.snapshotBytes = body.length
      rows.push({ kind: 'snapshot', actorId: entry.p, offset, body })
    }
  }

  /** The shard's own row and the flush offset, now and then: what lies above is replayed. */
  #memory(rows: DerivedRow[], upTo: number): void {
    const { shard } = this.#options
    const nowMs = shard.context.clock.monotonicMs()
    if (
      upTo - this.#stored < LIMITS.flushStoredEntries &&
      nowMs - this.#storedAtMs < LIMITS.flushStoredMs
    ) {
      return
    }
    this.#stored = upTo
    this.#storedAtMs = nowMs
    const body = Buffer.from(JSON.stringify(shard.memory(upTo)))
    rows.push({ kind: 'shard', offset: upTo, body })
    rows.push({ kind: 'consumer', consumer: 'flush', offset: upTo })
  }

  #write(
    group: readonly Flushing[],
    rows: readonly DerivedRow[],
    done: { readonly upTo: number; readonly bytes: number },
  ): void {
    const { shard, epoch } = this.#options
    this.#writing++
    shard.context.journal.derived.write(shard.number, epoch, rows).then(
      (outcome) => {
        this.#writing--
        if (this.#stopped) return
        if (outcome === 'committed') this.#durable(group, done)
        else if (outcome === 'fenced') this.#options.onRefused(outcome)
        else this.#again(group, rows, done, outcome)
      },
      (error: unknown) => {
        this.#writing--
        shard.context.log.error(
          { err: error, shard: shard.number },
          'derived rows were not written',
        )
        if (!this.#stopped) this.#again(group, rows, done, 'unknown')
      },
    )
  }

  /** Rows are idempotent: written again until they are there; the tail holds them meanwhile. */
  #again(
    group: readonly Flushing[],
    rows: readonly DerivedRow[],
    done: { readonly upTo: number; readonly bytes: number },
    outcome: 'full' | 'unknown',
  ): void {
    this.#options.onRefused(outcome)
    this.#options.shard.context.clock.after(LIMITS.flushRetryMs, () => {
      if (!this.#stopped) this.#write(group, rows, done)
    })
  }

  #durable(
    group: readonly Flushing[],
    done: { readonly upTo: number; readonly bytes: number },
  ): void {
    const { shard } = this.#options
    this.#tailBytes -= done.bytes
    for (const { actorId, offset, aliases } of group) {
      if (aliases.length > 0) shard.keys.flushed(aliases, offset)
      if (actorId === null) continue
      const tail = this.#tail.get(actorId)
      if (!tail) continue
      if (tail.length <= 1) this.#tail.delete(actorId)
      else
        this.#tail.set(
          actorId,
          tail.filter((kept) => kept.offset !== offset),
        )
    }
    if (done.upTo > this.flushed) this.flushed = done.upTo
  }
}

/** What of a committed entry is needed until its rows are durable; the rest may go. */
interface Flushing {
  readonly actorId: string | null
  readonly offset: number
  readonly aliases: readonly AliasRow[]
}

function flushingOf({ activation, entry, offset, aliases }: OpenEntry): Flushing {
  return { actorId: activation === null ? null : entry.p, offset, aliases }
}

const NONE: readonly LoadedEntry[] = []
