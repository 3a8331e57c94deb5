// A second node on the directory of a running one, under load: one of them writes, never both;
// nothing acknowledged is lost and nothing is mixed. Source: ARCHITECTURE 3 (promise 3), PROTOCOL
// 3.16 (fencing between processes).

import t from 'tap'
import { NodeProcess, startNode } from '../harness/node-process.ts'
import { Load, checkKept } from '../harness/load.ts'
import { until } from '../harness/patience.ts'

t.test('a second node on the same directory', async (t) => {
  const first = await startNode(t)
  const loads = [new Load(first, 'first')]
  await until('there is a load', () => loads[0]!.acknowledged.length > 200)

  const second = new NodeProcess({}, first.dir)
  t.teardown(() => second.kill())
  second.launch()
  await until('one of them is told', () => !first.isUp || !second.isUp)
  const [winner, loser] = first.isUp ? [first, second] : [second, first]
  t.comment(`the ${winner === first ? 'first' : 'second'} one goes on`)
  t.not(loser.exitCode, 0, 'the one that may not go on says so by its exit code')
  t.match(loser.output, /another process|taken|fenced|lost/i, loser.output.slice(-500))
  if (winner === second) {
    await second.ready()
    loads.push(new Load(second, 'second'))
    await until('the second one serves', () => loads[1]!.acknowledged.length > 100)
  }
  for (const load of loads) await load.stop()
  await checkKept(t, winner, loads)
  await winner.stop()
  await winner.start()
  const loaded = loads.reduce((sum, { acknowledged }) => sum + acknowledged.length, 0)
  const { orders } = await winner.graph<{ orders: number }>([{ edge: 'orders', count: true }])
  t.ok(orders > loaded, `${orders} for ${loaded} and the last one`)
})
