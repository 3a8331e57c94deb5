// The cache of folded states: what it reads, what it refuses and what it lets go.

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { overrideLimits } from '../../config/testing/override-limits.ts'
import { type Entry, encodeEntry } from '../../protocol/entry/entry.ts'
import type { EntryRange } from '../../storage/journal.ts'
import { ActorStates, ProjectionError, type SnapshotView } from './actor-states.ts'
import { decodeTestSnapshot } from './testing/feed-store.ts'
import { type Notebook, notebookBehaviour } from './testing/notebook.ts'

const behaviour = notebookBehaviour({ fold: true, project: true })

function entry(p: string, v: number, ...titles: string[]): Entry {
  const r = titles.map((title) => ({ t: 'opened', title }))
  const a = { type: 'test', success: true } as const
  return { y: 'notebook', p, v, n: v + 1, r, m: 'm', l: 0, a, t: 0, c: 0, b: 'x' }
}

interface Options {
  readonly snapshot?: SnapshotView | Error
  readonly offsetOf?: (entry: Entry) => number
  readonly actorsMax?: number
  readonly bytesMax?: number
}

function statesOf(rows: Record<string, Entry[]>, options: Options = {}): ActorStates {
  const { snapshot, offsetOf = ({ n }) => n, ...bounds } = options
  return new ActorStates({
    behaviours: new Map([['notebook', behaviour]]),
    decodeSnapshot: decodeTestSnapshot,
    derived: {
      snapshot() {
        if (snapshot instanceof Error) throw snapshot
        if (snapshot === undefined) return null
        return { offset: 1, body: Buffer.from(JSON.stringify(snapshot)) }
      },
      entries(actorId, range: EntryRange) {
        const after = range.order === 'ascending' ? range.after : 0
        const found = (rows[actorId] ?? []).filter(({ n }) => n > after)
        // One at a time: a bound on bytes may cut anywhere.
        return found.slice(0, 1).map((e) => ({ n: e.n, offset: offsetOf(e), body: encodeEntry(e) }))
      },
    },
    ...bounds,
  })
}

t.test('folds what is dense and stops at a hole', async (t) => {
  const states = statesOf({ a: [entry('a', 0, 'x'), entry('a', 1, 'y'), entry('a', 3, 'z')] })
  const actor = await states.load('a')
  t.match(actor, { version: 2, actorId: 'a' })
  t.equal((actor!.state as Notebook).title, 'y')
  t.equal(await states.load('b'), null)
})

t.test('entries without records may be missing: they expire', async (t) => {
  const snapshot = { type: 'notebook', version: 1, n: 1, state: snapshotOf('x') }
  const rows = [{ ...entry('a', 1, 'y'), n: 5 }]
  t.match(await statesOf({ a: rows }, { snapshot }).load('a'), { version: 2 })
})

t.test('leftovers of an abandoned timeline are passed over', async (t) => {
  const snapshot = { type: 'notebook', version: 1, n: 1, state: snapshotOf('x') }
  // By its number it comes last, by its offset before what was recorded.
  const rows = [entry('a', 1, 'y'), { ...entry('a', 2, 'left'), n: 3 }]
  const offsetOf = ({ n }: Entry): number => (n === 2 ? 5 : 3)
  const actor = await statesOf({ a: rows }, { snapshot, offsetOf }).load('a')
  t.equal(actor!.version, 2)
  t.equal((actor!.state as Notebook).title, 'y')
  const older = [
    { ...entry('a', 0, 'left'), n: 2 },
    { ...entry('a', 1, 'y'), n: 3 },
  ]
  const atOrBelow = ({ n }: Entry): number => n - 1
  const other = await statesOf({ a: older }, { snapshot, offsetOf: atOrBelow }).load('a')
  t.equal(other!.version, 2, 'below the snapshot, too')
})

