// When a burst goes before the index: what begins it, what ends it, and how it is made good. The
// node is a model here: so many entries a commit, an index of so many entries a second.

import t from 'tap'
import fc from 'fast-check'
import { LIMITS } from '../../config/limits.ts'
import { IndexPace } from './index-pace.ts'

const LOOK_MS = LIMITS.indexPaceLookMs
const COMMITS_A_LOOK = 10
const FULL = 31

interface Around {
  readonly ready?: boolean
  readonly awaited?: boolean
  readonly usPerEntry?: number
}

/** A node whose commits carry what they are told, and whose index does what the pace lets it do. */
class Model {
  nowMs = 1_000_000
  readonly pace = new IndexPace(() => this.nowMs)
  commits = 0
  entries = 0
  applied = 0
  /** Entries a second that the index takes while it is let. */
  indexRate = 0
  /** How old the oldest entry is that it lacks. */
  ageMs = 0

  get lag() {
    return { entries: this.entries - this.applied, ageMs: this.ageMs }
  }

  look(fill: number, around: Around = {}, commits = COMMITS_A_LOOK): void {
    this.nowMs += LOOK_MS
    this.commits += fill === 0 ? 0 : commits
    this.entries += fill * commits
    if (this.pace.pace !== 'held') {
      this.applied = Math.min(this.entries, this.applied + (this.indexRate * LOOK_MS) / 1_000)
    }
    this.ageMs = this.lag.entries === 0 ? 0 : this.ageMs + LOOK_MS
    const { entries, lag } = this
    const usual = { ready: true, awaited: false, usPerEntry: 10 }
    this.pace.look({ commits: this.commits, entries, lag, ...usual, ...around })
  }

  looks(times: number, fill: number, around?: Around): void {
    for (let i = 0; i < times; i++) this.look(fill, around)
  }

  held(): this {
    this.looks(8, FULL)
    return this
  }
}

/** Looks within so many milliseconds. */
const looksIn = (ms: number): number => Math.ceil(ms / LOOK_MS)

t.test('a burst goes before the index, a load with small commits does not', async (t) => {
  const burst = new Model()
  burst.looks(8, FULL)
  t.equal(burst.pace.pace, 'held')
  const steady = new Model()
  steady.indexRate = 1_000_000
  steady.looks(400, 9)
  t.equal(steady.pace.pace, 'follow')
})

t.test('not while the index is filled anew, is waited for, or is read', async (t) => {
  for (const around of [{ ready: false }, { awaited: true }]) {
    const model = new Model()
    model.looks(40, FULL, around)
    t.equal(model.pace.pace, 'follow', JSON.stringify(around))
  }
  const read = new Model()
  for (let i = 0; i < 400; i++) {
    if ((i * LOOK_MS) % 900 === 0) read.pace.read(read.lag)
    read.look(FULL)
    if (read.pace.pace !== 'follow') t.fail(`${read.pace.pace} at look ${i}`)
  }
})

t.test('whoever reads the graph, or waits for it, ends it at once', async (t) => {
  const read = new Model().held()
  read.pace.read(read.lag)
  t.equal(read.pace.pace, 'repay')
  const awaited = new Model().held()
  awaited.look(FULL, { awaited: true })
  t.equal(awaited.pace.pace, 'repay')
  const lost = new Model().held()
  lost.look(FULL, { ready: false })
  t.equal(lost.pace.pace, 'repay', 'an index that is filled anew has nothing to wait for')
})

t.test('the end of the load ends it, a flush that takes long does not', async (t) => {
  const model = new Model().held()
  model.looks(2, 0)
  t.equal(model.pace.pace, 'held', 'two looks without a commit')
  model.looks(4, FULL)
  t.equal(model.pace.pace, 'held')
  model.looks(8, 0)
  t.not(model.pace.pace, 'held')
})

t.test('it is bounded in entries, in their age, and in what they cost', async (t) => {
  const many = new Model().held()
  while (many.pace.pace === 'held') many.look(2_000)
  t.ok(many.lag.entries >= LIMITS.indexHeldEntriesMax)
  t.ok(many.lag.entries < LIMITS.indexHeldEntriesMax + 2 * 2_000 * COMMITS_A_LOOK)

  const old = new Model().held()
  const sinceMs = old.nowMs
  while (old.pace.pace === 'held') old.look(LIMITS.indexBurstFill + 1)
  t.ok(Math.abs(old.nowMs - sinceMs - LIMITS.indexHeldMs) < 20 * LOOK_MS)

  const dear = new Model().held()
  while (dear.pace.pace === 'held') dear.look(FULL, { usPerEntry: 1_000 })
  t.ok(dear.lag.entries <= LIMITS.indexHeldCatchUpMs + 2 * FULL * COMMITS_A_LOOK)
})

t.test('one burst has one wait; the next has its own after a rest', async (t) => {
  const model = new Model().held()
  model.pace.read(model.lag)
  model.indexRate = 100_000
  for (let i = 0; i < 400; i++) {
    model.look(FULL)
    if (model.pace.pace === 'held') t.fail(`it waits again after ${i} looks of the same burst`)
  }
  t.equal(model.pace.pace, 'follow', 'it has caught up meanwhile')
  model.looks(looksIn(LIMITS.indexRestMs) - 8, 5)
  model.looks(8, FULL)
  t.equal(model.pace.pace, 'follow', 'too short a rest')
  model.looks(looksIn(LIMITS.indexRestMs) + 12, 5)
  model.looks(8, FULL)
  t.equal(model.pace.pace, 'held')
})

