// A log that is filled from another store's rows: joined within the bounds of a group, in segments,
// once, whatever was sent before. Source: PROTOCOL 3.1, 3.2, 3.5 "Roll".

import t from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import { joinEntries, splitEntries } from '../../../protocol/entry/entry.ts'
import { freshUuid } from '../../conformance/journal-samples.ts'
import type { Outcome } from '../../control.ts'
import type { StoreSource } from '../../copy.ts'
import type { Group, LogRow } from '../../journal.ts'
import { MemorySegments, newStatementState } from '../../memory/statements.ts'
import type { SegmentStore } from '../../segments.ts'
import { fillLog } from './fill-log.ts'

interface Made {
  readonly count?: number
  readonly epoch?: number
  readonly bytes?: number
}

/** Rows of shard 0 behind `floor`. */
function rowsOf(floor: number, made: readonly Made[]): LogRow[] {
  let offset = floor
  return made.map(({ count = 1, epoch = 1, bytes = 5 }) => {
    const entries = Array.from({ length: count }, (_, i) => {
      return Buffer.from(`${offset + 1 + i}`.padEnd(bytes, '.'))
    })
    offset += count
    return { shard: 0, epoch, offset, count, commitId: freshUuid(), body: joinEntries(entries) }
  })
}

async function fill(
  segments: SegmentStore,
  rows: readonly LogRow[],
  more: { readonly floor?: number; readonly epoch?: number; readonly head?: number } = {},
) {
  const { floor = 0, epoch = 9, head = rows.at(-1)?.offset ?? floor } = more
  const written = { groups: 0, entries: 0 }
  const source = { log: () => rows } as unknown as StoreSource
  const extent = { shard: 0, epoch, floor, head }
  const segment = await fillLog(segments, source, extent, (groups, entries) => {
    written.groups += groups
    written.entries += entries
  })
  return { segment, ...written }
}

/** Groups as they stand in the segments. */
async function groupsIn(segments: SegmentStore, last = 1) {
  const found: LogRow[] = []
  for (let segment = 1; segment <= last; segment++) {
    found.push(...(await segments.rows({ shard: 0, segment }, { after: 0, bytesMax: 1e9 })))
  }
  return found
}

function entriesIn(rows: readonly LogRow[]): string[] {
  return rows.flatMap(({ body }) => splitEntries(body).map(String))
}

const memory = (): SegmentStore => new MemorySegments(newStatementState(0))
const FIRST = { shard: 0, segment: 1 }

t.test('small groups are joined, but not over epochs', async (t) => {
  const segments = memory()
  const rows = rowsOf(3, [{ count: 2 }, {}, { epoch: 2 }, { count: 3, epoch: 2 }, { epoch: 5 }])
  t.same(await fill(segments, rows, { floor: 3 }), { segment: 1, groups: 3, entries: 8 })
  const found = await groupsIn(segments)
  t.same(
    found.map(({ offset, count, epoch, commitId }) => [offset, count, epoch, commitId]),
    [
      [6, 3, 1, rows[1]!.commitId],
      [10, 4, 2, rows[3]!.commitId],
      [11, 1, 5, rows[4]!.commitId],
    ],
  )
  t.same(entriesIn(found), entriesIn(rows))
  t.match(await segments.statics(FIRST), { base: 3, head: 11, epoch: 9, sealed: false })
})

t.test('a group has so many entries and bytes at most, or is as it was', async (t) => {
  const counts = async (made: readonly Made[]): Promise<number[]> => {
    const segments = memory()
    await fill(segments, rowsOf(0, made))
    return (await groupsIn(segments)).map(({ count }) => count)
  }
  const { groupEntriesMax, groupBytesMax } = LIMITS.storage
  t.same(await counts([{ count: groupEntriesMax - 1 }, {}, {}]), [groupEntriesMax, 1])
  t.same(await counts([{ count: groupEntriesMax }, {}]), [groupEntriesMax, 1])
  const half = rowsOf(0, [{ bytes: 1_000 }])[0]!.body.length
  const fits = Math.floor(groupBytesMax / half)
  const found = await counts(Array.from({ length: fits + 1 }, () => ({ bytes: 1_000 })))
  t.same(found, fits > groupEntriesMax ? [groupEntriesMax, fits + 1 - groupEntriesMax] : [fits, 1])
  const large = { bytes: groupBytesMax }
  t.same(await counts([{}, large, {}]), [1, 1, 1], 'one that is too large goes alone')
  const heavy = { bytes: groupBytesMax / 4 - 100 }
  t.same(await counts(Array.from({ length: 9 }, () => heavy)), [4, 4, 1])
})

