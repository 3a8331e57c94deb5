// Turns of live queries: callers have theirs one after the other, however much each asks for.

import t from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import { overrideLimits } from '../../../config/testing/override-limits.ts'
import { BeginTurns } from './begin-turns.ts'
import { ReadTurns } from './read-turns.ts'

const caller = (group: string) => ({ group, name: group })

t.test('reads: so many at once, and whoever comes next waits for one of the crowd', async (t) => {
  const turns = new ReadTurns(1)
  const order: string[] = []
  const read = async (who: string): Promise<void> => {
    await turns.enter(caller(who))
    order.push(who)
    await Promise.resolve()
    turns.leave()
  }
  await Promise.all([...Array.from({ length: 5 }, () => read('many')), read('one')])
  t.strictSame(order, ['many', 'many', 'one', 'many', 'many', 'many'])
  const ended = turns.enter(caller('one'))
  const waits = turns.enter(caller('one'))
  turns.end()
  await Promise.all([ended, waits])
})

t.test('beginnings: some at a time, of each caller in turn', async (t) => {
  t.teardown(overrideLimits({ 'live.queriesBeginTogether': 2 }))
  t.equal(LIMITS.live.queriesBeginTogether, 2)
  const deferred: (() => void)[] = []
  const turns = new BeginTurns({ defer: (run) => void deferred.push(run) })
  const order: string[] = []
  for (const who of ['many', 'many', 'many', 'one']) {
    void turns.enter(caller(who)).then(() => order.push(who))
  }
  const turn = async (): Promise<string> => {
    t.equal(deferred.length, 1)
    deferred.shift()!()
    await new Promise((resolve) => void setImmediate(resolve))
    return order.splice(0).join(' ')
  }
  t.equal(await turn(), 'many one')
  t.equal(await turn(), 'many many')
  t.equal(deferred.length, 0)
})
