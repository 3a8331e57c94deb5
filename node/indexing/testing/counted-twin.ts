// The index worker's stand-in that counts itself: how many there are, and how many there were at
// once, in what the journal shares.

import { workerData } from 'node:worker_threads'
import type { IndexWorkerData } from '../embedded/index-messages.ts'

const counts = new Int32Array((workerData as IndexWorkerData).journal.end)
const now = Atomics.add(counts, 0, 1) + 1
if (now > Atomics.load(counts, 1)) Atomics.store(counts, 1, now)
process.on('exit', () => Atomics.sub(counts, 0, 1))
await import('./index-twin.ts')
