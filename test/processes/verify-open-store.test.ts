// verify-log beside another process that has the store open: it reads it, and repairs nothing of
// it. Source: PROTOCOL 3.16.

import { spawn, type ChildProcess } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { PROCESS, startRole } from '../../storage/embedded/testing/journal-children.ts'
import { journalOptions } from '../../storage/embedded/testing/journal-options.ts'
import { entryOf, flush, storeOf, verify } from '../../storage/embedded/testing/written-store.ts'
import { verifyLog } from '../../storage/embedded/verify/store.ts'

const IS_OPEN = /process \d+ has the data directory open/

void t.test('what another process has open is not repaired', async (t) => {
  const { dir } = journalOptions(t)
  const node = startRole(t, 'stay', dir)
  for await (const line of node.lines) if ('epoch' in line) break
  t.same(await verify(t, dir), [], 'only reading takes nothing from it')
  const found = await verify(t, dir, { repair: true })
  t.equal(found.length, 1, found.join('; '))
  t.match(found[0], IS_OPEN)
  node.process.kill('SIGKILL')
  await node.ended
  t.same(await verify(t, dir, { repair: true }), [], 'one that was killed has nothing open')
})

void t.test('a node that starts while a store is repaired ends the repair', async (t) => {
  const dir = await storeOf(t, async (written) => {
    await written.put({ bodies: [entryOf(1, 0, 2), entryOf(2, 2)] })
    flush(written, 2)
  })
  const lines: string[] = []
  let node: ChildProcess | null = null
  await verifyLog(
    dir,
    (line) => {
      lines.push(line)
      node ??= openBeside(t, dir)
    },
    { repair: true },
  )
  t.equal(lines.length, 2, lines.join('; '))
  t.match(lines[0], /entry 1 .*; it was put back$/)
  t.match(lines[1], IS_OPEN)
})

/** A process that has the directory open; this one stands still until it has. */
function openBeside(t: Test, dir: string): ChildProcess {
  const said = join(mkdtempSync(join(tmpdir(), 'kontor-verify-')), 'said')
  const to = openSync(said, 'w')
  const child = spawn(process.execPath, [PROCESS, 'stay', dir], {
    stdio: ['ignore', to, 'inherit'],
  })
  t.teardown(() => {
    child.kill('SIGKILL')
    closeSync(to)
    rmSync(dirname(said), { recursive: true })
  })
  const still = new Int32Array(new SharedArrayBuffer(4))
  const untilMs = performance.now() + 20_000
  while (!readFileSync(said, 'utf8').includes('epoch')) {
    if (performance.now() > untilMs) throw new Error('the other process says nothing')
    Atomics.wait(still, 0, 0, 20)
  }
  return child
}
