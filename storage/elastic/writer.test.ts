// Writing to a search engine that answers as the test says: each document has a result for good, or
// the offsets that stand for it don't move. Source: PROTOCOL 3.13.1-3.

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { overrideLimits } from '../../config/testing/override-limits.ts'
import type { Position } from '../../protocol/ids.ts'
import { OPTIONS, library } from '../conformance/search-index.ts'
import { actorIds } from '../conformance/search-nodes.ts'
import { IndexAway, IndexGone, RefusedWrites } from '../search.ts'
import { EngineAway } from './engine.ts'
import type { BulkItem, BulkResult, SearchEngine } from './engine.ts'
import { layoutOf } from './layout.ts'
import { ElasticWriter } from './writer.ts'

const [A, B, C] = actorIds as unknown as readonly [string, string, string]
const OFFSETS: readonly Position[] = [{ shard: 0, offset: 7 }]
const FILL = { shard: 1, begun: 3, after: null, step: 1 }

/** A writer whose bulks are answered one after the other; what they named, and what was saved. */
function scene(...answers: readonly (readonly BulkResult[] | Error)[]) {
  const failing: { save?: Error; fill?: Error } = {}
  const bulks: string[][] = []
  const items: BulkItem[] = []
  const sizes: number[][] = []
  const saved: unknown[] = []
  const pauses: number[] = []
  const bulk = async (some: readonly BulkItem[]): Promise<readonly BulkResult[]> => {
    const answer = answers[bulks.length] ?? some.map(() => 'done')
    items.push(...some)
    bulks.push(some.map(({ id }) => [A, B, C].find((actor) => id.includes(actor))!))
    sizes.push(some.map(({ write }) => (write.kind === 'index' ? write.source.length : 0)))
    if (answer instanceof Error) throw answer
    return answer
  }
  const layout = layoutOf(OPTIONS.schema)
  const writer = new ElasticWriter({
    engine: { bulk } as unknown as SearchEngine,
    layout,
    rows: new Set([...layout.nodes.keys(), 'newer']),
    writeAliasOf: (name) => `${name}-write`,
    saveOffsets: async (offsets) => {
      await Promise.resolve()
      if (failing.save) throw failing.save
      saved.push(...offsets)
    },
    saveFills: async (fills) => {
      await Promise.resolve()
      if (failing.fill) throw failing.fill
      saved.push(...fills)
    },
    nowMs: () => 86_400_000,
    pause: async (ms) => void pauses.push(ms),
    beforeBulk: () => undefined,
  })
  const write = (...actors: readonly string[]) =>
    writer.apply(
      actors.map((actor) => library(actor, 1)),
      OFFSETS,
      [FILL],
    )
  return { writer, write, bulks, items, sizes, saved, pauses, failing }
}

t.test('all is there, or newer: the fill is saved, then the offsets', async (t) => {
  const { writer, write, saved } = scene(['done', 'newer'])
  await write(A, B)
  t.same(saved, [FILL, ...OFFSETS])
  t.same([...writer.offsets()], [[0, 7]])
  t.same([...writer.fills()], [[1, FILL]])
})

t.test('offsets that are not saved have not moved', async (t) => {
  const { writer, write, failing } = scene()
  failing.save = new Error('away')
  await t.rejects(write(A), /away/)
  t.equal(writer.offsets().size, 0)
})

t.test('fills that are not saved have not moved, nor the offsets behind them', async (t) => {
  const { writer, write, failing, saved } = scene()
  failing.fill = new Error('away')
  await t.rejects(write(A), /away/)
  t.equal(writer.fills().size, 0)
  t.equal(writer.offsets().size, 0)
  t.same(saved, [])
})

t.test('each write goes to its type, by its own id and version', async (t) => {
  const { writer, items, saved } = scene()
  const doc = { bookId: 'b', libraryId: A, pages: 1 }
  await writer.apply(
    [
      { node: 'book', actorId: A, id: 'b', version: 7, doc, place: 2 },
      { node: 'shelf', actorId: B, id: 's', version: 8, doc: null },
      { node: 'newer', actorId: C, id: 'n', version: 9, doc: {} },
    ],
    OFFSETS,
  )
  const source = (own: object, more: object = {}) => JSON.stringify({ ...more, kontor: own })
  const removed = { deleted: true, deletedAt: '1970-01-02T00:00:00.000Z' }
  t.strictSame(items, [
    {
      index: 'book-write',
      id: `${A}:b`,
      write: {
        ...{ kind: 'index', version: 7 },
        source: source({ actor: A, id: 'b', place: 2 }, doc),
      },
    },
    {
      index: 'shelf-write',
      id: `${B}:s`,
      write: {
        ...{ kind: 'index', version: 8 },
        source: source({ actor: B, id: 's', ...removed }),
      },
    },
  ])
  t.same(saved, OFFSETS, 'a type that this generation does not know keeps nothing back')
  const unknown = { node: 'visit', actorId: A, id: 'v', version: 1, doc: {} }
  await t.rejects(writer.apply([unknown], []), /visit has no rows/)
})

