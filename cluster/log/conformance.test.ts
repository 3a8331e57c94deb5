// The log over segments in memory passes the suite of every log, with a roll before every append.

import t from 'tap'
import { freshUuid } from '../../storage/conformance/journal-samples.ts'
import type { MakeLog } from '../../storage/conformance/journal-samples.ts'
import { logConformance } from '../../storage/conformance/log.ts'
import { newState, takeShard } from './testing/engine.ts'
import { owner } from './testing/owner.ts'

/**
 * Segments of one row: all but the last row may be trimmed. By entries, which a new tenure finds in
 * the statics; the rows of the tenure before it are not counted.
 */
const ROLLING = { rowsMax: 1, bytesMax: 1e9, entriesMax: 1 }

const makeLog: MakeLog = async (_, shards) => {
  const state = newState(shards)
  const { log } = owner(state, ROLLING)
  const claim = async (shard: number) =>
    log.claim(shard, await takeShard(state, shard, freshUuid()))
  return { log, claim, keepsLast: true }
}

logConformance(t, makeLog)
