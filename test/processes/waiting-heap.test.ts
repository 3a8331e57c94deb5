// What requests that waited for the graph index leave behind: nothing, by the heap of a process of
// its own.

import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'

const PROCESS = fileURLToPath(
  new URL('../../node/indexing/cluster/testing/waiting-heap.ts', import.meta.url),
)

t.test('ten thousand of them', async (t) => {
  const { stdout } = await promisify(execFile)(process.execPath, ['--expose-gc', PROCESS])
  const { requests, heldBytes } = JSON.parse(stdout) as { requests: number; heldBytes: number }
  t.equal(requests, 10_000)
  t.ok(heldBytes < 4 * 1024 * 1024, `${heldBytes} bytes after ${requests} requests`)
})
