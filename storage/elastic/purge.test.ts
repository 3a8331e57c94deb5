// What is removed is remembered for a day: an older write must not bring it back meanwhile. Then it
// goes, however much it is.

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import type { IndexWrite } from '../search.ts'
import { purgeRemoved } from './purge.ts'
import { firstGeneration } from './testing/first-generation.ts'

const idOf = (i: number): string => `0190b000-0000-7000-8000-${String(i).padStart(12, '0')}`
const CITY = idOf(1)

const city = (version: number, code: string | null, id = CITY): IndexWrite => {
  const doc = code === null ? null : { cityId: id, code }
  return { node: 'city', actorId: id, id, version, doc }
}

async function stage() {
  const clock = { nowMs: 1_000 }
  const { engine, writer, indexOf, writeAliasOf, refresh } = await firstGeneration(
    () => clock.nowMs,
  )
  const index = indexOf('city')
  const writeAlias = writeAliasOf('city')
  const { documents } = engine.state.get(index)!
  return {
    clock,
    engine,
    writer,
    documents,
    seen: () => refresh('city'),
    purge: (mayGoOn = () => true) =>
      purgeRemoved({ engine, index, writeAlias, nowMs: clock.nowMs, mayGoOn }),
  }
}

t.test('removed nodes are forgotten after a day, not before', async (t) => {
  const s = await stage()
  await s.writer.apply([city(1, 'N'), city(2, null)], [])
  s.clock.nowMs += LIMITS.storage.indexTombstoneMs - 1
  await s.seen()
  t.equal(await s.purge(), true)
  t.equal(s.documents.size, 1)
  await s.writer.apply([city(1, 'N')], [])
  t.match([...s.documents.values()][0]!.source, { kontor: { deleted: true } }, 'not brought back')
  s.clock.nowMs += 2
  await s.seen()
  t.equal(await s.purge(), true)
  t.equal(s.documents.size, 0)
  await s.writer.apply([city(2, 'late')], [])
  t.equal(s.documents.size, 0, 'nor by a late write of the version that went')
})

t.test('a node that came back in the meantime stays', async (t) => {
  const s = await stage()
  await s.writer.apply([city(2, null)], [])
  await s.seen()
  s.clock.nowMs += LIMITS.storage.indexTombstoneMs + 1
  // It comes back between the search and the deletion.
  s.engine.hooks.beforeBulk = async (items) => {
    s.engine.hooks.beforeBulk = undefined
    if (items[0]!.write.kind === 'purge') await s.writer.apply([city(3, 'S')], [])
    return null
  }
  t.equal(await s.purge(), true)
  t.match([...s.documents.values()][0]!.source, { code: 'S' })
})

t.test('however many were removed at once, one pass forgets them all', async (t) => {
  const s = await stage()
  const count = 2 * LIMITS.storage.indexPurgeMax + 500
  const all = Array.from({ length: count }, (_, i) => city(1, null, idOf(i)))
  await s.writer.apply(all, [])
  await s.seen()
  s.clock.nowMs += LIMITS.storage.indexTombstoneMs + 1
  t.equal(await s.purge(), true)
  t.equal(s.documents.size, 0)
})

t.test(
  'a pass ends with its time, or where the engine has no room; the next goes on',
  async (t) => {
    const s = await stage()
    const all = Array.from({ length: 3 * LIMITS.storage.indexPurgeMax }, (_, i) =>
      city(1, null, idOf(i)),
    )
    await s.writer.apply(all, [])
    s.clock.nowMs += LIMITS.storage.indexTombstoneMs + 1
    await s.seen()
    let pages = 1
    t.equal(await s.purge(() => pages-- > 0), false)
    t.equal(s.documents.size, 2 * LIMITS.storage.indexPurgeMax)
    await s.seen()
    s.engine.hooks.beforeBulk = (items) => items.map((_, i) => (i === 0 ? 'busy' : null))
    t.equal(await s.purge(), false)
    t.equal(s.documents.size, LIMITS.storage.indexPurgeMax + 1)
    s.engine.hooks.beforeBulk = undefined
    await s.seen()
    t.equal(await s.purge(), true)
    t.equal(s.documents.size, 0)
  },
)

t.test('what the engine had no room for is not done, on a last page either', async (t) => {
  const s = await stage()
  await s.writer.apply([city(1, null), city(1, null, idOf(2))], [])
  s.clock.nowMs += LIMITS.storage.indexTombstoneMs + 1
  await s.seen()
  s.engine.hooks.beforeBulk = (items) => items.map((_, i) => (i === 0 ? 'busy' : null))
  t.equal(await s.purge(), false)
  t.equal(s.documents.size, 1)
})
