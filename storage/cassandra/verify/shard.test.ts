// The audit of one shard's log, over rows as only a mistake of ours would leave them: each is told
// once, with its offset. Source: PROTOCOL 3.0, 3.5, 4.1 (K4).

import t from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import {
  decodeEntry,
  encodeEntry,
  joinEntries,
  splitEntries,
} from '../../../protocol/entry/entry.ts'
import type { Entry, KeyChange } from '../../../protocol/entry/entry.ts'
import type { AliasRow, DerivedReader, EntryRow, LogRow, StoreIdentity } from '../../journal.ts'
import type { SegmentStatics } from '../../segments.ts'
import { ShardVerification, type EntryOf, type Stores } from './shard.ts'

const ACTOR = '00000000-0000-7000-8000-00000000000a'
const NOW_MS = 1_700_000_000_000

function entryOf(n: number, more: Partial<Entry> = {}): Entry {
  return {
    ...{ y: 'order', p: ACTOR, v: n - 1, n, r: [{ t: 'x' }], m: `m${n}`, l: 1, t: NOW_MS, c: 0 },
    ...{ a: { type: 'm', success: true }, b: 'me' },
    ...more,
  }
}

function rowOf(offset: number, entries: readonly Entry[], more: Partial<LogRow> = {}): LogRow {
  const body = joinEntries(entries.map((entry) => encodeEntry(entry)))
  const own = { shard: 0, epoch: 1, offset, count: entries.length, commitId: `c${offset}`, body }
  return { ...own, ...more }
}

interface Segment extends Partial<SegmentStatics> {
  readonly rows: readonly LogRow[]
}

interface Scene {
  readonly segments: readonly Segment[]
  readonly flush?: number
  readonly epoch?: number
  readonly losses?: StoreIdentity['losses']
  readonly own?: number
  readonly aliases?: readonly string[]
  /** Rows of actors as they are stored; null: as the log has them. */
  readonly copies?: readonly EntryRow[] | null
  readonly repairs?: boolean
  /** Rows that one read of an actor's entries answers. */
  readonly page?: number
}

function staticsOf({ rows, ...given }: Segment): SegmentStatics {
  const last = rows.at(-1)
  const head = last?.offset ?? 0
  const [first] = rows
  const base = first === undefined ? 0 : first.offset - first.count
  return { epoch: 1, base, head, lastCommit: last?.commitId ?? null, sealed: false, ...given }
}

/** What is said of a shard, and what was counted. */
async function verified(scene: Scene) {
  const { segments, flush = 0, epoch = 1, losses, own, aliases = [], page = 100 } = scene
  const logged = segments.flatMap(({ rows }) => rows)
  const copies = scene.copies ?? copiesOf(logged)
  const asked: string[] = []
  const derived: Partial<DerivedReader> = {
    consumer: async () => flush,
    shard: async () => (own === undefined ? null : { offset: own, body: Buffer.of() }),
    entries: async (_, range) => {
      if (range.order !== 'ascending') return copies.toReversed().slice(0, range.countMax)
      return copies.filter(({ n }) => n > range.after).slice(0, page)
    },
    alias: async (keyType, key): Promise<AliasRow | null> => {
      asked.push(key)
      return aliases.includes(key) ? { keyType, key, claims: [] } : null
    },
  }
  const put: [EntryOf, number][] = []
  const stores = {
    identity: { format: 1, shards: 1, generation: 'g', secret: '', ...(losses && { losses }) },
    control: { shard: async () => ({ epoch }) },
    segments: {
      statics: async ({ segment }: { segment: number }) => {
        const found = segments[segment - 1]
        return found === undefined ? null : staticsOf(found)
      },
      rows: async ({ segment }: { segment: number }, { after }: { after: number }) =>
        segments[segment - 1]!.rows.filter(({ offset }) => offset > after),
    },
    derived,
    nowMs: NOW_MS,
    putBack:
      scene.repairs === true ? async (...row: [EntryOf, number]) => void put.push(row) : null,
  } as unknown as Stores
  const lines: string[] = []
  const verification = new ShardVerification(stores, 0, (line) => lines.push(line))
  await verification.run()
  const { groups, entries, segment, head } = verification
  return { lines, groups, entries, segment, head, asked, put }
}

function copiesOf(rows: readonly LogRow[]): EntryRow[] {
  return rows.flatMap(({ offset, count, body }) => {
    return splitEntries(body).map((bytes, i) => {
      return { n: decodeEntry(bytes).n, offset: offset - count + 1 + i, body: bytes }
    })
  })
}

