// What the cluster scenarios rest on: a quota holds a process to its share, the machine's idle time
// is what is left, and wrong arguments are told.

import t from 'tap'
import { spawn } from 'node:child_process'
import { processUsage } from '../target/process-usage.ts'
import { MachineTime } from './machine-time.ts'
import { isClusterScenario, parseClusterOptions } from './options.ts'
import { openQuotas } from './quota.ts'
import type { Quotas } from './quota.ts'
import { pausesMs } from './shard-watch.ts'

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
  t.match(parseClusterOptions('handoff', []), { quota: null, out: null })
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
