// SIGTERM under load: what got an answer is kept, clients are told to close, the process ends with
// 0 in time; and the next start is quick and has everything. Source: CONTRACT 0 "Shutdown",
// ARCHITECTURE 3 (promise 10), README "Start".

import t from 'tap'
import { startNode } from '../harness/node-process.ts'
import type { NodeProcess } from '../harness/node-process.ts'
import { Load, checkKept } from '../harness/load.ts'
import { until } from '../harness/patience.ts'

/** True when one of a few starts is so quick: other work on the machine may slow some down. */
async function startsWithin(node: NodeProcess, ms: number): Promise<boolean> {
  for (let attempt = 0; attempt < 4; attempt++) {
    const began = performance.now()
    await node.start()
    if (performance.now() - began < ms) return true
    await node.stop()
  }
  return false
}

t.test('SIGTERM under load', async (t) => {
  const node = await startNode(t, { KONTOR_LOG_LEVEL: 'info' })
  const load = new Load(node, 'term')
  await until('there is a load', () => load.acknowledged.length > 300)
  const before = load.answers.length
  const code = await node.stop()
  await load.ended()
  t.equal(code, 0, node.output)
  t.match(node.output, /"msg":"stopped"/)
  const statuses = new Set(load.answers.map(({ status }) => status))
  for (const status of statuses) t.ok([200, 429, 503].includes(status), `${status}`)
  const closing = load.answers
    .slice(before)
    .filter(({ headers }) => headers['connection'] === 'close')
  t.ok(closing.length > 0, `${closing.length} answers told their client to close`)

  await node.start()
  await checkKept(t, node, [load])
  await node.stop()
  t.ok(await startsWithin(node, 3_000), 'a second start takes at most 3 s')
})

t.test('SIGINT, and a second signal, are no harm', async (t) => {
  const node = await startNode(t)
  const load = new Load(node, 'int', 4)
  await until('there is a load', () => load.acknowledged.length > 50)
  process.kill(node.pid, 'SIGINT')
  process.kill(node.pid, 'SIGTERM')
  t.equal(await node.ended(), 0, node.output)
  await load.ended()
  await node.start()
  await checkKept(t, node, [load])
})
