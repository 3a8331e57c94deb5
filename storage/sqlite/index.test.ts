// What only the SQLite index has to keep: its file over restarts, other node types and damage; the
// memory of removals; and indexes that serve the questions people ask.

import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { RequestError } from '../../protocol/errors.ts'
import { compareText } from '../../protocol/graph/evaluate.ts'
import { FULL_ACCESS } from '../../protocol/graph/planning.ts'
import { planNavigations } from '../../protocol/graph/navigation.ts'
import { graphSchema } from '../../protocol/graph/schema.ts'
import { planOf } from '../conformance/search-index.ts'
import { actorIds, NODE_TYPES, SCHEMA, shelfIds } from '../conformance/search-nodes.ts'
import { IndexAway } from '../search.ts'
import { isDamage, isOfFile, openForWriting } from './file.ts'
import { keyBytes, layoutOf } from './layout.ts'
import { SqliteGraphReader } from './reader.ts'
import { StepSelect } from './select.ts'
import { textBehind, TICK } from './sql.ts'
import { SqliteGraphWriter } from './writer.ts'

const [ONE, TWO] = actorIds as [string, string]

function folder(t: Test): string {
  const dir = mkdtempSync(join(tmpdir(), 'kontor-graph-'))
  t.teardown(() => rmSync(dir, { recursive: true }))
  return dir
}

const library = (actorId: string, version: number, name: string | null) => ({
  node: 'library',
  actorId,
  id: actorId,
  version,
  doc: name === null ? null : { libraryId: actorId, name },
})

function refusal(run: () => unknown): string | null {
  try {
    run()
    return null
  } catch (error) {
    if (error instanceof RequestError) return error.errors[0]!.code
    throw error
  }
}

function ask(reader: SqliteGraphReader, body: unknown): Record<string, unknown> {
  return { ...reader.query(planOf(body), 1_000_000) }
}

void t.test('a file that has no room is away, and what is refused of an actor is not', (t) => {
  const dir = folder(t)
  const small = new SqliteGraphWriter({ dir, schema: SCHEMA, pagesMax: 64 })
  small.reset('one')
  const large = library(ONE, 1, 'a'.repeat(1024 * 1024))
  t.throws(() => small.apply([large], [{ shard: 0, offset: 1 }]), IndexAway)
  t.same([...small.offsets()], [], 'nothing moved')
  small.close()
  const writer = new SqliteGraphWriter({ dir, schema: SCHEMA })
  t.teardown(() => writer.close())
  writer.apply([large], [{ shard: 0, offset: 1 }])
  t.same([...writer.offsets()], [[0, 1]], 'with room again it goes on')
  const unknown = { ...library(TWO, 1, 'b'), node: 'nothing' }
  t.throws(() => writer.apply([unknown], []), { message: /^node type nothing/ })
  t.end()
})

void t.test('its log stays within a bound, and each transaction is on the disk', (t) => {
  const dir = folder(t)
  const [logBytes, batchBytes] = [1024 ** 2, 256 * 1024]
  const writer = new SqliteGraphWriter({ dir, schema: SCHEMA, logBytes })
  t.teardown(() => writer.close())
  writer.reset('one')
  let most = 0
  for (let version = 1; version <= 40; version++) {
    writer.apply([library(ONE, version, 'a'.repeat(batchBytes))], [{ shard: 0, offset: version }])
    most = Math.max(most, statSync(join(dir, 'graph.sqlite-wal')).size)
  }
  t.ok(most > logBytes / 2, `${most}: it is not copied with every transaction`)
  t.ok(most < logBytes + 2 * batchBytes, `${most}: the bound, and the transaction that passes it`)
  const opening = { layout: layoutOf(SCHEMA), types: NODE_TYPES, isFilling: false, logBytes }
  const db = openForWriting({ dir, number: 0 }, opening)
  t.equal(db.prepare('PRAGMA synchronous').get()!['synchronous'], 2, 'FULL')
  db.close()
  t.end()
})

void t.test('of failures SQLite says which are of the file and which of what was written', (t) => {
  const of = (errcode: number): Error => Object.assign(new Error('no'), { errcode })
  for (const code of [5, 6, 7, 8, 10, 11, 13, 14, 26, 266, 778, 1034, 2570]) {
    t.ok(isOfFile(of(code)), `${code}`)
  }
  for (const code of [1, 18, 19, 20, 25, 2067]) t.notOk(isOfFile(of(code)), `${code}`)
  t.notOk(isOfFile(new Error('ours')))
  t.ok(isDamage(new IndexAway('why', { cause: of(11) })), 'damage is found behind it')
  t.notOk(isDamage(new IndexAway('why', { cause: of(13) })))
  t.end()
})