const [one, two, three] = [1, 2, 3].map((n) => rowOf(n, [entryOf(n)])) as [LogRow, LogRow, LogRow]

t.test('a sound log over two segments, the second of a later epoch', async (t) => {
  const later = rowOf(4, [entryOf(3), entryOf(4)], { epoch: 3 })
  const found = await verified({
    segments: [
      { rows: [one, two], sealed: true },
      { rows: [later], epoch: 3 },
    ],
    ...{ flush: 4, epoch: 3, own: 4 },
  })
  t.same(found, {
    ...{ lines: [], groups: 3, entries: 4, segment: 2, head: 4, asked: [], put: [] },
  })
  const open = await verified({ segments: [{ rows: [one] }, { rows: [two] }] })
  t.match(open, { segment: 1, head: 1 }, 'nothing is looked for behind one that is open')
})

const CASES: readonly (readonly [name: string, scene: Scene, wanted: readonly string[]])[] = [
  [
    'an epoch that falls',
    { segments: [{ rows: [rowOf(1, [entryOf(1)], { epoch: 4 }), two], epoch: 4 }], epoch: 4 },
    ['offset 2: its epoch falls from 4 to 1'],
  ],
  [
    'one that falls in a later segment',
    {
      segments: [
        { rows: [rowOf(1, [entryOf(1)], { epoch: 4 })], epoch: 4, sealed: true },
        { rows: [two], epoch: 4 },
      ],
      epoch: 4,
    },
    ['offset 2: its epoch falls from 4 to 1'],
  ],
  [
    "an epoch above its segment's",
    { segments: [{ rows: [one, rowOf(2, [entryOf(2)], { epoch: 2 })] }] },
    ["offset 2: its epoch 2 is above its segment's"],
  ],
  [
    'a commit id twice',
    {
      segments: [
        { rows: [one], sealed: true },
        { rows: [rowOf(2, [entryOf(2)], { commitId: 'c1' })] },
      ],
    },
    ['offset 2: commit id c1 is there twice'],
  ],
  [
    'an offset in two groups',
    {
      segments: [
        { rows: [rowOf(2, [entryOf(1), entryOf(2)]), rowOf(3, [entryOf(3), entryOf(4)])] },
      ],
    },
    ['offset 2: is in two groups'],
  ],
  [
    'a head below its base',
    { segments: [{ rows: [], base: 5, head: 4 }] },
    ['segment 1: its head 4 is below its base 5'],
  ],
  [
    'a segment that begins elsewhere',
    { segments: [{ rows: [one], sealed: true }, { rows: [rowOf(3, [entryOf(2)])] }] },
    ['segment 2 begins at 2, the one before it ends at 1'],
  ],
  [
    "a shard's own row above its head",
    { segments: [{ rows: [one] }], own: 2 },
    ['its own row is of offset 2, its head is 1'],
  ],
  [
    'flushed above its head',
    { segments: [{ rows: [one] }], flush: 2 },
    ['its flush offset 2 is above its head 1'],
  ],
  ['no segment at all', { segments: [] }, ['its log has no first segment']],
  [
    'an epoch above the row of the shard',
    { segments: [{ rows: [one], epoch: 2 }] },
    ['its epoch is 1, its log has 2'],
  ],
  [
    'another last commit',
    { segments: [{ rows: [one], lastCommit: 'another' }] },
    ['segment 1: its last group is another one than its statics say'],
  ],
]

for (const [name, scene, wanted] of CASES) {
  t.test(name, async (t) => {
    const { lines } = await verified(scene)
    t.same(
      lines,
      wanted.map((line) => `shard 0: ${line}`),
    )
  })
}

t.test('behind an accepted loss the next segment begins where the log goes on', async (t) => {
  const behind = rowOf(101, [entryOf(2)])
  const segments = [{ rows: [one], sealed: true }, { rows: [behind] }]
  const loss = { shard: 0, offset: 1, resumedAt: 100 }
  t.same((await verified({ segments, losses: [loss] })).lines, [])
  for (const other of [
    { ...loss, shard: 1 },
    { ...loss, offset: 2 },
    { ...loss, resumedAt: 99 },
  ]) {
    const { lines } = await verified({ segments, losses: [other] })
    t.same(lines, ['shard 0: segment 2 begins at 100, the one before it ends at 1'])
  }
})

