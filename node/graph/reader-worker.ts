// The reader thread of an embedded node: opens the index and the journal for reading and answers
// the plans it is sent. It stands between the main thread and the two stores. Source: ARCHITECTURE
// 5.

import { parentPort, workerData } from 'node:worker_threads'
import { assert } from '../../protocol/errors.ts'
import { graphSchema } from '../../protocol/graph/schema.ts'
import { decodeSnapshot } from '../../cluster/sharding/activation.ts'
import { openEmbeddedJournalReader } from '../../storage/embedded/journal.ts'
import { SqliteGraphReader } from '../../storage/embedded/search-reader.ts'
import { derivedHistory } from './history.ts'
import { PlanServer } from './plan-server.ts'
import { type ReaderWorkerData, type ToReader, threadsMs } from './reader-messages.ts'
import { giveMemoryBackWhenIdle } from '../idle-memory.ts'
import { loadTable } from './table.ts'

giveMemoryBackWhenIdle()
assert(parentPort !== null, 'this file runs as a worker thread')
const port = parentPort
const { journal: access, table: tableUrl } = workerData as ReaderWorkerData

const table = await loadTable(tableUrl)
const journal = openEmbeddedJournalReader(access)
const reader = new SqliteGraphReader({
  dir: access.dir,
  schema: graphSchema(table.flatMap(({ nodeTypes }) => nodeTypes)),
  history: derivedHistory({
    behaviours: new Map(table.map((behaviour) => [behaviour.type, behaviour])),
    derived: journal.derived,
    decodeSnapshot,
  }),
})
const server = new PlanServer(reader, threadsMs)

port.on('message', (message: ToReader) => port.postMessage(server.answer(message)))
