// The index worker's stand-in for tests: takes every head at once, parks when the head says so and
// takes it back at head 300, dies at head 666, says at head 555 that it was emptied, at heads that
// end with 444 that it could not go on, and one above that it does. One that is filled beside
// another is one entry behind until it is told to hurry; at head 777 it stays so. At head 888 it
// dies when it is told to serve.

import { parentPort, workerData } from 'node:worker_threads'
import type { FromIndexWorker, IndexWorkerData, ToIndexWorker } from '../embedded/index-messages.ts'
import { SharedProgress } from '../embedded/shared-progress.ts'

const port = parentPort!
const { shards, progress: buffer, isFilling } = workerData as IndexWorkerData
let isBehind = isFilling
const progress = new SharedProgress(shards, buffer)
const post = (message: FromIndexWorker): void => port.postMessage(message)

function follow(): void {
  for (;;) {
    progress.fallAsleep()
    let moved = false
    for (const [shard, full] of progress.heads()) {
      const head = isBehind || (isFilling && full === 777) ? full - 1 : full
      if (head <= progress.applied(shard)) continue
      if (head === 666) process.exit(1)
      if (head % 1_000 === 444) post({ kind: 'failed', error: 'the disk is away' })
      if (head % 1_000 === 445) post({ kind: 'back' })
      if (head === 555) post({ kind: 'reset', why: 'the log of shard 0 is gone' })
      moved = true
      progress.setApplied(shard, head, 0)
      if (head % 100 === 99) keep('park', shard, head)
      if (head === 300) keep('unpark', shard, 99)
    }
    if (!moved) break
    if (progress.awaited) post({ kind: 'applied' })
  }
}

function keep(kind: 'park' | 'unpark', shard: number, offset: number): void {
  const nodes = [{ node: 'notebook', id: 'a' }]
  const parked = { actorId: 'a', type: 'notebook', shard, offset, version: 1, nodes, reason: 'r' }
  post({ kind, id: offset, parked })
}

port.on('message', (message: ToIndexWorker) => {
  if (message.kind === 'wake') follow()
  else if (message.kind === 'stop') port.close()
  else if (message.kind === 'hurry') {
    isBehind = false
    follow()
  } else if (message.kind === 'serve') {
    if (progress.head(0) === 888) process.exit(1)
    post({ kind: 'served' })
  }
  // Handled when nothing is followed any more.
  else if (message.kind === 'retry') progress.count('resets', 1)
  else if (message.kind === 'kept') {
    progress.set('failures', message.error === null ? 1 : 2)
  }
})

post({ kind: 'opened' })
progress.ready = true
follow()
