// The window of a live query against plain filtering, sorting and cutting: whatever comes, changes
// and goes, it shows what the plain way shows, and a client that makes the changes that it is told
// has the same list.

import fc from 'fast-check'
import t from 'tap'
import { compareDocs, compareIds } from '../../../protocol/graph/evaluate.ts'
import type { SortKey } from '../../../protocol/graph/plan.ts'
import { listChanges } from './list-changes.ts'
import { type LiveNode, LiveWindow } from './live-window.ts'
import { applyChanges } from './testing/client-list.ts'

const ORDERS: readonly (readonly SortKey[])[] = [
  [],
  [{ path: ['rank'], direction: 'asc', as: 'number' }],
  [{ path: ['rank'], direction: 'desc', as: 'number' }],
]

interface Doc {
  readonly rank: number | null
  readonly matches: boolean
  readonly text: string
}

type Event = { readonly id: number; readonly doc: Doc | null } | 'told'

const event: fc.Arbitrary<Event> = fc.oneof(
  { weight: 1, arbitrary: fc.constant('told' as const) },
  {
    weight: 3,
    arbitrary: fc.record({
      id: fc.nat(12),
      doc: fc.option(
        fc.record({
          rank: fc.option(fc.nat(5)),
          matches: fc.boolean(),
          text: fc.constantFrom('x', 'y'),
        }),
      ),
    }),
  },
)

const scenario = fc.record({
  orderBy: fc.constantFrom(...ORDERS),
  limit: fc.integer({ min: 1, max: 5 }),
  margin: fc.integer({ min: 1, max: 3 }),
  first: fc.array(event, { maxLength: 12 }),
  events: fc.array(event, { maxLength: 40 }),
  /** It is read again as soon as it may run short, or only once it has. */
  eager: fc.boolean(),
})

/** What there is, asked plainly. */
class Store {
  readonly #docs = new Map<number, Doc>()
  readonly #orderBy: readonly SortKey[]

  constructor(orderBy: readonly SortKey[]) {
    this.#orderBy = orderBy
  }

  set(id: number, doc: Doc | null): void {
    if (doc === null) this.#docs.delete(id)
    else this.#docs.set(id, doc)
  }

  matching(): LiveNode[] {
    const all = [...this.#docs].filter(([, { matches }]) => matches)
    return all
      .map(([id, doc]) => nodeOf(id, doc))
      .sort((a, b) => compareDocs(this.#orderBy, a.doc, b.doc) || compareIds(a, b))
  }
}

function nodeOf(id: number, doc: Doc): LiveNode {
  const { rank, text } = doc
  const actorId = `actor${id % 3}`
  return {
    actorId,
    id: `n${id}`,
    shownId: null,
    doc: { rank },
    text: JSON.stringify({ id, text }),
    sorted: String(rank),
  }
}

t.test('the window is what plain sorting and cutting shows, and clients have it', (t) => {
  const property = fc.property(scenario, ({ orderBy, limit, margin, first, events, eager }) => {
    const store = new Store(orderBy)
    for (const one of first) if (one !== 'told') store.set(one.id, one.doc)
    const window = new LiveWindow({ orderBy, limit, margin })
    const read = (): void => {
      const all = store.matching()
      window.begin(all.slice(0, window.capacity), all.length > window.capacity)
    }
    read()
    let told = window.shown
    let client = told.map(({ text }) => text)
    for (const one of events) {
      if (one === 'told') {
        const changes = listChanges(told, window.shown, (node) => window.holds(node))
        client = applyChanges(client, changes)
        told = window.shown
        const right = told.map(({ text }) => text)
        if (JSON.stringify(client) !== JSON.stringify(right)) return false
        continue
      }
      store.set(one.id, one.doc)
      if (one.doc?.matches === true) window.put(nodeOf(one.id, one.doc))
      else window.remove(nodeOf(one.id, { rank: null, matches: false, text: '' }))
      if (eager ? window.runsLow : window.lacks) read()
      const right = store.matching().slice(0, limit)
      const same = (a: readonly LiveNode[]): string => JSON.stringify(a.map(({ text }) => text))
      if (same(window.shown) !== same(right)) return false
      if (store.matching().length > limit && !window.hasMore) return false
      const fresh = new LiveWindow({ orderBy, limit, margin })
      fresh.begin(window.kept, false)
      if (window.chars !== fresh.chars) return false
    }
    return true
  })
  fc.assert(property, { numRuns: 5_000 })
  t.end()
})

const byRank: readonly SortKey[] = [{ path: ['rank'], direction: 'asc', as: 'number' }]

function filled(ranks: readonly number[], limit: number): LiveWindow {
  const window = new LiveWindow({ orderBy: byRank, limit, margin: 2 })
  window.begin(
    ranks.map((rank) => at(rank)),
    false,
  )
  return window
}

function at(rank: number, id = rank, text = 'x'): LiveNode {
  return nodeOf(id, { rank, matches: true, text })
}

/** The changes, as `kind index` or `update previousIndex>index`. */
function changed(window: LiveWindow, change: () => void): readonly string[] {
  const had = window.shown
  change()
  const changes = listChanges(had, window.shown, (node) => window.holds(node))
  return changes.map((one) =>
    one.kind === 'update' ? `update ${one.previousIndex}>${one.index}` : `${one.kind} ${one.index}`,
  )
}

t.test('only the node that is affected is told', (t) => {
  const window = filled([1, 2, 3, 4, 5, 6], 4)
  const told = (change: () => void): readonly string[] => changed(window, change)
  t.strictSame(
    told(() => window.put(at(1))),
    [],
    'the same again',
  )
  t.strictSame(
    told(() => window.put(at(2, 2, 'y'))),
    ['update 1>1'],
  )
  t.strictSame(
    told(() => window.put(at(3.5, 1))),
    ['update 0>2'],
    'it moves by itself',
  )
  t.strictSame(
    told(() => window.put(at(2.5))),
    ['add 1', 'remove 4'],
    'one is pushed out',
  )
  t.strictSame(
    told(() => window.remove(at(2.5))),
    ['remove 1', 'add 3'],
    'one falls in',
  )
  t.strictSame(
    told(() => window.put(at(9, 2, 'y'))),
    ['remove 0', 'add 3'],
    'one leaves by itself',
  )
  t.strictSame(
    told(() => window.put(at(8))),
    [],
    'behind the window',
  )
  t.equal(window.hasMore, true)
  t.end()
})

t.test('a node whose place is not known has the window read again', (t) => {
  const window = new LiveWindow({ orderBy: byRank, limit: 2, margin: 1 })
  window.begin([at(1), at(2), at(3)], true)
  t.equal(window.runsLow, false)
  t.equal(window.put(at(7)), false, 'behind what is known')
  window.remove(at(1))
  t.strictSame([window.runsLow, window.lacks], [true, false])
  t.equal(window.put(at(5, 2)), true, 'it leaves what is known')
  t.strictSame([window.runsLow, window.lacks], [true, true])
  window.begin([at(3), at(5, 2), at(7)], false)
  t.strictSame([window.runsLow, window.lacks, window.hasMore], [false, false, true])
  t.end()
})
