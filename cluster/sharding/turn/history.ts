// An actor's past: its entries, its checkpoints, its state as it was. Read from the derived rows
// and what is decided above them, never kept in the state. Source: CONTRACT 1.3 (getCheckpoints,
// rewind), PROTOCOL 3.12.

import { LIMITS } from '../../../config/limits.ts'
import { checkpointId } from '../../../protocol/checkpoint.ts'
import { decodeEntry, metaOf, recordsOf } from '../../../protocol/entry/entry.ts'
import type { AnyEntry, EntryHead } from '../../../protocol/entry/entry.ts'
import type { Behaviour, Checkpoint } from '../../../protocol/behaviour.ts'
import { moveOver, successionOf } from '../../../protocol/entry/succession.ts'
import type { Standing } from '../../../protocol/entry/succession.ts'
import type { EntryRow } from '../../../storage/journal.ts'
import type { Activation } from './activation.ts'
import { firstNumber } from './loading.ts'
import type { LoadedEntry } from './loading.ts'
import { stored } from '../core.ts'
import type { ShardContext } from '../core.ts'

/** Bytes of entries read at a time; between two reads other actors have their turns. */
const PAGE_BYTES = 256 * 1024

/** What reads an actor's past: when its turn is over nobody wants to know any more. */
export interface PastReader {
  readonly isOver: boolean
}

/** Whose actors' pasts are read. */
export interface HistoryHost {
  readonly context: Pick<ShardContext, 'journal' | 'clock'>
  /** Entries of an actor that are decided but not yet in the derived rows, oldest first. */
  unflushed(actorId: string): readonly LoadedEntry[]
}

export class History {
  readonly #shard: HistoryHost

  constructor(shard: HistoryHost) {
    this.#shard = shard
  }

  /** The actor's entries so far, oldest first, page by page: each page may be dropped at once. */
  entriesOf({ id }: Activation, reader: PastReader): AsyncIterable<readonly LoadedEntry[]> {
    return this.#pages(id, reader)
  }

  /** One per message that committed records, oldest first; the newest that `limit` has room for. */
  async checkpointsOf(
    activation: Activation,
    reader: PastReader,
    limit: number,
  ): Promise<readonly Checkpoint[]> {
    const shard = this.#shard
    const newestFirst: Checkpoint[] = []
    let bytesLeft = LIMITS.sharding.checkpointsBytesMax
    const take = ({ body }: LoadedEntry): void => {
      const entry = decodeEntry(body)
      if (!isCheckpoint(entry)) return
      const checkpoint = checkpointOf(entry, activation.behaviour)
      bytesLeft -= Buffer.byteLength(JSON.stringify(checkpoint)) + 1
      if (bytesLeft >= 0) newestFirst.push(checkpoint)
    }
    const isFull = (): boolean => newestFirst.length >= limit || bytesLeft < 0 || reader.isOver
    const unflushed = [...shard.unflushed(activation.id)]
    let before = Math.min(firstNumber(unflushed), activation.n + 1)
    for (const one of unflushed.toReversed()) if (!isFull()) take(one)
    while (!isFull() && before > 1) {
      const rows = await stored(
        shard.context.journal.derived.entries(activation.id, {
          order: 'descending',
          before,
          countMax: LIMITS.protocol.checkpointsMax,
          bytesMax: PAGE_BYTES,
        }),
      )
      if (rows.length === 0) break
      before = rows.at(-1)!.n
      for (const row of rows) if (!isFull()) take(row)
      await this.#goOn()
    }
    return newestFirst.toReversed()
  }

  /** The actor's state right after a checkpoint, folded from its first record; null: no such. */
  async stateAt(activation: Activation, reader: PastReader, wanted: string): Promise<unknown> {
    let state: unknown = null
    for await (const page of this.#pages(activation.id, reader)) {
      for (const { body } of page) {
        const entry = decodeEntry(body)
        for (const [i, record] of recordsOf(entry, activation.behaviour).entries()) {
          state = activation.behaviour.evolve(state, record, metaOf(entry, i))
        }
        if (isCheckpoint(entry) && checkpointId(entry.p, entry.m, entry.t) === wanted) return state
      }
    }
    return null
  }

  /**
   * Every entry of the actor, oldest first, page by page, as an activation is loaded: what is not
   * durable yet is taken before anything is read, and leftovers of a left history are passed over.
   * Throws when entries with records are missing.
   */
  async *#pages(actorId: string, reader: PastReader): AsyncGenerator<readonly LoadedEntry[], void> {
    const shard = this.#shard
    const unflushed = [...shard.unflushed(actorId)]
    const unflushedN = firstNumber(unflushed)
    const at: Standing = { version: 0, recordedAt: 0 }
    for (let after = 0; !reader.isOver;) {
      const rows: readonly EntryRow[] = await stored(
        shard.context.journal.derived.entries(actorId, {
          order: 'ascending',
          after,
          bytesMax: PAGE_BYTES,
        }),
      )
      if (rows.length === 0) break
      const own = rows.filter((row) => row.n < unflushedN && isNext(actorId, at, row))
      if (own.length > 0) yield own
      after = rows.at(-1)!.n
      if (after >= unflushedN) break
      await this.#goOn()
    }
    const rest = unflushed.filter((one) => isNext(actorId, at, one))
    if (rest.length > 0) yield rest
  }

  /** Others have their turns in between, and the process shows that it is alive. */
  #goOn(): Promise<void> {
    return new Promise((resolve) => this.#shard.context.clock.defer(resolve))
  }
}

/** Moves over an entry that belongs to the actor's history; false: it was left. */
function isNext(actorId: string, at: Standing, { offset, body }: LoadedEntry): boolean {
  const entry = decodeEntry(body)
  const succession = successionOf(at, entry, offset)
  if (succession === 'gap') throw new Error(`entries of ${actorId} before ${entry.n} are missing`)
  if (succession === 'next') moveOver(at, entry, offset)
  return succession === 'next'
}

function isCheckpoint(entry: EntryHead): boolean {
  return entry.r.length > 0
}

function checkpointOf(entry: AnyEntry, behaviour: Behaviour): Checkpoint {
  // A type that works by commands names them in the first record of its message.
  const commands = recordsOf(entry, behaviour)[0]!['commands']
  return {
    checkpointId: checkpointId(entry.p, entry.m, entry.t),
    timestamp: new Date(entry.t).toISOString(),
    metadata:
      commands === undefined ? { message: entry.a.type } : { message: entry.a.type, commands },
  }
}
