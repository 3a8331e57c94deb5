// How far a shard's log reaches in the store: where it begins and where it ends, read beside the
// members that serve. Source: PROTOCOL 3.0, 3.5 "Trim".

import { cassandraOptions } from '../../cli/cassandra-options.ts'
import { readStore } from '../../storage/cassandra/identity.ts'
import { CassandraSegments } from '../../storage/cassandra/segments.ts'
import { connectSession } from '../../storage/cassandra/store.ts'
import type { SegmentStore } from '../../storage/segments.ts'
import type { Cluster } from './harness/cluster.ts'

export interface LogExtent {
  /** Offset behind which its rows begin; `head`, where no row is left. */
  readonly begin: number
  /** Offset of its last entry. */
  readonly head: number
}

export async function logExtent({ settings }: Cluster, shard: number): Promise<LogExtent> {
  const loaded = cassandraOptions(settings, undefined, () => '')
  if ('problems' in loaded) throw new Error(loaded.problems.join('\n'))
  const { options } = loaded
  const session = await connectSession(options)
  try {
    const store = await readStore(session, options.keyspace)
    if (store === null) throw new Error(`${options.keyspace} holds no store`)
    session.use(store.serial)
    return await extentOf(new CassandraSegments(session, options.keyspace), shard)
  } finally {
    await session.close()
  }
}

async function extentOf(segments: SegmentStore, shard: number): Promise<LogExtent> {
  let begin: number | null = null
  let head = 0
  for (let segment = 1; ; segment++) {
    const statics = await segments.statics({ shard, segment })
    if (statics === null) return { begin: begin ?? head, head }
    head = statics.head
    if (begin !== null) continue
    const [first] = await segments.rows({ shard, segment }, { after: 0, bytesMax: 1 })
    if (first !== undefined) begin = first.offset - first.count
  }
}
