// Which actors stay in memory: the account of what they weigh, and who goes to rest when.

import t from 'tap'
import fc from 'fast-check'
import { LIMITS } from '../../../config/limits.ts'
import { TestClock } from '../../testing/harness.ts'
import { ledger } from '../../testing/ledger.ts'
import { Activation } from './activation.ts'
import { Resting } from './passivation.ts'
import type { Work } from './work.ts'

const SHARDS = 3
/** Each shard's part: `system` has one as well. */
const COUNT_MAX = LIMITS.activationsMax / (SHARDS + 1)
const WEIGHT_MAX = LIMITS.activationsBytesMax / (SHARDS + 1)
const EMPTY_WEIGHT = 1_000

function makeResting() {
  const clock = new TestClock()
  const world = {
    clock,
    head: 100,
    resting: null as unknown as Resting,
    make(id: string, bytes = 0): Activation {
      const made = new Activation(ledger, id, null)
      Object.assign(made, { loaded: true, newest: 1, n: 5, bytesSinceSnapshot: bytes })
      world.resting.activations.set(id, made)
      world.resting.count(made)
      return made
    },
    ids: (): readonly string[] => [...world.resting.activations.keys()],
    /** Nobody was asked since the last look. */
    unused(): void {
      for (const activation of world.resting.activations.values()) activation.used = false
    },
  }
  world.resting = new Resting({ clock, shards: SHARDS, head: () => world.head })
  return world
}

t.test(
  'idle for ten minutes by the clock, counted from the last look that saw it used',
  async (t) => {
    const { clock, resting, make, ids } = makeResting()
    make('a')
    clock.stepWall(-3_600_000)
    await clock.advance(LIMITS.passivateMs * 2)
    resting.sweep(true)
    t.same(ids(), ['a'], 'it was in use until this look')
    await clock.advance(LIMITS.passivateMs - 1)
    resting.sweep(true)
    t.same(ids(), ['a'])
    await clock.advance(1)
    resting.sweep(true)
    t.same(ids(), [])
  },
)

t.test('each use counts anew', async (t) => {
  const { clock, resting, make, ids } = makeResting()
  const a = make('a')
  resting.sweep(true)
  await clock.advance(LIMITS.passivateMs - 1)
  resting.touched(a)
  resting.sweep(true)
  await clock.advance(LIMITS.passivateMs - 1)
  resting.sweep(true)
  t.same(ids(), ['a'])
  await clock.advance(1)
  resting.sweep(true)
  t.same(ids(), [])
})

t.test(
  'never what has a turn, waits for one, is being loaded, or is ahead of the log',
  async (t) => {
    const busy: ((activation: Activation) => void)[] = [
      (activation) => void (activation.running = {} as Work),
      (activation) => void activation.mailbox.push({} as Work),
      (activation) => void (activation.loaded = false),
      (activation) => void (activation.newest = 101),
    ]
    for (const occupy of busy) {
      const { clock, resting, make, ids } = makeResting()
      const a = make('a')
      occupy(a)
      for (let i = 0; i < 3; i++) {
        a.used = false
        resting.sweep(true)
        await clock.advance(LIMITS.passivateMs)
      }
      t.same(ids(), ['a'])
      Object.assign(a, { running: null, loaded: true, newest: 100 })
      a.mailbox.length = 0
      a.used = false
      resting.sweep(true)
      t.same(ids(), [], 'its idle time began when it was last busy')
    }
  },
)

t.test('one that was busy is idle from then on, not from its last use', async (t) => {
  const { clock, resting, make, ids } = makeResting()
  const a = make('a')
  resting.sweep(true)
  await clock.advance(LIMITS.passivateMs / 2)
  a.running = {} as Work
  resting.sweep(true)
  a.running = null
  await clock.advance(LIMITS.passivateMs - 1)
  resting.sweep(true)
  t.same(ids(), ['a'])
  await clock.advance(1)
  resting.sweep(true)
  t.same(ids(), [])
})

t.test(
  'memory is short: the oldest that was not used since goes, and no more than must',
  async (t) => {
    const { resting, make, ids, unused } = makeResting()
    const count = Math.floor(COUNT_MAX) + 1
    for (let i = 0; i < count; i++) make(`a${i}`)
    resting.sweep(false)
    t.equal(ids().length, count, 'all were used: each gets a second chance')
    unused()
    const order = ids()
    resting.sweep(false)
    const left = Math.floor(COUNT_MAX * 0.9)
    t.same(ids(), order.slice(count - left), 'down to nine tenths, the oldest first')
    unused()
    resting.sweep(false)
    t.equal(ids().length, left, 'it is not short any more')
  },
)

