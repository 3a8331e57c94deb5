// Reading and trimming a log over its segments: from anywhere, by anybody, while it grows and while
// rows are missing.

import t from 'tap'
import { MemorySegments } from '../../storage/memory/statements.ts'
import { audit, newState } from './testing/engine.ts'
import { LARGE, SMALL, append, of, owner } from './testing/owner.ts'
import type { Owner } from './testing/owner.ts'

void t.test('reading over many segments', async (t) => {
  const state = newState()
  const [one, other] = [owner(state, SMALL), owner(state)]
  const { epoch } = await one.claim()
  const offsets: number[] = []
  for (let head = 0; head < 100;) {
    const count = 1 + (head % 3)
    await append(one, { ...of(epoch, head, count), body: Buffer.alloc(100) })
    head += count
    offsets.push(head)
  }
  const read = async (from: Owner, after: number, bytesMax: number) =>
    (await from.log.read(0, after, bytesMax)).map(({ offset }) => offset)
  t.same(await read(one, 0, 1e6), offsets)
  t.same(await read(one, 0, 1), [offsets[0]])
  t.same(await read(one, 0, 520), offsets.slice(0, 5), 'over the end of segments')
  // Another process finds its way from the hint, wherever it begins.
  for (const after of [0, 1, 50, 97, offsets.at(-2)!, offsets.at(-1)!]) {
    const fresh = owner(state)
    const wanted = offsets.filter((offset) => offset > after)
    t.same(await read(fresh, after, 1e6), wanted, `from ${after}`)
    const looks = fresh.engine.calls.filter((call) => call === 'statics').length
    t.ok(looks <= 8 + wanted.length / 2, `${looks} looks`)
  }
  // One that follows sees rolls that it had no part in, also several at once.
  t.same(await read(other, offsets.at(-1)!, 1e6), [])
  for (const steps of [1, 3, 12]) {
    const before = offsets.length
    for (let i = 0; i < steps; i++) {
      const head = offsets.at(-1)!
      await append(one, of(epoch, head))
      offsets.push(head + 1)
    }
    const found: number[] = []
    for (let at = offsets[before - 1]!; ; at = found.at(-1)!) {
      const rows = await read(other, at, 1e6)
      if (rows.length === 0) break
      found.push(...rows)
    }
    t.same(found, offsets.slice(before))
    t.same(await read(other, offsets.at(-1)!, 1e6), [])
  }
})

void t.test('a reader far behind, or far ahead of what it knows', async (t) => {
  const state = newState()
  const [one, other] = [owner(state, SMALL), owner(state)]
  const { epoch } = await one.claim()
  t.same(await other.log.read(0, 0, 1e6), [])
  for (let head = 0; head < 20; head++) await append(one, of(epoch, head))
  // It has loaded an image meanwhile and goes on behind that.
  t.equal((await other.log.read(0, 17, 1e6))[0]?.offset, 18)
  t.equal((await other.log.read(0, 3, 1e6))[0]?.offset, 4)
  t.equal((await other.log.status(0)).head, 20)
})

void t.test('a missing row: looked for at the serial level, then refused', async (t) => {
  const state = newState()
  const one = owner(state, SMALL)
  const { epoch } = await one.claim()
  for (let head = 0; head < 5; head++) await append(one, of(epoch, head))
  const follow = async () => {
    const found: number[] = []
    for (let at = 0; at < 5; at = found.at(-1)!) {
      const rows = await one.log.read(0, at, 1e6)
      if (rows.length === 0) break
      found.push(...rows.map(({ offset }) => offset))
    }
    return found
  }
  for (const gone of [2, 3, 4, 5]) {
    one.engine.seen = (rows, serial) => rows.filter(({ offset }) => serial || offset !== gone)
    t.same(await follow(), [1, 2, 3, 4, 5], `${gone} is there after all`)
    t.same(one.bugs, [])
    one.engine.seen = (rows) => rows.filter(({ offset }) => offset !== gone)
    await t.rejects(follow(), { message: new RegExp(`no entry at offset ${gone}$`) })
    t.equal(one.bugs.length, 1)
    one.bugs.length = 0
  }
  one.engine.seen = (rows) => rows.filter(({ offset }) => offset > 1)
  t.same(await follow(), [2, 3, 4, 5], 'at the front of a sealed segment rows are trimmed')
  one.engine.seen = (rows) => rows.filter(({ offset }) => offset > 3)
  t.same(await follow(), [4, 5])
  t.same(one.bugs, [])
})

void t.test('rows that were seen, or written, are missed where a read lacks them', async (t) => {
  const state = newState()
  const [one, other] = [owner(state), owner(state)]
  const { epoch } = await one.claim()
  t.same(await other.log.read(0, 0, 1e6), [])
  const offsets = async (from: Owner) => (await from.log.read(0, 0, 1e6)).map((row) => row.offset)
  for (let head = 0; head < 3; head++) await append(one, of(epoch, head))
  one.engine.seen = (rows, serial) => (serial ? rows : [])
  t.same(await offsets(one), [1, 2, 3], 'what it has appended itself')
  t.same(await offsets(other), [1, 2, 3])
  other.engine.seen = (rows, serial) => (serial ? rows : [])
  t.same(await offsets(other), [1, 2, 3], 'what it has read before')
  t.same(one.bugs.concat(other.bugs), [])
})