t.test('a time in which nothing is committed, and nobody looks, is a rest', async (t) => {
  const model = new Model().held()
  model.indexRate = 100_000
  model.looks(30, 0)
  t.equal(model.pace.pace, 'follow')
  model.nowMs += LIMITS.indexRestMs
  model.looks(8, FULL)
  t.equal(model.pace.pace, 'held')
})

t.test('nobody is slowed down while it lasts; the debt is a line that falls', async (t) => {
  const model = new Model()
  while (model.lag.entries < 50_000) model.look(200)
  t.equal(model.pace.throttleMs(model.lag), 0, 'held')
  const debt = model.lag.entries
  model.pace.read(model.lag)
  t.equal(model.pace.throttleMs(model.lag), 0, 'at the begin of the line')
  const later = (ms: number) => {
    model.nowMs += ms
    return model.pace.throttleMs({ entries: debt, ageMs: 0 })
  }
  const half = later(LIMITS.indexRepayMs / 2)
  const whole = later(LIMITS.indexRepayMs / 2)
  t.ok(half > 0 && whole > half && whole <= LIMITS.ackDelayMsMax, `${half}, ${whole}`)
  t.equal(model.pace.throttleMs({ entries: LIMITS.indexRepaidEntries, ageMs: 0 }), 0)
})

t.test('it is made good when nearly all is there, or in time', async (t) => {
  const model = new Model()
  while (model.lag.entries < 50_000) model.look(200)
  model.pace.read(model.lag)
  model.applied = model.entries - LIMITS.indexRepaidEntries
  model.look(0)
  t.equal(model.pace.pace, 'repay', 'there is time left')
  model.nowMs += LIMITS.indexRepayMs
  model.look(0)
  t.equal(model.pace.pace, 'follow', 'as much behind as any load leaves it')
  const other = new Model()
  while (other.lag.entries < 50_000) other.look(200)
  other.pace.read(other.lag)
  other.applied = other.entries - LIMITS.indexRestEntries
  other.ageMs = LIMITS.indexLagMs
  other.look(0)
  t.equal(other.pace.pace, 'repay', 'little, but old')
  t.equal(other.pace.throttleMs(other.lag), 0)
  other.ageMs = LIMITS.indexLagMs / 2
  other.look(0)
  t.equal(other.pace.pace, 'follow')
})

t.test('who waits for the index waits for a shorter line', async (t) => {
  const model = new Model()
  while (model.lag.entries < 50_000) model.look(200)
  model.look(0, { awaited: true })
  t.equal(model.pace.pace, 'repay')
  model.nowMs += LIMITS.indexRepayAwaitedMs
  t.ok(model.pace.throttleMs(model.lag) > LIMITS.ackDelayMsMax / 2)
  model.look(0)
  t.ok(model.pace.throttleMs(model.lag) < LIMITS.ackDelayMsMax / 2, 'nobody waits any more')
})

const sustained = fc.record({
  /** Entries a second: what the index can take, what callers would send. */
  index: fc.integer({ min: 3_000, max: 20_000 }),
  asked: fc.integer({ min: 2_000, max: 40_000 }),
})

/** Of 64 callers that wait for their answers half are in a commit. */
const COMMIT_MOST = 32
const COMMIT_MS = 2

t.test('a burst that does not end is paid for in time, whatever the index can do', async () => {
  fc.assert(
    fc.property(sustained, ({ index, asked }) => {
      const model = new Model()
      model.indexRate = index
      let heldMs = 0
      let most = 0
      let free = 0
      for (let ms = 0; ms < 60_000; ms += LOOK_MS) {
        free += LOOK_MS / (COMMIT_MS + model.pace.throttleMs(model.lag))
        const commits = Math.floor(free)
        free -= commits
        const sent = Math.min((asked * LOOK_MS) / 1_000, commits * COMMIT_MOST)
        const around = { usPerEntry: 1e6 / index }
        if (commits === 0) model.look(0, around)
        else model.look(sent / commits, around, commits)
        if (model.pace.pace === 'held') heldMs += LOOK_MS
        most = Math.max(most, model.lag.entries)
      }
      if (heldMs > LIMITS.indexHeldMs + 20 * LOOK_MS) throw new Error(`held for ${heldMs} ms`)
      const catchUp = (index * LIMITS.indexHeldCatchUpMs) / 1_000
      const put = Math.min(LIMITS.indexHeldEntriesMax, catchUp) + LIMITS.indexRepaidEntries
      const bound = Math.max(put, LIMITS.indexLagEntriesMax) * 1.1
      if (most > bound) throw new Error(`${most} owed, ${bound} allowed`)
      if (model.lag.entries > LIMITS.indexRestEntries && asked < index * 0.9) {
        throw new Error(`${model.lag.entries} left of what could be made good`)
      }
    }),
    { numRuns: 500 },
  )
})