t.test('tells an actor that can not be read from a store that can not', async (t) => {
  const bad = { type: 'notebook', version: 1, n: 1, state: { notes: 5 } }
  await t.rejects(statesOf({}, { snapshot: bad }).load('a'), /snapshot can't be read/)
  const unknown = { type: 'poem', version: 1, n: 1, state: {} }
  const refused = await statesOf({}, { snapshot: unknown })
    .load('a')
    .catch((e: unknown) => e)
  t.ok(refused instanceof ProjectionError)
  t.match(refused, { message: /no actor type 'poem'/ })
  const away = statesOf({}, { snapshot: new Error('the store is away') })
  const error = await away.load('a').catch((e: unknown) => e)
  t.notOk(error instanceof ProjectionError)
})

t.test('drops what was used longest ago, by number and by weight', async (t) => {
  const states = statesOf({}, { actorsMax: 2, bytesMax: 1_000 })
  for (const id of ['a', 'b', 'c']) {
    states.fold(states.begin(id, 'notebook'), entry(id, 0, 'x'), 300)
    states.touch(states.find(id)!)
  }
  states.touch(states.find('a')!)
  states.trim()
  t.equal(states.find('b'), null)
  t.equal(states.size, 2)
  t.equal(states.bytes, 600)
  states.fold(states.find('a')!, entry('a', 1, 'y'), 500)
  states.trim()
  t.equal(states.find('c'), null)
  t.equal(states.bytes, 800)
  states.drop('a')
  t.equal(states.bytes, 0)
})

t.test('new actors push out each other, not those that are used again', async (t) => {
  t.teardown(overrideLimits({ 'feed.projectorNewMax': 3 }))
  const rows = { loaded: [entry('loaded', 0, 'x')] }
  const states = statesOf(rows, { actorsMax: 10 })
  states.fold(states.begin('used', 'notebook'), entry('used', 0, 'x'), 100)
  states.touch(states.find('used')!)
  await states.load('loaded')
  for (let i = 0; i < 50; i++) {
    states.fold(states.begin(`new-${i}`, 'notebook'), entry(`new-${i}`, 0, 'x'), 100)
    states.trim()
  }
  t.ok(states.find('used') && states.find('loaded'))
  t.equal(states.size, 5)
  t.equal(states.find('new-46'), null)
  t.ok(states.find('new-47'))
})

t.test('an actor with a long history weighs what its state does', async (t) => {
  const states = statesOf({})
  const one = states.begin('a', 'notebook')
  for (let v = 0; v < 1_000; v++) states.fold(one, entry('a', v, `title ${v}`), 300)
  t.ok(states.bytes < 2 * LIMITS.feed.weighedAnewBytes, `${states.bytes} bytes`)
  states.fold(one, entry('a', 1_000, 'x'.repeat(50_000)), 51_000)
  t.ok(states.bytes > 50_000)
})

t.test('what it weighs is bounded as a state is, and gone when it goes', async (t) => {
  const states = statesOf({})
  const one = states.begin('a', 'notebook')
  const huge = 'x'.repeat(LIMITS.sharding.stateBytesMax)
  states.fold(one, entry('a', 0, huge), 2 * huge.length)
  states.fold(one, entry('a', 1, huge), 2 * huge.length)
  t.equal(states.bytes, LIMITS.sharding.stateBytesMax)
  states.drop('a')
  t.equal(states.bytes, 0)
  states.touch(one)
  t.equal(states.find('a'), null, 'what was dropped does not come back by being used')
  states.fold(states.begin('b', 'notebook'), entry('b', 0, 'x'), 100)
  states.clear()
  t.same([states.size, states.bytes], [0, 0])
})

t.test('an actor that is loaded anew counts once, whatever was there before', async (t) => {
  const rows = { a: [entry('a', 0, 'x'), entry('a', 1, 'y')] }
  const snapshot = { type: 'notebook', version: 1, n: 1, state: snapshotOf('x') }
  for (const states of [statesOf(rows), statesOf({ a: rows.a.slice(1) }, { snapshot })]) {
    const bytes: number[] = []
    for (let i = 0; i < 3; i++) {
      await states.load('a')
      bytes.push(states.bytes)
    }
    t.ok(bytes[0]! > 0)
    t.same(bytes, Array(3).fill(bytes[0]))
    states.fold(states.find('a')!, entry('a', 2, 'z'), 100)
    states.trim()
    states.drop('a')
    t.same([states.bytes, states.size], [0, 0])
  }
})

function snapshotOf(title: string): unknown {
  return { title, closed: false, broken: false, notes: [], id: 'a' }
}
