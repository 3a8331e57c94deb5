// Readers of the embedded index: a plan sees one state of it, however long it takes and whatever is
// written meanwhile; statements are prepared once and few are kept. Source: ARCHITECTURE 5.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t, { type Test } from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { overrideLimits } from '../../config/testing/override-limits.ts'
import { library, planOf, shelf } from '../conformance/search-index.ts'
import { actorIds, SCHEMA, shelfIds } from '../conformance/search-nodes.ts'
import { SqliteGraphReader } from './reader.ts'
import { SqliteGraphWriter } from './writer.ts'

const [ONE, TWO] = actorIds as [string, string]
const [SHELF, SHELF_TWO] = shelfIds as [string, string]

function stage(t: Test) {
  const dir = mkdtempSync(join(tmpdir(), 'kontor-graph-'))
  const writer = new SqliteGraphWriter({ dir, schema: SCHEMA })
  const hooks: { during?: (() => void) | undefined } = {}
  const mayGoOn = (): void => hooks.during?.()
  const reader = new SqliteGraphReader({ dir, schema: SCHEMA, mayGoOn })
  t.teardown(() => {
    reader.close()
    writer.close()
    rmSync(dir, { recursive: true })
  })
  writer.reset('one')
  const ask = (...body: object[]): Record<string, unknown> => {
    return JSON.parse(JSON.stringify(reader.query(planOf(body), 1_000_000))) as never
  }
  return { dir, writer, hooks, reader, ask }
}

const LIBRARIES = {
  edge: 'libraries',
  node: { fields: ['name'], navigate: [{ edge: 'shelves', node: { fields: ['label'] } }] },
}

t.test('a plan sees one state, whatever is written while it runs', (t) => {
  const { writer, hooks, ask } = stage(t)
  const write = (version: number, name: string): void =>
    writer.apply(
      [library(ONE, version, { name }), shelf(ONE, SHELF, version, { label: name })],
      [{ shard: 0, offset: version }],
    )
  write(1, 'old')
  const shown = (name: string) => [{ name, shelves: [{ label: name }] }]
  let asked = 0
  hooks.during = () => {
    if (++asked === 1) write(2, 'new')
  }
  const answer = ask(LIBRARIES, { ...LIBRARIES, alias: 'again' })
  t.ok(asked > 1, 'written amid it')
  t.same(answer, { libraries: shown('old'), again: shown('old') })
  t.same(ask(LIBRARIES), { libraries: shown('new') }, 'and the next one sees the next')
  t.end()
})

t.test('a semi-join that is asked from its children is stopped, too', (t) => {
  const { writer, hooks, ask } = stage(t)
  const ids = Array.from({ length: 200 }, (_, i) => {
    return `0190b000-0000-7000-8000-${i.toString(16).padStart(12, '0')}`
  })
  writer.apply(
    ids.flatMap((id) => [library(id, 1, {}), shelf(id, SHELF, 1, { label: 'a' })]),
    [],
  )
  const asksOf = (navigate: object[]): number => {
    let asks = 0
    hooks.during = () => void asks++
    ask({ edge: 'libraries', limit: 300, node: { fields: ['name'], navigate } })
    return asks
  }
  const all = asksOf([])
  t.ok(all > 0)
  const semiJoin = { edge: 'shelves', filter: "label == 'a'", require: 'some' }
  t.ok(asksOf([semiJoin]) > all, 'its own rows are counted, besides those that it lets through')
  t.end()
})

t.test('a plan that is stopped ends what it read; the next one sees all', (t) => {
  const { writer, hooks, ask } = stage(t)
  writer.apply([library(ONE, 1, { name: 'old' })], [])
  hooks.during = () => {
    throw new Error('make room')
  }
  t.throws(() => ask(LIBRARIES), /make room/)
  hooks.during = undefined
  writer.apply([library(ONE, 2, { name: 'new' })], [])
  t.same(ask(LIBRARIES), { libraries: [{ name: 'new', shelves: [] }] })
  t.end()
})