void t.test('other node types make another index', (t) => {
  const dir = folder(t)
  const writer = new SqliteGraphWriter({ dir, schema: SCHEMA })
  writer.reset('one')
  writer.apply([library(ONE, 1, 'a')], [{ shard: 0, offset: 1 }])
  writer.close()

  const types = NODE_TYPES.map((type) =>
    type.name === 'city'
      ? { ...type, fields: [...type.fields, { name: 'more', type: 'text' as const }] }
      : type,
  )
  const schema = graphSchema(types)
  const early = new SqliteGraphReader({ dir, schema })
  t.equal(
    refusal(() => ask(early, [{ edge: 'libraries' }])),
    'UNAVAILABLE',
    'not read before it is made',
  )
  const again = new SqliteGraphWriter({ dir, schema })
  t.equal(again.generation(), null, 'it has to be filled again')
  t.same([...again.offsets()], [])
  t.same(ask(early, [{ edge: 'libraries' }]), { libraries: [] })
  early.close()
  again.close()
  t.end()
})

void t.test('a missing or damaged file', (t) => {
  const dir = folder(t)
  const reader = new SqliteGraphReader({ dir, schema: SCHEMA })
  t.equal(
    refusal(() => ask(reader, [{ edge: 'libraries' }])),
    'UNAVAILABLE',
  )
  t.notOk(existsSync(join(dir, 'graph.sqlite')), 'reading makes no file')
  writeFileSync(join(dir, 'graph.sqlite'), 'this is no database, '.repeat(1_000))
  const writer = new SqliteGraphWriter({ dir, schema: SCHEMA })
  t.equal(writer.generation(), null)
  writer.reset('one')
  writer.apply([library(ONE, 1, 'a')], [])
  t.same(ask(reader, [{ edge: 'libraries', count: true }]), { libraries: 1 })
  reader.close()
  writer.apply([library(TWO, 1, 'b')], [])
  t.same(ask(reader, [{ edge: 'libraries', count: true }]), { libraries: 2 }, 'opened anew')
  reader.close()
  writer.close()
  t.end()
})

void t.test('removals are forgotten after a day', (t) => {
  const dir = folder(t)
  let nowMs = 0
  const writer = new SqliteGraphWriter({ dir, schema: SCHEMA, nowMs: () => nowMs })
  const reader = new SqliteGraphReader({ dir, schema: SCHEMA })
  const count = (): unknown => ask(reader, [{ edge: 'libraries', count: true }])['libraries']
  writer.reset('one')
  writer.apply([library(ONE, 1, 'a'), library(TWO, 1, 'b')], [])
  nowMs = 1_000
  writer.apply([library(ONE, 2, null), library(TWO, 2, null), library(TWO, 3, 'c')], [])
  t.equal(count(), 1)
  nowMs = LIMITS.storage.indexTombstoneMs
  writer.apply([], [])
  writer.apply([library(ONE, 1, 'a')], [])
  t.equal(count(), 1, 'remembered for a day')
  nowMs += 120_000
  writer.apply([], [])
  t.equal(count(), 1, 'what came back is not forgotten with its removal')
  writer.apply([library(ONE, 1, 'a')], [])
  t.equal(count(), 2)
  writer.close()
  reader.close()
  t.end()
})

void t.test('removals are forgotten as fast as they come', (t) => {
  const dir = folder(t)
  let nowMs = 0
  const writer = new SqliteGraphWriter({ dir, schema: SCHEMA, nowMs: () => nowMs })
  const idOf = (i: number): string => `0190b000-0000-7000-8000-${String(i).padStart(12, '0')}`
  const removals = (from: number, count: number) =>
    Array.from({ length: count }, (_, i) => library(idOf(from + i), 1, null))
  const file = new DatabaseSync(join(dir, 'graph.sqlite'), { readOnly: true })
  const left = (): unknown =>
    file.prepare('SELECT count(*) AS count FROM tombstone').get()!['count']
  const many = 2 * LIMITS.storage.indexPurgeMax
  writer.reset('one')
  writer.apply(removals(0, 2 * many), [])
  t.equal(left(), 2 * many)
  nowMs = 2 * LIMITS.storage.indexTombstoneMs
  writer.apply([], [])
  t.equal(left(), 2 * many - LIMITS.storage.indexPurgeMax, 'a bounded number in one transaction')
  writer.apply([], [])
  t.equal(left(), many, 'and the next goes on at once')
  writer.apply(removals(2 * many, many), [])
  t.equal(left(), many, 'more than come with it')
  nowMs += 1_000
  writer.apply([], [])
  nowMs += LIMITS.storage.indexTombstoneMs
  writer.apply([], [])
  writer.apply([], [])
  t.equal(left(), 0)
  file.close()
  writer.close()
  t.end()
})

