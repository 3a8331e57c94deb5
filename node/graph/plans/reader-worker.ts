// The reader thread of an embedded node: opens the index and the journal for reading and answers
// the plans it is sent. Source: ARCHITECTURE 5.

import { parentPort, workerData } from 'node:worker_threads'
import { assert } from '../../../protocol/errors.ts'
import { graphSchema } from '../../../protocol/graph/schema.ts'
import { decodeSnapshot } from '../../../cluster/sharding/turn/activation.ts'
import { openEmbeddedJournalReader } from '../../../storage/embedded/journal/journal.ts'
import { SqliteGraphReader } from '../../../storage/sqlite/reader.ts'
import { GiveWay } from './give-way.ts'
import { cursorSeal } from '../cursors.ts'
import { derivedHistory } from '../history.ts'
import { PlanServer } from './plan-server.ts'
import {
  type FromReader,
  type ReaderWorkerData,
  type PlansIndex,
  type ToReader,
  threadsMs,
} from './reader-messages.ts'
import { giveMemoryBackWhenIdle } from '../../idle-memory.ts'
import { loadTable } from '../table.ts'

giveMemoryBackWhenIdle()
assert(parentPort !== null, 'this file runs as a worker thread')
const port = parentPort
const data = workerData as ReaderWorkerData
const { journal: access, table: tableUrl } = data
const post = (message: FromReader): void => port.postMessage(message)

const table = await loadTable(tableUrl)
const journal = openEmbeddedJournalReader(access)
const giveWay = new GiveWay(data.giveWay, threadsMs)
const history = derivedHistory({
  behaviours: new Map(table.map((behaviour) => [behaviour.type, behaviour])),
  derived: journal.derived,
  decodeSnapshot,
})
const cursors = cursorSeal(journal.identity.secret)
const readerOf = ({ nodeTypes, number }: PlansIndex): SqliteGraphReader =>
  new SqliteGraphReader({
    dir: access.dir,
    number,
    mayGoOn: () => giveWay.check(),
    schema: graphSchema(nodeTypes),
    history,
    cursors,
  })
const server = new PlanServer(readerOf(data.reads), threadsMs)

let longOnes = 0

port.on('message', (message: ToReader | PlansIndex) => {
  if ('nodeTypes' in message) return server.follow(readerOf(message))
  // Behind a long plan nothing is begun: there may be another thread that is free by now.
  if (message.round < longOnes) {
    post({ id: message.id, gaveWay: true, us: 0, isHeavy: false, isLong: false })
    return undefined
  }
  giveWay.begin(message.mayStop)
  const answer = server.answer(message)
  const { isHeavy, isLong } = giveWay
  if (isLong) longOnes++
  post({ ...answer, isHeavy, isLong })
  return undefined
})
post('ready')