t.test('bytes are counted as actors are: each shard has its equal part', async (t) => {
  const { resting, make, ids, unused } = makeResting()
  const tenth = Math.floor(WEIGHT_MAX / 10) - EMPTY_WEIGHT
  for (let i = 0; i < 9; i++) make(`a${i}`, tenth)
  unused()
  resting.sweep(false)
  t.equal(ids().length, 9)
  make('b', tenth)
  unused()
  resting.sweep(false)
  t.same(ids(), ['a1', 'a2', 'a3', 'a4', 'a5', 'a6', 'a7', 'a8', 'b'])
})

t.test('many questions look by themselves whether memory is short', async (t) => {
  const { resting, make, ids, unused } = makeResting()
  const count = Math.floor(COUNT_MAX) + 1
  for (let i = 0; i < count; i++) make(`a${i}`)
  unused()
  const last = resting.activations.get(`a${count - 1}`)!
  for (let i = 0; i < 63; i++) resting.touched(last)
  t.equal(ids().length, count)
  resting.touched(last)
  t.ok(ids().length < count)
  t.ok(ids().includes(last.id), 'the one that is asked stays')
  const roomy = makeResting()
  const one = roomy.make('a')
  for (let i = 0; i < 200; i++) {
    roomy.resting.touched(one)
    one.used = false
  }
  t.same(roomy.ids(), ['a'])
})

t.test('one look goes over few of many, and the next goes on', async (t) => {
  const { clock, resting, make, ids, unused } = makeResting()
  for (let i = 0; i < LIMITS.sweepMax + 10; i++) make(`a${i}`)
  resting.sweep(true)
  resting.sweep(true)
  await clock.advance(LIMITS.passivateMs)
  unused()
  resting.sweep(true)
  t.equal(ids().length, 10)
  resting.sweep(true)
  t.equal(ids().length, 0)
})

t.test('made and not asked again: to rest with its commit', async (t) => {
  const { resting, make, ids } = makeResting()
  const settled = (change: Partial<Activation>): boolean => {
    const a = make('a')
    Object.assign(a, { n: 1, newest: 100 }, change)
    resting.settled(a)
    const isGone = ids().length === 0
    resting.forget(a)
    return isGone
  }
  t.ok(settled({}))
  t.notOk(settled({ n: 2 }))
  t.notOk(settled({ newest: 101 }))
  t.notOk(settled({ running: {} as Work }))
  t.notOk(settled({ loaded: false }))
})

t.test('the account: what is here, whatever comes and goes', async () => {
  const step = fc.record({
    do: fc.constantFrom('make', 'grow', 'forget', 'other', 'clear', 'sweep', 'settle'),
    id: fc.constantFrom('a', 'b', 'c'),
    bytes: fc.integer({ min: 0, max: 900 }),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30, size: 'max' }), (steps) => {
      const { resting, make, unused } = makeResting()
      for (const { do: what, id, bytes } of steps) {
        const known = resting.activations.get(id)
        if (what === 'make' && !known) make(id, bytes)
        else if (what === 'grow' && known) {
          known.bytesSinceSnapshot = bytes
          resting.count(known)
        } else if (what === 'forget' && known) resting.forget(known)
        else if (what === 'other') resting.forget(new Activation(ledger, id, null))
        else if (what === 'clear' && resting.clear().some((one) => one === undefined)) return false
        else if (what === 'sweep') {
          unused()
          resting.sweep(true)
        } else if (what === 'settle' && known) {
          known.n = 1
          resting.settled(known)
        }
      }
      // What it believes shows in when memory is short: fill it up to the last byte.
      const sum = [...resting.activations.values()].reduce((all, one) => all + one.counted, 0)
      const room = Math.floor(WEIGHT_MAX * 0.9) - sum - EMPTY_WEIGHT
      const filler = make('filler', room)
      unused()
      resting.sweep(false)
      if (!resting.activations.has('filler')) return false
      const before = resting.activations.size
      filler.bytesSinceSnapshot += 1
      resting.count(filler)
      unused()
      resting.sweep(false)
      return resting.activations.size === before - 1
    }),
    { numRuns: 200 },
  )
})
