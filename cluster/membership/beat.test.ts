// The beats of one incarnation by themselves: what is told of each, and that nothing is told of an
// incarnation that is over. Source: PROTOCOL 3.3.2.

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import type { MemberRow, Outcome } from '../../storage/control.ts'
import { TestClock, settle } from '../testing/harness.ts'
import { BeatLoop } from './beat.ts'
import type { BeatReport } from './beat.ts'

const nothing = (): void => undefined
const INCARNATION = { member: 'a', incarnation: 'inc-a' }

/** Beats on a row that a test changes; statements and reads end as it says. */
function beating() {
  const clock = new TestClock()
  const told: string[] = []
  const logged: string[] = []
  const keep = (_: object, text: string): void => void logged.push(text)
  const log = { debug: nothing, info: keep, warn: keep, error: keep }
  const scene = {
    logged,
    clock,
    told,
    row: { ...INCARNATION, state: 'up', beat: 0, address: '', version: '' } as MemberRow,
    /** When statements were sent. */
    sentMs: [] as number[],
    /** Instead of what a statement comes to. */
    outcome: null as (() => Promise<Outcome>) | null,
    isAway: false,
    loop: null as unknown as BeatLoop,
  }
  const report: BeatReport = {
    applied: ({ monotonicMs }) => void told.push(`applied ${monotonicMs}`),
    failed: () => void told.push('failed'),
    lost: (why) => void told.push(`lost: ${why}`),
  }
  scene.loop = new BeatLoop({
    clock,
    log,
    control: {
      async member() {
        if (scene.isAway) throw new Error('the store is away')
        return scene.row
      },
      async updateMember(_, to, where): Promise<Outcome> {
        scene.sentMs.push(clock.monotonicMs())
        if (scene.outcome) return scene.outcome()
        const { row } = scene
        if (row.beat !== where.beat || row.state !== where.state) return 'refused'
        scene.row = { ...row, ...to }
        return 'applied'
      },
    },
  })
  scene.loop.start(INCARNATION, report)
  return scene
}

t.test('a beat behind a change of the own row goes at once', async (t) => {
  const { clock, told, sentMs, ...scene } = beating()
  await settle()
  const began = clock.monotonicMs()
  t.same(told.splice(0), [`applied ${began}`])
  Object.assign(scene.row, { state: 'leaving' })
  await clock.advance(LIMITS.membership.beatEveryMs)
  const at = began + LIMITS.membership.beatEveryMs
  t.same(sentMs, [began, at, at], 'the one that was refused is not waited with')
  t.same(told, [`applied ${at}`])
})

t.test('a row that can not be read is a beat that has failed', async (t) => {
  const scene = beating()
  const { clock, told } = scene
  await settle()
  told.length = 0
  scene.outcome = () => Promise.resolve('refused')
  scene.isAway = true
  await clock.advance(LIMITS.membership.beatEveryMs + 2 * LIMITS.membership.beatRetryMs)
  t.same(told, ['failed', 'failed', 'failed'], 'what stood still meanwhile proves nothing')
})

t.test(
  'of an incarnation that was stopped nothing is told, whatever its last beat comes to',
  async (t) => {
    for (const how of ['applied', 'refused', 'unknown', 'thrown'] as const) {
      const scene = beating()
      const { clock, told } = scene
      await settle()
      told.length = 0
      let end = (): void => undefined
      scene.outcome = () =>
        new Promise((resolve, reject) => {
          end = () => (how === 'thrown' ? reject(new Error('a mistake')) : resolve(how))
        })
      await clock.advance(LIMITS.membership.beatEveryMs)
      scene.loop.stop()
      end()
      await clock.advance(5 * LIMITS.membership.beatEveryMs)
      t.same(told, [], how)
      t.equal(scene.sentMs.length, 2)
    }
  },
)

t.test('who can not go on beating is told so', async (t) => {
  const scene = beating()
  await settle()
  scene.told.length = 0
  scene.outcome = () => Promise.reject(new Error('a mistake'))
  await scene.clock.advance(LIMITS.membership.beatEveryMs)
  t.same(scene.told, ['lost: the beat has failed'])
})

t.test('a store that is away is told of once a minute, and that it is back', async (t) => {
  const scene = beating()
  const { clock, logged } = scene
  await settle()
  scene.outcome = () => Promise.resolve('refused')
  scene.isAway = true
  for (let i = 0; i < 650; i++) await clock.advance(LIMITS.membership.beatRetryMs)
  t.same(logged.splice(0), Array(2).fill("the member's own row could not be read"))
  scene.isAway = false
  scene.outcome = null
  await clock.advance(2 * LIMITS.membership.beatEveryMs)
  t.same(logged, ["the member's own row can be read again"])
})
