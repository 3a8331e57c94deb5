// Images of the configuration: of any size, written in parts, one at a time, and none that is not
// whole.

import t from 'tap'
import { LIMITS } from '../config/limits.ts'
import type { AppendOutcome, DerivedRow, Journal } from '../storage/journal.ts'
import { SystemFollower } from './system-follower.ts'
import { SystemMaps } from './system-view.ts'
import { TestClock, settle } from './testing/harness.ts'
import { BEHAVIOURS, all } from './testing/setting-actor.ts'

// --- images of any size ---------------------------------------------------------------------

/** Maps of `count` values, as far on as an image is due. */
function mapsOf(count: number, value: unknown): SystemMaps {
  const maps = new SystemMaps(BEHAVIOURS)
  for (let i = 1; i <= count; i++) {
    const fixed = { y: 'setting', n: 1, m: `${i}`, l: 0 as const, t: 0, c: 0, b: 'me', v: 0 }
    const a = { type: 'put', success: true as const }
    maps.follow({ ...fixed, p: `actor ${i}`, q: `${i}`, r: [{ t: 'put', value }], a }, i)
  }
  maps.offset = LIMITS.cluster.systemImageEntries
  return maps
}

/** A follower of these maps whose rows go to `write`. */
function imaging(
  maps: SystemMaps,
  write: (rows: readonly DerivedRow[]) => AppendOutcome | Promise<AppendOutcome>,
) {
  const errors: unknown[] = []
  const tell = (fields: object) => errors.push(fields)
  const log = { debug: () => 0, info: () => 0, warn: tell, error: tell }
  const derived = {
    write: (...[, , rows]: [number, number, readonly DerivedRow[]]) => Promise.resolve(write(rows)),
    trimImages: () => Promise.resolve(),
  }
  const journal = { identity: {}, derived } as unknown as Journal
  return { errors, follower: new SystemFollower({ journal, maps, clock: new TestClock(), log }) }
}

t.test(
  'an image larger than the longest text is written, a part in flight at a time',
  async (t) => {
    const values = 600
    const maps = mapsOf(values, 'x'.repeat(LIMITS.registry.valueBytesMax))
    const kinds: string[] = []
    let largest = 0
    const { follower, errors } = imaging(maps, (rows) => {
      for (const row of rows) {
        kinds.push(row.kind === 'image' ? `part ${row.part}` : row.kind)
        if (row.kind === 'image') largest = Math.max(largest, row.body.length)
      }
      t.equal(rows.length, 1)
      return 'committed'
    })
    await follower.writeImage(1)
    t.same(errors, [])
    t.same(kinds, [...Array.from({ length: values }, (_, part) => `part ${part}`), 'consumer'])
    t.ok(largest < 1.1 * LIMITS.registry.valueBytesMax)
  },
)

t.test(
  'an image that can not be made or written ends nothing, and is not the newest',
  async (t) => {
    const cyclic: Record<string, unknown> = {}
    cyclic['itself'] = cyclic
    const unmade = imaging(mapsOf(1, cyclic), () => 'committed')
    await unmade.follower.writeImage(1)
    t.equal(unmade.errors.length, 1)
    const maps = mapsOf(40, 'x'.repeat(100_000))
    let next: AppendOutcome = 'unknown'
    let writes = 0
    const unwritten = imaging(maps, () => {
      writes++
      return next
    })
    await unwritten.follower.writeImage(1)
    t.equal(unwritten.errors.length, 1)
    t.equal(writes, 1, 'what follows a part that is not in is not written')
    next = 'committed'
    maps.offset += LIMITS.cluster.systemImageEntries - 1
    await unwritten.follower.writeImage(1)
    t.equal(writes, 1, 'nor is the whole of it begun again with each entry')
    maps.offset++
    await unwritten.follower.writeImage(1)
    t.ok(writes > 3)
    t.equal(unwritten.follower.trimmable, 0)
  },
)

t.test('an image whose last word is not in is none: the log stays', async (t) => {
  const maps = mapsOf(2, 'x')
  let isIn = true
  const { follower } = imaging(maps, ([row]) =>
    isIn || row!.kind === 'image' ? 'committed' : 'unknown',
  )
  const next = (): Promise<void> => {
    maps.offset += LIMITS.cluster.systemImageEntries
    return follower.writeImage(1)
  }
  const first = maps.offset
  await follower.writeImage(1)
  t.equal(follower.trimmable, 0)
  isIn = false
  await next()
  t.equal(follower.trimmable, 0, 'the first is the newest still')
  isIn = true
  await next()
  t.equal(follower.trimmable, first)
})

t.test('no image is begun beside another that takes long', async (t) => {
  const maps = mapsOf(1, 'x')
  let writes = 0
  let end = (): void => undefined
  const { follower } = imaging(maps, () => {
    writes++
    return new Promise((resolve) => (end = () => resolve('committed')))
  })
  const slow = follower.writeImage(1)
  maps.offset += LIMITS.cluster.systemImageEntries
  await follower.writeImage(1)
  t.equal(writes, 1)
  for (let i = 0; i < 2; i++) {
    end()
    await settle()
  }
  await slow
  void follower.writeImage(1)
  t.equal(writes, 3, 'then the next')
})

t.test('parts of an image are cut by bytes, and all of them are one moment', (t) => {
  const maps = mapsOf(40, 'ä'.repeat(50_000))
  const parts: Buffer[] = []
  for (const part of maps.image()) {
    parts.push(part)
    if (parts.length === 1) maps.load(maps.offset + 1, [])
  }
  t.ok(parts.every(({ length }) => length <= LIMITS.storage.imageChunkBytes))
  const found = new SystemMaps(BEHAVIOURS)
  found.load(1, parts)
  t.same(all(found), all(mapsOf(40, 'ä'.repeat(50_000))))
  t.same([...new SystemMaps(BEHAVIOURS).image()].map(String), ['[]'], 'an empty one has a part')
  t.end()
})