t.test('a fill goes on where one before has ended, in the middle of what was joined', async (t) => {
  const rows = rowsOf(0, [{ count: 2 }, { count: 5 }, { count: 3 }, { epoch: 2 }])
  for (const cut of [1, 2, 4, 7, 9, 10, 11]) {
    const segments = memory()
    // Another version has joined other rows.
    const entries = rows.flatMap(({ body }) => splitEntries(body)).slice(0, cut)
    await segments.open(FIRST, { epoch: 1, head: 0 })
    const sent = { ...rows[0]!, head: 0, count: cut, commitId: freshUuid() }
    t.equal(await segments.append(1, { ...sent, body: joinEntries(entries) }), 'applied')
    const { entries: written } = await fill(segments, rows)
    t.equal(written, 11 - cut, `behind ${cut}`)
    const found = await groupsIn(segments)
    t.same(entriesIn(found), entriesIn(rows), `behind ${cut}`)
    t.same(
      found.map(({ offset, count }) => offset - count),
      [0, ...found.slice(0, -1).map(({ offset }) => offset)],
    )
  }
})

t.test('segments are rolled by rows and by bytes, each behind the one before', async (t) => {
  const { segmentBytesMax } = LIMITS.storage
  const bytes = 1_000_000
  // An epoch each, so that nothing is joined.
  const made = Array.from({ length: 150 }, (_, i) => ({ epoch: 1 + i, bytes }))
  const segments = memory()
  const rows = rowsOf(0, made)
  const { segment } = await fill(segments, rows, { epoch: 200 })
  const each = Math.ceil(segmentBytesMax / rows[0]!.body.length)
  t.equal(segment, Math.ceil(150 / each))
  let head = 0
  for (let at = 1; at <= segment; at++) {
    const statics = (await segments.statics({ shard: 0, segment: at }))!
    t.equal(statics.base, head)
    head = Math.min(150, head + each)
    t.match(statics, { head, sealed: at < segment })
  }
  t.same((await groupsIn(segments, segment)).length, 150)
  const again = await fill(segments, rows, { epoch: 200 })
  t.same(again, { segment, groups: 0, entries: 0 }, 'once more changes nothing')
})

t.test('rows of one segment are bounded, however small', async (t) => {
  const { segmentRowsMax } = LIMITS.storage
  const made = Array.from({ length: segmentRowsMax + 3 }, (_, i) => ({ epoch: 1 + i, bytes: 1 }))
  const segments = memory()
  const { segment } = await fill(segments, rowsOf(0, made), { epoch: segmentRowsMax + 9 })
  t.equal(segment, 2)
  t.match(await segments.statics(FIRST), { head: segmentRowsMax, sealed: true })
})

/** Segments whose answers to appends are changed. */
function answering(answer: (group: Group, send: () => Promise<Outcome>) => Promise<Outcome>) {
  const segments = memory()
  const { append } = segments
  segments.append = (segment, group) => answer(group, () => append.call(segments, segment, group))
  return segments
}

t.test(
  'an append that got no answer is asked for, and sent again where it is not in',
  async (t) => {
    for (const isIn of [true, false]) {
      const asked = new Set<string>()
      const segments = answering(async (group, send) => {
        if (asked.has(group.commitId)) return send()
        asked.add(group.commitId)
        if (isIn) await send()
        return 'unknown'
      })
      const rows = rowsOf(0, [{ count: 2 }, { epoch: 2 }])
      t.same(await fill(segments, rows), { segment: 1, groups: 2, entries: 3 })
      t.same(entriesIn(await groupsIn(segments)), entriesIn(rows))
    }
  },
)

t.test('who else writes the log ends the fill', async (t) => {
  const segments = answering(async (group, send) => {
    await segments.fence(FIRST, 50)
    const own = { ...group, epoch: 50, commitId: freshUuid() }
    if (group.epoch !== 50) await segments.append(1, own)
    return send()
  })
  await t.rejects(fill(segments, rowsOf(0, [{}])), /somebody else writes its log/)
})

t.test('a source that ends before its head is no whole copy', async (t) => {
  await t.rejects(fill(memory(), rowsOf(0, [{ count: 3 }]), { head: 4 }), /ends at its head/)
})
