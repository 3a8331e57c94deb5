// A thread that reads a journal which the main thread writes, as the index's thread does. For
// journal-processes.test.ts.

import { parentPort, workerData } from 'node:worker_threads'
import { openEmbeddedJournalReader, type JournalAccess } from '../journal/journal.ts'

const { access, turn } = workerData as { access: JournalAccess; turn: Int32Array }
const reader = openEmbeddedJournalReader(access)
const port = parentPort!

/** Reads, and again in the same turn when the main thread has written: no timer runs in between. */
async function readTwice(shard: number): Promise<unknown> {
  const before = reader.log.status(shard)
  Atomics.store(turn, 0, 1)
  Atomics.wait(turn, 0, 1, 10_000)
  const after = reader.log.status(shard)
  return [(await before).head, (await after).head]
}

async function answer(shard: number | null): Promise<unknown> {
  if (shard === null) {
    await reader.close()
    return 'closed'
  }
  if (Atomics.load(turn, 0) === -1) return readTwice(shard)
  const rows = await reader.log.read(shard, 0, 1e9)
  return {
    head: (await reader.log.status(shard)).head,
    last: rows.at(-1)?.offset ?? 0,
    flush: await reader.derived.consumer(shard, 'flush'),
    actors: (await reader.derived.actors(null, 1_000)).length,
  }
}

const say = (what: unknown) => port.postMessage(what)

port.on('message', (shard: number | null) => {
  void answer(shard).then((what) => {
    say(what)
    if (what === 'closed') port.close()
  })
})
say(reader.identity)