t.test('statements are prepared once, and those that were used last are kept', (t) => {
  const { statementsMax } = LIMITS.sqlite
  const { prepare } = DatabaseSync.prototype
  let prepared = 0
  DatabaseSync.prototype.prepare = function counted(text) {
    prepared++
    return prepare.call(this, text)
  }
  t.teardown(() => {
    DatabaseSync.prototype.prepare = prepare
    overrideLimits({ 'sqlite.statementsMax': statementsMax })
  })
  const { ask } = stage(t)
  const preparedBy = (filter: string): number => {
    const before = prepared
    ask({ edge: 'libraries', filter })
    return prepared - before
  }
  const filters = ["motto == 'a'", 'rating > 1', 'rating == 2']
  for (const filter of filters) t.ok(preparedBy(filter) > 0)
  for (const filter of filters) t.equal(preparedBy(filter), 0)

  const few = stage(t)
  // The two of a transaction, and two more.
  overrideLimits({ 'sqlite.statementsMax': 4 })
  const again = (filter: string): number => {
    const before = prepared
    few.ask({ edge: 'libraries', filter })
    return prepared - before
  }
  const [a, b, c] = filters as [string, string, string]
  for (const filter of [a, b]) again(filter)
  t.equal(again(a), 0)
  t.equal(again(c), 1, 'in the place of the one that was not used for the longest time')
  t.equal(again(a), 0)
  t.equal(again(b), 1)
  t.end()
})

t.test('a connection prepares so many statements; then another one goes on', (t) => {
  t.teardown(overrideLimits({ 'sqlite.statementsMax': 4, 'sqlite.statementsMadeMax': 10 }))
  const { prepare } = DatabaseSync.prototype
  /** What each connection has prepared: only its end gives that back for sure. */
  const made = new Map<DatabaseSync, number>()
  DatabaseSync.prototype.prepare = function counted(text) {
    made.set(this, (made.get(this) ?? 0) + 1)
    return prepare.call(this, text)
  }
  t.teardown(() => {
    DatabaseSync.prototype.prepare = prepare
  })
  const { writer, ask } = stage(t)
  writer.apply([library(ONE, 1, { name: 'a' })], [])
  made.clear()
  let filter = "name == 'a'"
  for (let terms = 0; terms < 40; terms++) {
    t.same(ask({ edge: 'libraries', filter, node: { fields: ['name'] } }).libraries, [
      { name: 'a' },
    ])
    filter = `${filter} and name != 'b'`
  }
  t.ok(made.size > 3, `${made.size} connections`)
  t.ok(
    [...made.values()].every((count) => count <= 20),
    [...made.values()].join(' '),
  )
  t.equal([...made.keys()].filter((db) => db.isOpen).length, 1, 'one of them is open')
  t.end()
})

t.test('what fails leaves no trace in the writer: fills, offsets, actors', (t) => {
  const { writer, ask } = stage(t)
  const fill = { shard: 1, begun: 0, after: null, step: 1 }
  const wrong = { ...library(TWO, 1, {}), id: ONE }
  t.throws(() => writer.apply([library(ONE, 1, { name: 'a' }), wrong], [], [fill]), /root node/)
  t.equal(writer.fills().size, 0)
  t.same(ask(LIBRARIES), { libraries: [] })
  writer.apply([shelf(TWO, SHELF, 1, { label: 'b' }), library(TWO, 1, { name: 'two' })], [])
  writer.apply([library(ONE, 1, { name: 'one' }), shelf(ONE, SHELF_TWO, 1, { label: 'a' })], [])
  t.same(ask({ ...LIBRARIES, orderBy: 'name' }), {
    libraries: [
      { name: 'one', shelves: [{ label: 'a' }] },
      { name: 'two', shelves: [{ label: 'b' }] },
    ],
  })
  t.end()
})

t.test('a file that can not be read says why', (t) => {
  const { dir } = stage(t)
  const elsewhere = new SqliteGraphReader({ dir: join(dir, 'none'), schema: SCHEMA })
  t.throws(() => elsewhere.query(planOf([LIBRARIES]), 1_000), {
    errors: [{ code: 'UNAVAILABLE', message: /^The graph index can't be opened now: / }],
  })
  t.end()
})
