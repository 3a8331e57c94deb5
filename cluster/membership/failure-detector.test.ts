// Beats that stand still as a reader sees them, and the view that it makes of the rows.

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import type { MemberRow, MemberState } from '../../storage/control.ts'
import { FailureDetector } from './failure-detector.ts'
import { makeView } from './view.ts'

const EVERY = LIMITS.membership.membersReadEveryMs

function rowOf(member: string, beat: number, state: MemberState = 'up'): MemberRow {
  return { member, incarnation: `inc-${member}`, state, beat, address: '', version: '' }
}

t.test('still is a beat that has stood for as long as a death takes, to the millisecond', (t) => {
  const detector = new FailureDetector()
  const isTimedOut = (): boolean => detector.isTimedOut('inc-a')
  let nowMs = 0
  for (; nowMs < LIMITS.membership.deathMs; nowMs += EVERY) {
    detector.saw([rowOf('a', 7)], nowMs)
    t.notOk(isTimedOut(), `${nowMs} ms`)
  }
  detector.saw([rowOf('a', 7)], LIMITS.membership.deathMs)
  t.ok(isTimedOut())
  detector.saw([rowOf('a', 8)], LIMITS.membership.deathMs + EVERY)
  t.notOk(isTimedOut(), 'it beats again')
  t.notOk(detector.isTimedOut('inc-b'), 'nobody knows of it')
  t.end()
})

t.test(
  'reads that have paused, and an incarnation that was not there in between, count afresh',
  (t) => {
    for (const how of ['pause', 'gone', 'left'] as const) {
      const detector = new FailureDetector()
      let nowMs = 0
      const see = (ms: number): void => {
        for (const until = nowMs + ms; nowMs < until;)
          detector.saw([rowOf('a', 7)], (nowMs += EVERY))
      }
      see(LIMITS.membership.deathMs - EVERY)
      if (how === 'pause') nowMs += LIMITS.membership.membersPauseMs + 1
      else detector.saw(how === 'gone' ? [] : [rowOf('a', 7, 'left')], (nowMs += EVERY))
      see(LIMITS.membership.deathMs)
      t.notOk(detector.isTimedOut('inc-a'), how)
      see(EVERY)
      t.ok(detector.isTimedOut('inc-a'), how)
    }
    t.end()
  },
)

t.test('moved has a beat that changed under the reader, until it counts afresh', (t) => {
  const detector = new FailureDetector()
  let nowMs = 0
  const moved = (beat: number, afterMs: number = EVERY): boolean => {
    detector.saw([rowOf('a', beat)], (nowMs += afterMs))
    return detector.hasMoved('inc-a')
  }
  t.notOk(detector.hasMoved('inc-a'), 'nobody knows of it')
  t.same([moved(7), moved(7), moved(8), moved(8)], [false, false, true, true])
  t.same(
    [moved(9, LIMITS.membership.membersPauseMs + 1), moved(9), moved(10)],
    [false, false, true],
  )
  detector.restart()
  t.same([moved(11), moved(12)], [false, true])
  t.end()
})

t.test('a view: who is up by name, and dead is who is neither up nor leaving', (t) => {
  const states: readonly MemberState[] = ['up', 'leaving', 'dead', 'left', 'up']
  const members = ['d', 'c', 'b', 'e', 'a'].map((name, i) => rowOf(name, 1, states[i]))
  const view = makeView({ readAtMs: 5, shards: [], members })
  t.same(
    view.live().map(({ member }) => member),
    ['a', 'd'],
  )
  const dead = ['a', 'b', 'c', 'd', 'e', 'f'].filter((name) => view.isDead(`inc-${name}`))
  t.same(dead, ['b', 'e', 'f'])
  t.end()
})
