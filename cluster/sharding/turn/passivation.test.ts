// Which actors stay in memory: the account of what they weigh, and who goes to rest when.

import t from 'tap'
import fc from 'fast-check'
import { LIMITS } from '../../../config/limits.ts'
import { TestClock } from '../../testing/harness.ts'
import { ledger } from '../../testing/ledger.ts'
import { ActivationMemory } from './activation-memory.ts'
import { Activation } from './activation.ts'
import { Passivation } from './passivation.ts'
import type { Work } from './work.ts'

const { activationsMax: COUNT_MAX, activationsBytesMax: WEIGHT_MAX } = LIMITS.sharding
const EMPTY_WEIGHT = 1_000

function makeResting(memory = new ActivationMemory(0)) {
  const clock = new TestClock()
  const world = {
    clock,
    head: 100,
    passivation: null as unknown as Passivation,
    make(id: string, bytes = 0): Activation {
      const made = new Activation(ledger, id, null)
      Object.assign(made, { loaded: true, newest: 1, n: 5, grownBytes: bytes })
      world.passivation.add(made)
      world.passivation.count(made)
      return made
    },
    ids: (): readonly string[] => [...world.passivation.activations.keys()],
    /** Nobody was asked since the last look. */
    unused(): void {
      for (const activation of world.passivation.activations.values()) activation.used = false
    },
  }
  const head = (): number => world.head
  world.passivation = new Passivation({ clock, memory, head })
  return world
}

t.test(
  'idle for ten minutes by the clock, counted from the last look that saw it used',
  async (t) => {
    const { clock, passivation, make, ids } = makeResting()
    make('a')
    clock.stepWall(-3_600_000)
    await clock.advance(LIMITS.sharding.passivateMs * 2)
    passivation.sweep(true)
    t.same(ids(), ['a'], 'it was in use until this look')
    await clock.advance(LIMITS.sharding.passivateMs - 1)
    passivation.sweep(true)
    t.same(ids(), ['a'])
    await clock.advance(1)
    passivation.sweep(true)
    t.same(ids(), [])
  },
)

t.test('each use counts anew', async (t) => {
  const { clock, passivation, make, ids } = makeResting()
  const a = make('a')
  passivation.sweep(true)
  await clock.advance(LIMITS.sharding.passivateMs - 1)
  passivation.touched(a)
  passivation.sweep(true)
  await clock.advance(LIMITS.sharding.passivateMs - 1)
  passivation.sweep(true)
  t.same(ids(), ['a'])
  await clock.advance(1)
  passivation.sweep(true)
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
      const { clock, passivation, make, ids } = makeResting()
      const a = make('a')
      occupy(a)
      for (let i = 0; i < 3; i++) {
        a.used = false
        passivation.sweep(true)
        await clock.advance(LIMITS.sharding.passivateMs)
      }
      t.same(ids(), ['a'])
      Object.assign(a, { running: null, loaded: true, newest: 100 })
      a.mailbox.length = 0
      a.used = false
      passivation.sweep(true)
      t.same(ids(), [], 'its idle time began when it was last busy')
    }
  },
)

t.test('one that was busy is idle from then on, not from its last use', async (t) => {
  const { clock, passivation, make, ids } = makeResting()
  const a = make('a')
  passivation.sweep(true)
  await clock.advance(LIMITS.sharding.passivateMs / 2)
  a.running = {} as Work
  passivation.sweep(true)
  a.running = null
  await clock.advance(LIMITS.sharding.passivateMs - 1)
  passivation.sweep(true)
  t.same(ids(), ['a'])
  await clock.advance(1)
  passivation.sweep(true)
  t.same(ids(), [])
})

t.test(
  'memory is short: the oldest that was not used since goes, and no more than must',
  async (t) => {
    const memory = new ActivationMemory(0)
    const { passivation, make, ids, unused } = makeResting(memory)
    const left = 50
    memory.add(COUNT_MAX * 0.9 - left, 0)
    const count = COUNT_MAX * 0.1 + left + 1
    for (let i = 0; i < count; i++) make(`a${i}`)
    passivation.sweep(false)
    t.equal(ids().length, count, 'all were used: each gets a second chance')
    unused()
    const order = ids()
    for (let i = 0; i < count; i += LIMITS.sharding.sweepMax) passivation.sweep(false)
    t.same(ids(), order.slice(count - left), 'down to nine tenths of all shards, the oldest first')
    unused()
    passivation.sweep(false)
    t.equal(ids().length, left, 'it is not short any more')
  },
)

t.test('bytes are counted as actors are', async (t) => {
  const { passivation, make, ids, unused } = makeResting()
  const tenth = Math.floor(WEIGHT_MAX / 10) - EMPTY_WEIGHT
  for (let i = 0; i < 9; i++) make(`a${i}`, tenth)
  unused()
  passivation.sweep(false)
  t.equal(ids().length, 9)
  make('b', tenth)
  unused()
  passivation.sweep(false)
  t.same(ids(), ['a1', 'a2', 'a3', 'a4', 'a5', 'a6', 'a7', 'a8', 'b'])
})

