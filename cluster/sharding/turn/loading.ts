// Loading: brings an activation to its newest committed state, from its snapshot, its stored
// entries and the tail in memory. Source: PROTOCOL 3.6, 3.11, 3.12.

import { LOSS_JUMP, decodeEntry, isEnd } from '../../../protocol/entry/entry.ts'
import { successionOf } from '../../../protocol/entry/succession.ts'
import type { EntryRow, Maybe } from '../../../storage/journal.ts'
import { gapOf, restore } from './activation.ts'
import type { Activation } from './activation.ts'

/** Where an activation is loaded from. */
export interface LoadSource {
  snapshot(actorId: string): Maybe<{ readonly body: Uint8Array } | null>
  entries(actorId: string, after: number): Maybe<readonly EntryRow[]>
  /** Committed entries whose derived rows are not durable yet, oldest first. */
  tail(actorId: string): readonly LoadedEntry[]
  /** What the actor's shard has lost for good behind this offset; -1: nothing. */
  readonly lostBehind: number
  /** Told what an operator has to know of an actor that was loaded. */
  readonly alarm?: (actorId: string, what: string) => void
}

/** What was read of an actor is short of something that the log has had. */
export class EntriesMissing extends Error {}

export interface LoadedEntry {
  readonly offset: number
  readonly body: Uint8Array
}

/**
 * Brings an activation to its newest committed state: snapshot, the entries above it, the tail in
 * memory. A record that the reducer can't apply quarantines the actor (PROTOCOL 3.11). The tail is
 * taken before anything is read: what has left it by then is durable, and the reads see it.
 */
export function load(activation: Activation, source: LoadSource): Maybe<void> {
  const tail = [...source.tail(activation.id)]
  const from: Loading = { source, tail, tailN: firstNumber(tail), after: 0 }
  const snapshot = source.snapshot(activation.id)
  if (snapshot instanceof Promise) return snapshot.then((s) => loadFrom(activation, from, s))
  return loadFrom(activation, from, snapshot)
}

interface Loading {
  readonly source: LoadSource
  readonly tail: readonly LoadedEntry[]
  /** Stored entries from this number on are the tail's. */
  readonly tailN: number
  /** Stored entries up to this number have been read. */
  after: number
}

/**
 * Number of the first entry that is not durable yet. Of those from it on some may be stored and
 * older ones not yet, but all of them are in the tail.
 */
export function firstNumber(tail: readonly LoadedEntry[]): number {
  return tail.length === 0 ? Infinity : decodeEntry(tail[0]!.body).n
}

function loadFrom(
  activation: Activation,
  from: Loading,
  snapshot: { readonly body: Uint8Array } | null,
): Maybe<void> {
  if (snapshot) restore(activation, snapshot.body)
  from.after = activation.n
  return loadEntries(activation, from)
}

function loadEntries(activation: Activation, from: Loading): Maybe<void> {
  for (;;) {
    const rows = from.source.entries(activation.id, from.after)
    if (rows instanceof Promise) {
      return rows.then((some) =>
        replayStored(activation, from, some)
          ? loadEntries(activation, from)
          : finish(activation, from),
      )
    }
    if (!replayStored(activation, from, rows)) return finish(activation, from)
  }
}

/** False: there is no more to read. */
function replayStored(activation: Activation, from: Loading, rows: readonly EntryRow[]): boolean {
  for (const { n, offset, body } of rows) {
    from.after = n
    if (n < from.tailN) activation.replay(decodeEntry(body), offset, body.length)
    // Never given out again, whatever stands there.
    else activation.n = Math.max(activation.n, n)
  }
  return rows.length > 0
}

function finish(activation: Activation, { source, tail }: Loading): void {
  let missing: string | null = null
  for (const { offset, body } of tail) {
    // A snapshot may be ahead of the oldest of them.
    if (offset <= activation.newest) continue
    const entry = decodeEntry(body)
    if (activation.quarantined === null && successionOf(activation, entry, offset) === 'gap') {
      missing ??= gapOf(activation, entry)
    }
    // Of what has ended a log may have lost the beginning.
    if (isEnd(entry)) missing = null
    activation.replay(entry, offset, body.length)
  }
  // Nothing of it may be served: what was read is short of something that the log has had.
  if (missing !== null) {
    throw new EntriesMissing(`entries of ${activation.id} are missing: ${missing}`)
  }
  if (activation.n > 0 && activation.newest <= source.lostBehind) {
    activation.version += LOSS_JUMP
    activation.n += LOSS_JUMP
  }
  alarm(activation, source)
  activation.loaded = true
}

function alarm({ id, strays, quarantined }: Activation, source: LoadSource): void {
  if (quarantined !== null) source.alarm?.(id, `an actor can only be read: ${quarantined}`)
  if (strays.length === 0) return
  const offsets = strays.slice(0, ALARMED_MAX).join(', ')
  source.alarm?.(
    id,
    `entries at offsets ${offsets} are passed over: newer ones stand before them; they were ` +
      'acknowledged, see what npm run verify-log says',
  )
}

/** Offsets that one alarm names. */
const ALARMED_MAX = 20