void t.test('a row missing behind others of its segment was not trimmed', async (t) => {
  const state = newState()
  const one = owner(state, { ...LARGE, rowsMax: 3 })
  const { epoch } = await one.claim()
  for (let head = 0; head < 8; head++) await append(one, of(epoch, head))
  // Nothing older is left that could tell: the segment's first row is what is asked for.
  await one.log.trim(0, epoch, 3)
  one.engine.seen = (rows) => rows.filter(({ offset }) => offset !== 5)
  await t.rejects(one.log.read(0, 3, 1e6), { message: /no entry at offset 5$/ })
  t.equal(one.bugs.length, 1)
})

void t.test('trimming', async (t) => {
  const state = newState()
  const [one, other] = [owner(state, SMALL), owner(state, SMALL)]
  const { epoch } = await one.claim()
  for (let head = 0; head < 9; head++) await append(one, of(epoch, head))
  const offsets = async (from = one) => (await from.log.read(0, 0, 1e6)).map(({ offset }) => offset)
  await other.log.trim(0, epoch, 5)
  t.equal((await offsets()).length, 9, 'by its owner only')
  await one.log.trim(0, epoch, 0)
  t.equal((await offsets()).length, 9)
  await one.log.trim(0, epoch, 5)
  t.same(await offsets(), [6, 7, 8, 9])
  t.same(await offsets(other), [6, 7, 8, 9])
  one.engine.calls.length = 0
  await one.log.trim(0, epoch, 5)
  t.same(one.engine.calls, ['rows', 'drop'], 'what is trimmed is not looked at again')
  await one.log.trim(0, epoch, 100)
  t.same(await offsets(), [9], 'the open segment keeps its rows')
  t.equal((await audit(state, 0)).segments.length, 5, 'statics stay')

  const claimed = await other.claim()
  t.equal(claimed.head, 9)
  for (let head = 9; head < 15; head++) await append(other, of(claimed.epoch, head))
  // Cut short behind the first segment: the next trim finds the rest.
  let drops = 0
  other.engine.pause = (kind) => {
    return kind === 'drop' && ++drops > 2 ? Promise.reject(new Error('away')) : Promise.resolve()
  }
  await t.rejects(other.log.trim(0, claimed.epoch, 13), { message: 'away' })
  other.engine.pause = null
  await other.log.trim(0, claimed.epoch, 13)
  t.same(await offsets(other), [14, 15])
  await other.log.trim(0, claimed.epoch - 1, 15)
  await other.log.trim(0, claimed.epoch, 15)
  t.same(await offsets(other), [14, 15], 'nothing is left to trim')
  for (let head = 15; head < 17; head++) await append(other, of(claimed.epoch, head))
  await other.log.trim(0, claimed.epoch - 1, 15)
  t.same(await offsets(other), [14, 15, 16, 17], 'an earlier tenure trims nothing')
  await other.log.trim(0, claimed.epoch, 15)
  t.same(await offsets(other), [16, 17])
  t.same(one.bugs.concat(other.bugs), [])
})

void t.test('rows that go, and rows that are gone, at the front', async (t) => {
  const state = newState()
  const one = owner(state, SMALL)
  const { epoch } = await one.claim()
  for (let head = 0; head < 7; head++) await append(one, of(epoch, head))
  const offsets = async () => (await one.log.read(0, 0, 1e6)).map(({ offset }) => offset)
  // Trimmed while it is read: no hole within what one read gives.
  let reads = 0
  one.engine.pause = async (kind) => {
    if (kind === 'rows' && ++reads === 3) {
      const store = new MemorySegments(state)
      for (const segment of [1, 2]) await store.dropRows({ shard: 0, segment }, 3)
    }
  }
  t.same(await offsets(), [1, 2])
  one.engine.pause = null
  t.same(await offsets(), [4, 5, 6, 7])
  // The open segment was never trimmed.
  await one.log.trim(0, epoch, 6)
  one.engine.seen = () => []
  await t.rejects(offsets(), { message: /no entry at offset 7/ })
})

void t.test('a reader that was away while rows were trimmed: the head tells it', async (t) => {
  for (const later of [0, 1, 5]) {
    const state = newState()
    const [one, away] = [owner(state, SMALL), owner(state)]
    const { epoch } = await one.claim()
    for (let head = 0; head < 3; head++) await append(one, of(epoch, head))
    t.equal((await away.log.read(0, 0, 1e6)).at(-1)?.offset, 3)
    for (let head = 3; head < 40; head++) await append(one, of(epoch, head))
    await one.log.trim(0, epoch, 40)
    for (let i = 0; i < later; i++) await append(one, of(epoch, 40 + i))
    const head = 40 + later
    // It knows of no segment that has rows: without a look at the head there is nothing for ever.
    t.same(await away.log.read(0, 3, 1e6), [])
    t.equal((await away.log.status(0)).head, head)
    const [first] = await away.log.read(0, 3, 1e6)
    t.ok(first === undefined || first.offset - first.count > 3)
    t.same((await away.log.read(0, 40, 1e6)).at(-1)?.offset, later === 0 ? undefined : head)
    t.same([one.bugs, away.bugs], [[], []])
  }
})
