// Who may read what a node writes: its user alone. Secrets and customers are in it. Source: README
// "Operations".

import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { NodeProcess } from '../harness/node-process.ts'
import { smallOrder } from '../harness/orders.ts'

t.test('directories are 0700 and files 0600, whatever the mask of who starts it', async (t) => {
  const before = process.umask(0)
  t.teardown(() => process.umask(before))
  const dir = join(t.testdir({}), 'data')
  const node = new NodeProcess({}, dir)
  t.teardown(() => node.clear())
  await node.start()
  await smallOrder(node)
  await node.stop()
  const names = readdirSync(dir, { recursive: true }) as string[]
  t.ok(names.includes('data.mdb') && names.includes('graph.sqlite'), names.join(' '))
  for (const path of [dir, ...names.map((name) => join(dir, name))]) {
    const at = statSync(path)
    t.equal((at.mode & 0o777).toString(8), at.isDirectory() ? '700' : '600', path)
  }
})
