// What the cluster scenarios rest on: a quota holds a process to its share, the machine's idle time
// is what is left, and wrong arguments are told.

import t from 'tap'
import { spawn } from 'node:child_process'
import type { Window } from '../../bench/course.ts'
import { processUsage } from '../../bench/target/process-usage.ts'
import type { EngineReading } from '../../bench/cluster/engine-watch.ts'
import { MachineTime } from '../../bench/cluster/machine-time.ts'
import { isClusterScenario, parseClusterOptions } from '../../bench/cluster/options.ts'
import { openQuotas } from '../../bench/cluster/quota.ts'
import type { Quotas } from '../../bench/cluster/quota.ts'
import { pausesMs } from '../../bench/cluster/shard-watch.ts'
import { clusterSoakText } from '../../bench/cluster/soak.ts'

const SPIN = 'const end = Date.now() + 60_000; while (Date.now() < end);'

t.test('a quota holds all of a process to its share', async (t) => {
  let quotas: Quotas
  try {
    quotas = openQuotas(`kontor-test-${process.pid}`)
  } catch (error) {
    t.match((error as Error).message, /cgroup v1|can not be set here/, 'it says what is missing')
    return
  }
  const child = spawn(process.execPath, ['-e', SPIN], { stdio: 'ignore' })
  const ended = new Promise((resolve) => void child.once('exit', resolve))
  t.teardown(async () => {
    child.kill('SIGKILL')
    await ended
    quotas.close()
  })
  const quota = quotas.add('one', child.pid!)
  /** CPUs that it uses over so long. */
  const used = async (ms: number): Promise<number> => {
    const [beganMs, before] = [performance.now(), processUsage(child.pid!)!.cpuMs]
    await new Promise((resolve) => void setTimeout(resolve, ms))
    return (processUsage(child.pid!)!.cpuMs - before) / (performance.now() - beganMs)
  }
  quota.set(0.1)
  const held = await used(800)
  t.ok(held < 0.15, `held to 0.1 CPUs it uses ${held.toFixed(2)}`)
  quota.set(null)
  // Other work may leave it little, but more than before.
  let free = 0
  for (let i = 0; i < 10 && free < 0.2; i++) free = Math.max(free, await used(300))
  t.ok(free > 0.15, `let go it uses ${free.toFixed(2)}`)
})

t.test('idle time of the machine', async (t) => {
  const time = new MachineTime()
  time.start()
  await new Promise((resolve) => void setTimeout(resolve, 300))
  time.stop()
  t.ok(time.idle >= 0 && time.idle <= 1, String(time.idle))
})

t.test('arguments', (t) => {
  t.ok(isClusterScenario('scale-out'))
  t.notOk(isClusterScenario('order-create'))
  t.notOk(isClusterScenario(undefined))
  t.match(parseClusterOptions('scale-out', ['--members', '1,3', '--quota', '0.2', '--runs', '2']), {
    members: [1, 3],
    quota: 0.2,
    runs: 2,
    seconds: 10,
  })
  t.match(parseClusterOptions('handoff', []), { quota: null, out: null, rate: 100 })
  const soak = parseClusterOptions('cluster-soak', ['--minutes', '2'])
  t.match(soak, { rate: 300, minutes: 2 })
  const wrong = parseClusterOptions('scale-out', [
    '--members',
    '4,2',
    '--quota',
    '0',
    '--runs',
    'x',
  ])
  t.match(wrong, { problems: [/--members 4,2/, /--quota 0/, /--runs x/] })
  t.match(parseClusterOptions('takeover', ['--nonsense']), { problems: [/nonsense/] })
  t.end()
})

t.test('the pause of a shard is its longest look', (t) => {
  const look = (shard: number, sentAt: number, tookMs: number) => {
    return { shard, sentAt, tookMs, status: 200 }
  }
  const looks = [
    look(0, 0, 90),
    look(0, 100, 5),
    look(0, 120, 30),
    look(1, 95, 10),
    look(1, 120, 7),
  ]
  t.same(pausesMs(looks, 100), [10, 30], 'of those that ended behind the moment')
  t.end()
})

t.test('a row of a soak has the window that ended before the engines were read', (t) => {
  const window = (atSeconds: number, rate: number) =>
    ({
      atSeconds,
      rate,
      p50: 4_000,
      p99: 20_000,
      cpu: 900,
      rssAnonMiB: 600,
      lagSeconds: 1,
    }) as Window
  const engines = { cassandraFiles: 3, cassandraMiB: 12, tombstonesP99: 1, tombstonesMax: 2 }
  const reading = (atSeconds: number): EngineReading => ({
    ...{ ...engines, atSeconds, redisMiB: 1.5 },
    ...{ elasticSegments: 20, elasticDocs: 300, elasticDeleted: 4, elasticMiB: 5 },
  })
  const text = clusterSoakText({
    windows: [window(30, 299), window(60, 301)],
    engines: [reading(0), reading(31), reading(61)],
    failures: { closed: 2 },
    acknowledged: 18_000,
    inGraph: 17_999,
  })
  const [, first, second, third, end] = text.split('\n')
  t.match(first, /^ +0 +- +-/)
  t.match(second, /^ +31 +299 +4\.0 +20\.0 +900 +600 +1\.0 \| +3 +12 +1 +2 \| +1\.5 \| +20/)
  t.match(third, /^ +61 +301 /)
  t.equal(end, '18000 acknowledged, 17999 in the graph, 2 x closed')
  t.end()
})