t.test('an index that is gone took nothing, whatever the others say', async (t) => {
  const { writer, write, saved } = scene(['done', 'gone', 'done'])
  await t.rejects(write(A, B, C), IndexGone)
  t.same(saved, [])
  t.equal(writer.offsets().size, 0)
})

t.test('what the engine refuses is told by its actor; the others are there', async (t) => {
  const { write, saved, bulks } = scene(['done', { refused: 'too deep' }, 'busy'])
  const error = (await write(A, B, C).catch((e: unknown) => e)) as RefusedWrites
  t.ok(error instanceof RefusedWrites)
  t.same([...error.reasons], [[B, 'too deep']])
  t.same(bulks, [[A, B, C], [C]])
  t.same(saved, [])
})

t.test('what is refused of one bulk keeps no later one back', async (t) => {
  t.teardown(overrideLimits({ 'elastic.bulkBytesMax': 1 }))
  const { write, bulks, saved } = scene([{ refused: 'no' }], ['done'], [{ refused: 'nor that' }])
  const error = (await write(A, B, C).catch((e: unknown) => e)) as RefusedWrites
  t.same(
    [...error.reasons],
    [
      [A, 'no'],
      [C, 'nor that'],
    ],
  )
  t.match(error.message, `2 actors were refused by the index; ${A}: no`)
  t.same(bulks, [[A], [B], [C]])
  t.same(saved, [])
})

t.test('only what it had no room for goes again, ever later, so many times', async (t) => {
  const some = scene(['busy', 'done', 'busy'], ['done', 'busy'])
  await some.write(A, B, C)
  t.same(some.bulks, [[A, B, C], [A, C], [C]])
  t.same(some.pauses, [LIMITS.elastic.busyMs, 2 * LIMITS.elastic.busyMs])
  t.same(some.saved, [FILL, ...OFFSETS])
  const never = scene(...Array.from({ length: 100 }, (): BulkResult[] => ['busy']))
  await t.rejects(never.write(A), IndexAway)
  t.equal(never.bulks.length, LIMITS.elastic.busyAttemptsMax)
  const waits = Array.from({ length: LIMITS.elastic.busyAttemptsMax - 1 }, (_, i) => {
    return Math.min(LIMITS.elastic.busyMs * 2 ** i, LIMITS.storage.retryMsMax)
  })
  t.same(never.pauses, waits, 'it waits ever longer, and not after the last')
  t.same(never.saved, [])
})

t.test('an engine that is away is no fault of what was written', async (t) => {
  const { write, saved } = scene(new EngineAway('no connection'))
  await t.rejects(write(A), IndexAway)
  t.same(saved, [])
})

t.test('bulks are bounded in bytes, each document goes once and in order', async (t) => {
  const one = scene()
  await one.write(A)
  const [bytes] = one.sizes.flat()
  for (const [room, wanted] of [
    [2, [[A, B], [C, A], [B]]],
    [2.9, [[A, B], [C, A], [B]]],
    [0.5, [[A], [B], [C], [A], [B]]],
    [9, [[A, B, C, A, B]]],
  ] as const) {
    overrideLimits({ 'elastic.bulkBytesMax': Math.floor(room * bytes!) })
    const some = scene()
    await some.write(A, B, C, A, B)
    t.same(some.bulks, wanted, `room for ${room}`)
  }
  const wide = scene()
  const name = '漢'.repeat(1_000)
  t.teardown(overrideLimits({ 'elastic.bulkBytesMax': 6_000 }))
  await wide.writer.apply([library(A, 1, { name }), library(B, 1, { name })], [])
  t.same(wide.bulks, [[A], [B]], 'bytes, not characters')
})

t.test('a shard that is there up to an offset is filled no more', async (t) => {
  const { writer } = scene()
  await writer.apply([], [], [FILL, { ...FILL, shard: 2 }])
  t.equal(writer.fills().size, 2)
  await writer.apply([], [{ shard: FILL.shard, offset: 3 }])
  t.same([...writer.fills().keys()], [2])
})
