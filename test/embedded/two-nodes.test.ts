// A second node on the directory of a running one: it is refused with a sentence that says who has
// it, and the first one goes on as if nothing had happened; so are the commands that write there.
// Source: PROTOCOL 3.16.

import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { NodeProcess, startNode } from '../harness/node-process.ts'
import { Load, checkKept } from '../harness/load.ts'
import { until } from '../harness/patience.ts'

const REPAIR = fileURLToPath(new URL('../../cli/verify-log.ts', import.meta.url))

/** What a command prints, and the code that it ends with. */
function run(args: readonly string[]): Promise<{ code: number; said: string }> {
  return new Promise((resolve) => {
    const child = execFile(process.execPath, args, (_error, out, err) => {
      resolve({ code: child.exitCode ?? -1, said: out + err })
    })
  })
}

t.test('a second node on the same directory', async (t) => {
  const first = await startNode(t)
  const load = new Load(first, 'first')
  await until('there is a load', () => load.acknowledged.length > 200)

  const second = new NodeProcess({}, first.dir)
  t.teardown(() => second.kill())
  second.launch()
  await until('the second one ends', () => !second.isUp)
  t.not(second.exitCode, 0, 'it says so by its exit code')
  t.match(second.output, `is in use by process ${first.pid} (a node at http`, 'and by a sentence')

  const repair = await run([REPAIR, '--data', first.dir, '--repair'])
  t.equal(repair.code, 1)
  t.match(repair.said, `is in use by process ${first.pid}`)

  const before = load.acknowledged.length
  await until('the first one goes on', () => load.acknowledged.length > before + 200)
  t.ok(first.isUp)
  await load.stop()
  await checkKept(t, first, [load])
  await first.stop()
  await first.start()
  const { orders } = await first.graph<{ orders: number }>([{ edge: 'orders', count: true }])
  t.ok(orders >= load.acknowledged.length, `${orders} for ${load.acknowledged.length}`)
})