t.test('rows that were trimmed may be missing, with all below them, up to the flush', async (t) => {
  const all = { base: 0, head: 3 }
  const of = (rows: readonly LogRow[], flush: number) =>
    verified({ segments: [{ rows, ...all, lastCommit: 'c3' }], flush })
  t.same((await of([two, three], 1)).lines, [])
  t.same((await of([three], 2)).lines, [])
  t.same((await of([], 3)).lines, [])
  t.same((await of([three], 1)).lines, ['shard 0: offset 1: the entries up to 2 are missing'])
  t.same((await of([], 2)).lines, ['shard 0: offset 1: the entries up to 3 are missing'])
  const behind = rowOf(3, [entryOf(2)])
  t.same((await of([one, behind], 3)).lines, ['shard 0: offset 2: the entries up to 2 are missing'])
})

t.test('an actor is compared with its rows, however many a read answers', async (t) => {
  const rows = [one, two, three]
  for (const page of [1, 2, 100]) {
    t.same((await verified({ segments: [{ rows }], flush: 3, page })).lines, [])
  }
  const copies = copiesOf([one, three])
  const missing = `shard 0: offset 2: actor ${ACTOR}: entry 2 is flushed and has no row`
  for (const page of [1, 100]) {
    const found = await verified({ segments: [{ rows }], flush: 3, copies, page })
    t.same(found.lines, [missing])
  }
  t.same((await verified({ segments: [{ rows }], flush: 1, copies })).lines, [], 'not flushed')
  const repaired = await verified({ segments: [{ rows }], flush: 3, copies, repairs: true })
  t.same(repaired.lines, [`${missing}; it was put back`])
  const body = encodeEntry(entryOf(2))
  t.match(repaired.put, [[{ actorId: ACTOR, n: 2, offset: 2, body }, 4]], 'above what expired')
  t.equal(repaired.put.length, 1)
})

t.test('in the place of a refusal a later entry may stand, and no older one', async (t) => {
  const refusal = rowOf(2, [entryOf(2, { r: [] })])
  const over = rowOf(3, [entryOf(2, { m: 'over' })])
  const rows = [one, refusal, over]
  const later = copiesOf([one, over])
  t.same((await verified({ segments: [{ rows }], flush: 3, copies: later })).lines, [])
  const older = copiesOf([one, refusal])
  const { lines } = await verified({ segments: [{ rows }], flush: 3, copies: older })
  t.match(lines, [/offset 3: actor \S+: entry 2 \(.*\) has a row of offset 2$/])
})

t.test("keys that were taken have rows, while these can't have expired", async (t) => {
  const change = (key: string, what: KeyChange['change']): KeyChange => {
    return { keyType: 'order', key, change: what, actorId: ACTOR }
  }
  const scene = async (entry: Entry, flush: number, aliases: readonly string[] = []) =>
    verified({ segments: [{ rows: [rowOf(1, [entry])] }], flush, aliases })
  const taken = entryOf(1, { k: [change('7', 'take')] })
  const missing = ["shard 0: offset 1: key '7' of order has no row"]
  t.same((await scene(taken, 1)).lines, missing)
  t.same((await scene(taken, 1, ['7'])).lines, [])
  t.same((await scene(taken, 0)).asked, [], 'not flushed')
  for (const what of ['free', 'claim', 'confirm'] as const) {
    t.same((await scene(entryOf(1, { k: [change('7', what)] }), 1)).asked, [], what)
  }
  const at = (t: number): Entry => entryOf(1, { k: [change('7', 'take')], t })
  t.same((await scene(at(NOW_MS - LIMITS.storage.callerMarkMs), 1)).lines, missing)
  t.same((await scene(at(NOW_MS - LIMITS.storage.callerMarkMs - 1), 1)).lines, [])
})

t.test('an actor that is forgotten lacks what it had, and nothing of it is put back', async (t) => {
  const body = (n: number, more: Partial<Entry> = {}): Entry => entryOf(n, more)
  const lived = [rowOf(1, [body(1)]), rowOf(2, [body(2)]), rowOf(3, [body(3, { f: 0 })])]
  const end = copiesOf(lived).slice(2)
  const told = rowOf(4, [body(1, { v: 0, r: [], s: [1, 1, 0], f: 0, m: 'late' })])
  const repairs = true
  for (const [what, copies, rows] of [
    ['its end is there', end, lived],
    ['that has gone as well', [], lived],
    ['and its first number is given out again', copiesOf([told]), [...lived, told]],
  ] as const) {
    const segments = [{ rows }]
    const { lines, put } = await verified({ segments, flush: rows.length, copies, repairs })
    t.same(lines, [], what)
    t.same(put, [], what)
  }
  const alive = lived.slice(0, 2)
  const segments = [{ rows: alive }]
  const { lines, put } = await verified({ segments, flush: 2, copies: [], repairs })
  t.equal(lines.length, 2, 'one that has not ended lacks them')
  t.equal(put.length, 2)
})