t.test('where the heap may be large more stay, by number and by bytes', async (t) => {
  const { activationsBytesMax, activationsHeapShare } = LIMITS.sharding
  const twice = (2 * activationsBytesMax) / activationsHeapShare
  const kept = (heapBytes: number, count: number, bytes: number): number => {
    const { passivation, make, ids, unused } = makeResting(new ActivationMemory(heapBytes))
    for (let i = 0; i < count; i++) make(`a${i}`, bytes)
    unused()
    passivation.sweep(false)
    return ids().length
  }
  // A sweep goes down to nine tenths.
  const few = Math.floor(COUNT_MAX * 2 * 0.9)
  t.equal(kept(twice, few, 0), few)
  t.equal(kept(twice, few + 1, 0), few)
  const half = Math.floor(WEIGHT_MAX / 2)
  t.equal(kept(twice, 4, half), 3)
  t.equal(kept(twice / 4, 4, half), 1, 'and never less than the bounds say')
})

t.test('many questions look by themselves whether memory is short', async (t) => {
  const { passivation, make, ids, unused } = makeResting()
  const count = Math.floor(COUNT_MAX) + 1
  for (let i = 0; i < count; i++) make(`a${i}`)
  unused()
  const last = passivation.activations.get(`a${count - 1}`)!
  for (let i = 0; i < 63; i++) passivation.touched(last)
  t.equal(ids().length, count)
  passivation.touched(last)
  t.ok(ids().length < count)
  t.ok(ids().includes(last.id), 'the one that is asked stays')
  const roomy = makeResting()
  const one = roomy.make('a')
  for (let i = 0; i < 200; i++) {
    roomy.passivation.touched(one)
    one.used = false
  }
  t.same(roomy.ids(), ['a'])
})

t.test('one look goes over few of many, and the next goes on', async (t) => {
  const { clock, passivation, make, ids, unused } = makeResting()
  for (let i = 0; i < LIMITS.sharding.sweepMax + 10; i++) make(`a${i}`)
  passivation.sweep(true)
  passivation.sweep(true)
  await clock.advance(LIMITS.sharding.passivateMs)
  unused()
  passivation.sweep(true)
  t.equal(ids().length, 10)
  passivation.sweep(true)
  t.equal(ids().length, 0)
})

t.test('made and not asked again: to rest with its commit', async (t) => {
  const { passivation, make, ids } = makeResting()
  const settled = (change: Partial<Activation>): boolean => {
    const a = make('a')
    Object.assign(a, { n: 1, newest: 100 }, change)
    passivation.settled(a)
    const isGone = ids().length === 0
    passivation.forget(a)
    return isGone
  }
  t.ok(settled({}))
  t.notOk(settled({ n: 2 }))
  t.ok(settled({ n: 2, state: { deleted: true } }), 'nobody asks a deleted one')
  t.notOk(settled({ n: 2, state: { deleted: true }, newest: 101 }))
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
      const { passivation, make, unused } = makeResting()
      for (const { do: what, id, bytes } of steps) {
        const known = passivation.activations.get(id)
        if (what === 'make' && !known) make(id, bytes)
        else if (what === 'grow' && known) {
          known.grownBytes = bytes
          passivation.count(known)
        } else if (what === 'forget' && known) passivation.forget(known)
        else if (what === 'other') passivation.forget(new Activation(ledger, id, null))
        else if (what === 'clear' && passivation.clear().some((one) => one === undefined))
          return false
        else if (what === 'sweep') {
          unused()
          passivation.sweep(true)
        } else if (what === 'settle' && known) {
          known.n = 1
          passivation.settled(known)
        }
      }
      // What it believes shows in when memory is short: fill it up to the last byte.
      const sum = [...passivation.activations.values()].reduce((all, one) => all + one.counted, 0)
      const room = Math.floor(WEIGHT_MAX * 0.9) - sum - EMPTY_WEIGHT
      const filler = make('filler', room)
      unused()
      passivation.sweep(false)
      if (!passivation.activations.has('filler')) return false
      const before = passivation.activations.size
      filler.grownBytes += 1
      passivation.count(filler)
      unused()
      passivation.sweep(false)
      return passivation.activations.size === before - 1
    }),
    { numRuns: 200 },
  )
})

t.test('shards have their memory together: what one has, another lacks, and may have back', (t) => {
  const memory = new ActivationMemory(0)
  const [busy, calm] = [makeResting(memory), makeResting(memory)]
  const tenth = Math.floor(WEIGHT_MAX / 10) - EMPTY_WEIGHT
  for (let i = 0; i < 9; i++) busy.make(`a${i}`, tenth)
  busy.unused()
  busy.passivation.sweep(false)
  t.equal(busy.ids().length, 9, 'one has nearly all')
  calm.make('b', tenth)
  busy.unused()
  busy.passivation.sweep(false)
  t.equal(busy.ids().length, 8)
  busy.passivation.clear()
  for (let i = 0; i < 8; i++) calm.make(`b${i}`, tenth)
  calm.unused()
  calm.passivation.sweep(false)
  t.equal(calm.ids().length, 9, 'a shard that is given away leaves all of its part')
  t.end()
})
