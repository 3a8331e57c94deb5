// How a new incarnation takes its member's row: never while the incarnation of before may still
// answer a read. Source: PROTOCOL 3.3.1.

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import type { MemberRow, Outcome } from '../../storage/control.ts'
import { TestClock } from '../testing/harness.ts'
import { takeRow } from './joining.ts'

const nothing = (): void => undefined
const QUIET = { debug: nothing, info: nothing, warn: nothing, error: nothing }

function rowOf(incarnation: string, beat: number): MemberRow {
  const fixed = { member: 'a', address: 'http://a', version: '1' }
  return { ...fixed, incarnation, state: 'up', beat }
}

/** A row that is read by the script's rule, and when it was taken. */
function joining(read: (nowMs: number) => MemberRow | null, isOver = () => false) {
  const clock = new TestClock()
  const taken: number[] = []
  const told: string[] = []
  const log = { ...QUIET, info: (_: object, text: string) => void told.push(text) }
  const control = {
    async member(): Promise<MemberRow | null> {
      return read(clock.monotonicMs())
    },
    async insertMember(): Promise<Outcome> {
      return 'applied'
    },
    async updateMember(): Promise<Outcome> {
      taken.push(clock.monotonicMs())
      return 'applied'
    },
  }
  const row = rowOf('new', 0)
  const done = takeRow({ control, clock, log, row, isOver })
  return { clock, taken, told, done }
}

t.test('an incarnation of before is over once its beat has stood still for a death', async (t) => {
  const { clock, taken, done } = joining(() => rowOf('old', 7))
  const beganMs = clock.monotonicMs()
  await clock.advance(LIMITS.membership.deathMs - LIMITS.membership.membersReadEveryMs)
  t.same(taken, [])
  await clock.advance(2 * LIMITS.membership.membersReadEveryMs)
  t.equal(await done, true)
  t.ok(taken[0]! - beganMs >= LIMITS.membership.deathMs)
})

t.test(
  'a read that fails makes the count begin anew, however soon the next one comes',
  async (t) => {
    const failing = Math.floor(LIMITS.membership.deathMs / LIMITS.membership.membersReadEveryMs)
    let reads = 0
    let failedMs = 0
    const { clock, taken } = joining((nowMs) => {
      if (++reads !== failing) return rowOf('old', 7)
      failedMs = nowMs
      throw new Error('away')
    })
    await clock.advance(LIMITS.membership.deathMs + 2 * LIMITS.membership.membersReadEveryMs)
    t.ok(reads > failing, 'one has failed')
    t.same(taken, [], 'its beats may have failed as the read did')
    await clock.advance(LIMITS.membership.deathMs)
    t.equal(taken.length, 1)
    t.ok(taken[0]! - failedMs >= LIMITS.membership.deathMs)
  },
)

t.test('an incarnation that was declared dead before it began is not taken for one', async (t) => {
  for (const [state, isTaken] of [
    ['up', true],
    ['dead', false],
    ['leaving', false],
  ] as const) {
    const { done, taken } = joining(() => ({ ...rowOf('new', 0), state }))
    t.equal(await done, isTaken, state)
    t.same(taken, [])
  }
})

t.test('who is closed while its statement is on the way has no incarnation', async (t) => {
  const { done, taken } = joining(
    () => ({ ...rowOf('old', 7), state: 'dead' }),
    () => taken.length > 0,
  )
  t.equal(await done, false)
  t.equal(taken.length, 1)
})

t.test('for whom it waits is told once for each', async (t) => {
  let began: number | null = null
  const { clock, told, done } = joining((nowMs) => {
    began ??= nowMs
    const at = nowMs - began
    return rowOf(at < 1_000 ? 'old' : 'older', at < 2_000 ? Math.floor(at / 100) : 20)
  })
  await clock.advance(2_000)
  t.equal(told.length, 2)
  await clock.advance(LIMITS.membership.deathMs + 500)
  t.equal(await done, true)
  t.equal(told.length, 2)
})
