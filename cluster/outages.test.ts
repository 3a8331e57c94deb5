// What a member says while its store is away: of each thing that it asks for once, then once a
// minute with how often it has failed, then that it is back (protocol/outage.ts).

import t from 'tap'
import { LIMITS } from '../config/limits.ts'
import type { Log } from '../protocol/log.ts'
import { Outage } from '../protocol/outage.ts'
import type { Journal } from '../storage/journal.ts'
import { MemoryControl, newStatementState } from '../storage/memory/statements.ts'
import { patiently } from './log/claim.ts'
import { DeathWatch } from './membership/death-watch.ts'
import { makePlacement } from './placement/testing/placement-scene.ts'
import { Scene } from './sharding/testing/scene.ts'
import { SystemFollower } from './system-follower.ts'
import { SystemMaps } from './system-view.ts'
import { TestClock, settle } from './testing/harness.ts'

/** A log whose lines are kept, as text and count. */
function noting(): { readonly lines: string[]; readonly log: Log } {
  const lines: string[] = []
  const note = (fields: object, text: string): void => {
    lines.push(`${text}: ${(fields as { failures?: number }).failures}`)
  }
  return { lines, log: { debug: note, info: note, warn: note, error: note } }
}

/** For two minutes and a bit, then `back`: four lines in all, the last of them that it is back. */
async function twoMinutes(clock: TestClock, ask: () => Promise<unknown>): Promise<number> {
  let asked = 0
  for (const untilMs = clock.monotonicMs() + 125_000; clock.monotonicMs() < untilMs; asked++) {
    await ask().catch(() => undefined)
    await clock.advance(500)
  }
  return asked
}

t.test('the system log', async (t) => {
  const clock = new TestClock()
  const { lines, log } = noting()
  let isAway = true
  const read = (): Promise<[]> => (isAway ? Promise.reject(new Error('away')) : Promise.resolve([]))
  const status = () => ({ epoch: 1, head: 7, lastCommit: null })
  const journal = { identity: {}, log: { read, status } } as unknown as Journal
  const maps = new SystemMaps(new Map())
  maps.offset = 7
  const follower = new SystemFollower({ journal, maps, clock, log })
  const asked = await twoMinutes(clock, () => follower.read())
  const failing = 'the system log could not be read; it is read again'
  t.same(lines.splice(0), [`${failing}: 1`, `${failing}: 121`, `${failing}: 241`])
  // What is pushed with a gap asks for the log as well.
  follower.take([], 99)
  await settle()
  t.same(lines, [])
  isAway = false
  await follower.read()
  await follower.read()
  t.same(lines, [`the system log is read again: ${asked + 1}`])
})

t.test('the control rows', async (t) => {
  const clock = new TestClock()
  const { lines, log } = noting()
  const control = new MemoryControl(newStatementState(1))
  let isAway = true
  const { members } = control
  control.members = () => (isAway ? Promise.reject(new Error('away')) : members.call(control))
  const nothing = (): void => undefined
  const watch = new DeathWatch({
    ...{ control, clock, log, member: 'me', mayJudge: () => true },
    ...{ onView: nothing, onDeclared: nothing },
  })
  watch.start()
  await twoMinutes(clock, () => Promise.resolve())
  isAway = false
  await clock.advance(1_000)
  watch.stop()
  const texts = lines.map((line) => line.replace(/: \d+$/, ''))
  t.same(texts, [
    ...Array(3).fill('the control rows can not be read'),
    'the control rows are read again',
  ])
})

t.test('claims that wait for their fence', async (t) => {
  const clock = new TestClock()
  const { lines, log } = noting()
  const outage = new Outage({
    ...{ log, now: () => clock.monotonicMs(), failing: 'away', back: 'back' },
  })
  let isAway = true
  const ask = (): Promise<string> =>
    isAway ? Promise.reject(new Error('away')) : Promise.resolve('there')
  for (let i = 0; i < 25; i++) {
    const untilMs = clock.monotonicMs() + LIMITS.log.claimMs
    const eight = Array.from({ length: 8 }, () => patiently({ clock, outage, untilMs }, ask))
    const over = Promise.allSettled(eight)
    await clock.advance(LIMITS.log.claimMs)
    await over
  }
  t.equal(lines.length, 3, 'of some two thousand failures')
  isAway = false
  await patiently({ clock, outage, untilMs: Infinity }, ask)
  t.match(lines[3], /^back/)
})

t.test('shards that are not taken over', async (t) => {
  const { lines, log } = noting()
  const world = makePlacement(t, 3, log)
  const { host, clock, rows } = world
  host.script.claim = () => Promise.reject(new Error('the store is away'))
  await world.start()
  await twoMinutes(clock, () => Promise.resolve())
  const of = (text: RegExp): string[] => lines.filter((line) => text.test(line))
  t.equal(of(/could not be taken over/).length, 3)
  rows.isAway = true
  await clock.advance(5_000)
  rows.isAway = false
  t.equal(of(/not be taken over/).length, 3, 'nor when the rows are not read')
  t.same(of(/no shard is left/), [])
  host.script.claim = () => Promise.resolve()
  await world.until('all are served', () => [0, 1, 2].every(world.serves))
  t.equal(of(/no shard is left/).length, 1)
})

t.test('rows of committed entries', async (t) => {
  const scene = new Scene({ hooks: {} })
  await scene.run(scene.shard.claim())
  const id = await scene.made()
  await scene.clock.advance(LIMITS.sharding.flushStoredMs * 2)
  scene.logged.length = 0
  scene.journal.hooks.beforeWrite = () => {
    throw new Error('the store is away')
  }
  await scene.run(scene.ask(id, { say: [['append', { token: 'x' }]] }))
  await twoMinutes(scene.clock, () => Promise.resolve())
  const of = (text: RegExp): string[] => scene.logged.filter((line) => text.test(line))
  t.equal(of(/derived rows are not written/).length, 3)
  const away = scene.journal.hooks.beforeWrite
  scene.journal.hooks.beforeWrite = undefined
  await scene.clock.advance(LIMITS.sharding.flushRetryMs * 2)
  scene.journal.hooks.beforeWrite = away
  await scene.run(scene.ask(id, { say: [['append', { token: 'y' }]] }))
  await scene.clock.advance(LIMITS.sharding.flushRetryMs * 2)
  t.match(of(/derived rows are not written/).slice(3), [/ 1$/], 'the next one is told at once')
})
