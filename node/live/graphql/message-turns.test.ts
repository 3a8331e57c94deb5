// Messages are taken in turns, for a moment, and then others have theirs; callers take turns,
// however many connections each has.

import t from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import { MessageTurns } from './message-turns.ts'

t.test('one of each, and not for long at a time', async (t) => {
  const time = { nowMs: 0 }
  const deferred: (() => void)[] = []
  const turns = new MessageTurns({
    nowMs: () => time.nowMs,
    monotonicMs: () => time.nowMs,
    after: () => () => undefined,
    defer: (run) => void deferred.push(run),
  })
  const taken: string[] = []
  const has = (name: string, left: number, group = name) => ({
    flow: { group, name },
    takeMessage() {
      taken.push(name)
      time.nowMs += LIMITS.live.messagesTurnMs / 2
      return --left > 0
    },
  })
  turns.add(has('a', 3))
  turns.add(has('b', 1))
  t.strictSame(taken, [], 'whoever brings them goes on first')
  const turn = (): string => {
    taken.length = 0
    t.equal(deferred.length, 1)
    deferred.shift()!()
    return taken.join('')
  }
  t.equal(turn(), 'ab')
  turns.add(has('c', 1))
  t.equal(turn(), 'ac')
  t.equal(turn(), 'a')
  t.equal(deferred.length, 0)
  for (const name of 'defg') turns.add(has(name, 1, 'one caller'))
  turns.add(has('h', 1))
  t.equal(turn() + turn() + turn(), 'dhefg')
})
