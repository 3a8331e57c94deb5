// A process that waits for a graph index that stands still, 10,000 times, and says what it holds
// afterwards. Started with --expose-gc by a test, which reads its one line.

import { IndexWaiting } from '../index-waiting.ts'
import { ManualClock } from '../../testing/manual-clock.ts'

const ROUNDS = 50
const EACH = 200
const WAIT_MS = 500

const clock = new ManualClock()
const watch = new IndexWaiting({
  clock,
  live: () => 1,
  applied: (shard) => (shard === 0 ? 3 : null),
  stored: () => Promise.resolve(0),
  refresh: () => Promise.resolve(),
  follows: (shard) => shard >= 0 && shard < 2,
  head: () => null,
  flushed: () => Promise.resolve(0),
})

function heap(): number {
  globalThis.gc!()
  globalThis.gc!()
  return process.memoryUsage().heapUsed
}

async function round(): Promise<void> {
  const all = Array.from({ length: EACH }, (_, i) =>
    Promise.resolve(watch.reached([{ shard: i % 2, offset: 5 }], WAIT_MS)),
  )
  for (let ms = 0; ms < WAIT_MS + 100; ms += 50) {
    await new Promise((resolve) => setImmediate(resolve))
    clock.advance(50)
  }
  await Promise.all(all)
}

await round()
const before = heap()
for (let i = 0; i < ROUNDS; i++) await round()
process.stdout.write(JSON.stringify({ requests: ROUNDS * EACH, heldBytes: heap() - before }))