void t.test('promises of node types are checked', (t) => {
  const writer = new SqliteGraphWriter({ dir: folder(t), schema: SCHEMA })
  writer.reset('one')
  const wrong = { ...library(ONE, 1, 'a'), id: TWO }
  t.throws(() => writer.apply([wrong], []), /a library is a root node/)
  const doc = { shelfId: shelfIds[0], libraryId: TWO }
  const shelf = { node: 'shelf', actorId: ONE, id: shelfIds[0]!, version: 1, doc }
  t.throws(() => writer.apply([shelf], []), /libraryId of a shelf must be its actor's UUID/)
  t.throws(() => writer.apply([library('x', 1, 'a')], []), /an actor's id is a UUID|root node/)
  writer.apply([library(ONE, 1, 'a')], [])
  t.pass('and the next step is applied')
  writer.close()
  t.end()
})

void t.test('indexes serve', (t) => {
  const dir = folder(t)
  new SqliteGraphWriter({ dir, schema: SCHEMA }).close()
  const db = new DatabaseSync(join(dir, 'graph.sqlite'))
  db.function(TICK, () => 1)
  const layouts = layoutOf(SCHEMA).nodes
  const explained = (navigation: object, form: 'sorted' | 'unsorted' | 'count' = 'sorted') => {
    const options = { nowMs: 0, limits: LIMITS.graph }
    const plan = planNavigations([navigation], SCHEMA, FULL_ACCESS, options)
    const select = new StepSelect(layouts, plan.steps[0]!)
    const { text, params } = form === 'count' ? select.count() : select.rows(form === 'sorted')
    const values = form === 'count' ? params : [...params, 1]
    const rows = db.prepare(`EXPLAIN QUERY PLAN ${text}`).all(...(values as string[]))
    return rows.map((row) => String(row['detail'])).join('\n')
  }
  const libraries = (more: object): object => ({ edge: 'libraries', ...more })
  const served: [object, RegExp, RegExp?][] = [
    [libraries({}), /USING INDEX by_library_id/, /TEMP B-TREE FOR ORDER BY/],
    [libraries({ filter: `libraryId == '${ONE}'` }), /by_library_id \(id=\?\)/],
    [libraries({ filter: "name == 'a'" }), /by_library_name \(f_name=\?\)/],
    [libraries({ filter: "name in ['a', 'b']" }), /by_library_name \(f_name=\?\)/],
    [libraries({ filter: "name startsWith 'a'" }), /by_library_name \(f_name>\? AND f_name<\?\)/],
    [
      libraries({ filter: "name == 'a'", orderBy: 'openedAt desc' }),
      /by_library_name/,
      /TEMP B-TREE FOR ORDER BY/,
    ],
    [
      libraries({ filter: "kind == 'small'", orderBy: 'openedAt desc' }),
      /by_library_kind/,
      /TEMP B-TREE FOR ORDER BY/,
    ],
    [libraries({ filter: "kind == 'small' and name == 'a'" }), /by_library_name/],
    [
      libraries({ orderBy: 'openedAt desc' }),
      /SCAN t0 USING INDEX by_library_openedAt/,
      /TEMP B-TREE FOR ORDER BY/,
    ],
    [
      libraries({ orderBy: 'openedAt' }),
      /SCAN t0 USING INDEX by_library_openedAt/,
      /TEMP B-TREE FOR ORDER BY/,
    ],
    [
      libraries({ filter: 'openedAt >= now - 1 day', orderBy: 'openedAt desc' }),
      /by_library_openedAt \(f_openedAt>\?\)/,
      /TEMP B-TREE FOR ORDER BY/,
    ],
    [
      libraries({ filter: 'area > 1 and area <= 2' }),
      /by_library_area \(f_area>\? AND f_area<\?\)/,
    ],
    [{ edge: 'shelves', filter: `libraryId == '${ONE}'` }, /INTEGER PRIMARY KEY \(rowid>\? AND/],
    [
      libraries({
        node: { navigate: [{ edge: 'shelves', require: 'some', filter: "label == 'a'" }] },
      }),
      /SEARCH t0 USING INTEGER PRIMARY KEY \(rowid=\?\)[^]*by_shelf_label/,
    ],
    [
      libraries({
        orderBy: 'openedAt desc',
        node: { navigate: [{ edge: 'books', require: 'some', filter: 'pages > 1' }] },
      }),
      /by_library_openedAt[^]*SEARCH t1 (EXISTS )?USING INTEGER PRIMARY KEY/,
    ],
    [
      libraries({ node: { navigate: [{ edge: 'city', require: 'some' }] } }),
      /by_city_code \(f_code=\?\)/,
    ],
  ]
  for (const [navigation, uses, avoids] of served) {
    const detail = explained(navigation)
    const name = JSON.stringify(navigation)
    t.match(detail, uses, name)
    if (avoids) t.notMatch(detail, avoids, name)
  }
  const counted = explained(libraries({ filter: "kind == 'small'", count: true }), 'count')
  t.match(counted, /COVERING INDEX by_library_kind/, 'counting by state reads no rows')
  db.close()
  t.end()
})

void t.test("only the actor's own UUID confines a step to its rows", (t) => {
  const dir = folder(t)
  const writer = new SqliteGraphWriter({ dir, schema: SCHEMA })
  const reader = new SqliteGraphReader({ dir, schema: SCHEMA })
  writer.reset('one')
  const twin = { ...library(ONE, 1, 'a'), doc: { libraryId: ONE, motto: TWO, twinId: TWO } }
  const shelf = { libraryId: TWO, shelfId: shelfIds[0]!, label: ONE }
  writer.apply(
    [
      twin,
      library(TWO, 1, 'b'),
      { node: 'shelf', actorId: TWO, id: shelf.shelfId, version: 1, doc: shelf },
    ],
    [],
  )
  const count = (edge: string, filter: string): unknown =>
    ask(reader, [{ edge, count: true, filter }])[edge]
  t.equal(count('libraries', `motto == '${TWO}'`), 1)
  t.equal(count('libraries', `twinId == '${TWO}'`), 1)
  t.equal(count('shelves', `label == '${ONE}'`), 1)
  t.equal(count('shelves', `libraryId == '${TWO}'`), 1)
  t.equal(count('shelves', `libraryId == '${ONE}'`), 0)
  reader.close()
  writer.close()
  t.end()
})

void t.test(
  'how far a shard is filled outlives the process, until it is filled or all is emptied',
  (t) => {
    const dir = folder(t)
    let writer = new SqliteGraphWriter({ dir, schema: SCHEMA })
    const reopen = (): void => {
      writer.close()
      writer = new SqliteGraphWriter({ dir, schema: SCHEMA })
    }
    writer.reset('one')
    const fill = (shard: number, after: string | null, step: number) => {
      return { shard, begun: 7, after, step }
    }
    writer.apply([], [], [fill(0, null, 1), fill(1, null, 1), fill(2, null, 1)])
    writer.apply([], [], [fill(0, ONE, 2)])
    writer.apply([], [{ shard: 1, offset: 7 }])
    const wanted = [
      [0, fill(0, ONE, 2)],
      [2, fill(2, null, 1)],
    ]
    const fills = () => [...writer.fills()].toSorted(([a], [b]) => a - b)
    t.same(fills(), wanted)
    reopen()
    t.same(fills(), wanted)
    t.same([...writer.offsets()], [[1, 7]])
    t.equal(writer.generation(), 'one')
    writer.reset('two')
    t.same(fills(), [])
    reopen()
    t.same([fills(), [...writer.offsets()], writer.generation()], [[], [], 'two'])
    writer.close()
    t.end()
  },
)

void t.test('keys', (t) => {
  t.same(keyBytes(ONE), new Uint8Array(Buffer.from(ONE.replaceAll('-', ''), 'hex')))
  for (const id of [
    '',
    'x',
    ONE.toUpperCase(),
    ONE.replace('-', '0'),
    `${ONE}0`,
    `é${ONE.slice(1)}`,
  ]) {
    t.equal(keyBytes(id), id === ONE ? keyBytes(ONE) : null, id)
  }
  t.end()
})

void t.test('texts with a prefix are a range', (t) => {
  const unit = fc.constantFrom('a', 'b', '\uD7FF', '\uE000', '\uFFFF', '😀', '\u{10FFFF}')
  const text = fc.string({ unit, maxLength: 4 })
  fc.assert(
    fc.property(text, text, (prefix, other) => {
      const behind = textBehind(prefix)
      if (behind === null) return /^\u{10FFFF}*$/u.test(prefix)
      const inside = compareText(other, prefix) >= 0 && compareText(other, behind) < 0
      return inside === other.startsWith(prefix)
    }),
    { numRuns: 1_000 },
  )
  t.end()
})
