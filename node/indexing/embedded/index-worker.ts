// The index's worker thread of an embedded node: opens the journal for reading and the index for
// writing, and lets the projector follow. The main thread only tells heads. Source: ARCHITECTURE 2,
// PROTOCOL 3.16.

import { parentPort, workerData } from 'node:worker_threads'
import { LIMITS } from '../../../config/limits.ts'
import { assert } from '../../../protocol/errors.ts'
import { graphSchema } from '../../../protocol/graph/schema.ts'
import { type ParkedActor, reasonOf } from '../../../cluster/feed/projection-batch.ts'
import { Projector } from '../../../cluster/feed/projector.ts'
import { decodeSnapshot } from '../../../cluster/sharding/turn/activation.ts'
import { openEmbeddedJournalReader } from '../../../storage/embedded/journal/journal.ts'
import { discardIndex, isDamage } from '../../../storage/sqlite/file.ts'
import { SqliteGraphWriter } from '../../../storage/sqlite/writer.ts'
import { giveMemoryBackWhenIdle } from '../../idle-memory.ts'
import { lowerThreadPriority } from '../../thread-priority.ts'
import { parkedConsumerOf } from './index-files.ts'
import { IndexLoop } from './index-loop.ts'
import type { FromIndexWorker, IndexWorkerData, ToIndexWorker } from './index-messages.ts'
import { SharedProgress } from './shared-progress.ts'
import { loadTable } from '../../graph/table.ts'

/**
 * Acknowledgements come before the graph, but they wait for it past a bound (ARCHITECTURE 8). So it
 * has a third of the others' weight: at the lowest priority it gets nothing on a busy machine.
 */
const INDEX_PRIORITY = 5
lowerThreadPriority(INDEX_PRIORITY)
giveMemoryBackWhenIdle()
assert(parentPort !== null, 'this file runs as a worker thread')
const port = parentPort
const data = workerData as IndexWorkerData
const place = { dir: data.journal.dir, number: data.number }
const post = (message: FromIndexWorker): void => port.postMessage(message)

const table = await loadTable(data.table)
const schema = graphSchema(data.nodeTypes)
const journal = openEmbeddedJournalReader(data.journal)
const rows = table.flatMap(({ nodeTypes }) => nodeTypes).map(({ name }) => name)
const index = new SqliteGraphWriter({
  ...place,
  schema,
  isFilling: data.isFilling,
  passesOver: new Set(rows.filter((name) => !schema.nodes.has(name))),
})
let share = data.isFilling ? LIMITS.indexing.besideShare : 1
const progress = new SharedProgress(data.shards, data.progress)

/** Rows of parked actors that the main thread has been asked to write. */
const asked = new Map<number, { resolve: () => void; reject: (error: Error) => void }>()
let nextId = 1

function ask(kind: 'park' | 'unpark', parked: ParkedActor): Promise<void> {
  const id = nextId++
  return new Promise((resolve, reject) => {
    asked.set(id, { resolve, reject })
    post({ kind, id, parked })
  })
}

const clock = (): number => performance.now()
const after = (ms: number, run: () => void): (() => void) => {
  const timer = setTimeout(run, ms)
  return () => clearTimeout(timer)
}

function onFailure(error: unknown): void {
  post({ kind: 'failed', error: reasonOf(error) })
  if (!isDamage(error)) return
  // What is in the index can be made again: a new start of this thread begins with a new file.
  index.abandon()
  discardIndex(place)
  process.exit(1)
}

const projector = new Projector({
  consumer: parkedConsumerOf(data.number),
  behaviours: new Map(table.map((behaviour) => [behaviour.type, behaviour])),
  log: journal.log,
  derived: journal.derived,
  index,
  decodeSnapshot,
  shards: data.shards,
  park: (parked) => ask('park', parked),
  unpark: (parked) => ask('unpark', parked),
  pause: () => new Promise<void>((resolve) => void setImmediate(resolve)),
  onReset(why) {
    progress.count('resets', 1)
    post({ kind: 'reset', why: why.message })
  },
  isAwaited: () => progress.awaited,
  clock,
})

const loop = new IndexLoop({
  projector,
  progress,
  generation: data.generation,
  share: () => share,
  onApplied: () => post({ kind: 'applied' }),
  onFailure,
  onBack: () => post({ kind: 'back' }),
  clock,
  after,
  defer: (run) => setImmediate(run),
})

function serve(): void {
  try {
    index.serve()
    post({ kind: 'served' })
  } catch (error) {
    onFailure(error)
  }
}

port.on('message', (message: ToIndexWorker) => {
  if (message.kind === 'wake') loop.wake()
  else if (message.kind === 'stop') loop.stop()
  else if (message.kind === 'hurry') share = 1
  else if (message.kind === 'serve') serve()
  else if (message.kind === 'retry') {
    projector.retryParked(message.actorId ?? undefined)
    loop.wake()
  } else {
    const waiting = asked.get(message.id)
    asked.delete(message.id)
    if (message.error === null) waiting?.resolve()
    else waiting?.reject(new Error(message.error))
  }
})

post({ kind: 'opened' })
await loop.run()
try {
  index.close()
} catch (error) {
  onFailure(error)
}
await journal.close()
port.close()
