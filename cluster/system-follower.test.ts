// Following the configuration: a member that could not read it for a while takes a request once it
// has read that nothing is new, not before; one that was away for longer than the log reaches has
// what the image has, and nothing else (PROTOCOL 3.0 "The system shard").

import t from 'tap'
import { LIMITS } from '../config/limits.ts'
import { encodeEntry, joinEntries } from '../protocol/entry/entry.ts'
import type { Entry } from '../protocol/entry/entry.ts'
import { SYSTEM_SHARD } from '../protocol/ids.ts'
import { freshUuid } from '../storage/conformance/journal-samples.ts'
import type { DerivedRow, Journal, LogRow } from '../storage/journal.ts'
import { memoryJournal } from '../storage/memory/journal.ts'
import { SystemFollower } from './system-follower.ts'
import { SystemMaps } from './system-view.ts'
import { TestClock } from './testing/harness.ts'
import { BEHAVIOURS, all } from './testing/setting-actor.ts'

type Read = () => Promise<readonly LogRow[]>

/** A follower with nothing in its log but what a test says. */
function scene() {
  const clock = new TestClock()
  const maps = new SystemMaps(new Map())
  maps.offset = 7
  const status = () => ({ epoch: 1, head: maps.offset, lastCommit: null })
  const reads = { count: 0, next: (): ReturnType<Read> => Promise.resolve([]) }
  const read: Read = () => {
    reads.count++
    return reads.next()
  }
  const log = { debug: () => 0, info: () => 0, warn: () => 0, error: () => 0 }
  const journal = { identity: {}, log: { read, status } } as unknown as Journal
  const follower = new SystemFollower({ journal, maps, clock, log })
  return { clock, maps, reads, follower }
}

t.test('fresh: nothing is read', async (t) => {
  const { follower, reads } = scene()
  await follower.read()
  t.equal(reads.count, 1)
  t.ok(await follower.stands())
  t.equal(reads.count, 1)
})

t.test('after a while without a CPU: read again, and nothing is new', async (t) => {
  const { clock, follower, reads } = scene()
  await follower.read()
  await clock.advance(LIMITS.cluster.systemStaleMs + 1)
  t.notOk(follower.isFresh)
  t.ok(await follower.stands())
  t.equal(reads.count, 2)
})

t.test('a read that began before it says too little', async (t) => {
  const { clock, follower, reads } = scene()
  let answer = (): void => undefined
  reads.next = () => new Promise((resolve) => (answer = () => resolve([])))
  void follower.read()
  await clock.advance(LIMITS.cluster.systemStaleMs + 1)
  const stands = follower.stands()
  reads.next = () => Promise.resolve([])
  answer()
  t.ok(await stands)
  t.equal(reads.count, 2)
})

t.test('what is new may have changed what was decided', async (t) => {
  const { maps, follower, reads } = scene()
  reads.next = () => {
    maps.offset++
    return Promise.resolve([])
  }
  t.notOk(await follower.stands())
})

t.test('it can not be read, or not in time, or too many wait', async (t) => {
  const { clock, follower, reads } = scene()
  reads.next = () => Promise.reject(new Error('away'))
  t.notOk(await follower.stands())
  reads.next = () => new Promise(() => undefined)
  const ended: boolean[] = []
  for (let i = 0; i < LIMITS.cluster.systemAskingMax; i++) {
    void follower.stands().then((stands) => ended.push(stands))
  }
  t.notOk(await follower.stands())
  await clock.advance(LIMITS.cluster.systemFollowMs - 1)
  t.same(ended, [])
  await clock.advance(1)
  t.equal(ended.length, LIMITS.cluster.systemAskingMax)
  t.notOk(ended.includes(true))
})

t.test('a machine that was suspended has not read anything just now', async (t) => {
  const { clock, follower, reads } = scene()
  await follower.read()
  clock.stepWall(10 * 60_000)
  t.notOk(follower.isFresh, 'its monotonic clock says that no time has passed')
  t.ok(await follower.freshens())
  t.equal(reads.count, 2)
})

/** The journal of a `system` shard, as its owner writes it, and members that follow it. */
async function configuration() {
  const journal = memoryJournal({ shards: 4, generation: 'test' })
  const { epoch } = await journal.log.claim(SYSTEM_SHARD)
  const clock = new TestClock()
  const log = { debug: () => 0, info: () => 0, warn: () => 0, error: () => 0 }
  const versions = new Map<string, number>()
  let head = 0
  const follower = () => {
    const maps = new SystemMaps(BEHAVIOURS)
    return { maps, follower: new SystemFollower({ journal, maps, clock, log }) }
  }
  const owner = follower()
  /** A value; null deletes. */
  const commit = async (
    key: string,
    value: number | null,
    p = `actor of ${key}`,
  ): Promise<void> => {
    const v = versions.get(p) ?? 0
    versions.set(p, v + 1)
    const r = [value === null ? { t: 'deleted' } : { t: 'put', value }]
    const fixed = { y: 'setting', n: v + 1, m: `${head}`, l: 0 as const, t: 0, c: 0, b: 'me' }
    const entry: Entry = {
      ...fixed,
      p,
      q: key,
      v,
      r,
      a: { type: 'put', success: true },
    }
    const body = joinEntries([encodeEntry(entry)])
    const place = { shard: SYSTEM_SHARD, epoch, head, count: 1 }
    const group = { ...place, commitId: freshUuid(), body }
    if ((await journal.log.append([group]))[0] !== 'committed') throw new Error('not committed')
    head++
    await owner.follower.read()
  }
  const image = async (): Promise<void> => {
    const rows = [...owner.maps.image()].map((body, part): DerivedRow => {
      return { kind: 'image', offset: head, part, body }
    })
    const said: DerivedRow = { kind: 'consumer', consumer: 'image', offset: head }
    await journal.derived.write(SYSTEM_SHARD, epoch, [...rows, said])
  }
  const trim = (): Promise<void> => journal.log.trim!(SYSTEM_SHARD, epoch, head)
  return { journal, clock, owner: owner.maps, follower, commit, image, trim }
}

t.test('away for longer than the log reaches: what was deleted is gone', async (t) => {
  for (const moreBehind of [false, true]) {
    const { owner, follower, commit, image, trim } = await configuration()
    await commit('kept', 1)
    await commit('deleted', 1)
    await commit('changed', 1)
    const one = follower()
    await one.follower.read()
    const told: unknown[] = []
    one.maps.onChange('setting', (key, entry) => {
      told.push([key, entry?.value ?? null, one.maps.size('setting')])
    })
    await commit('deleted', null)
    await commit('changed', 2)
    await commit('new', 1)
    await commit('again', 1)
    await commit('again', null)
    await image()
    await trim()
    if (moreBehind) await commit('later', 1)
    await one.follower.read()
    t.same(all(one.maps), all(owner))
    t.equal(one.maps.offset, owner.offset)
    t.equal(one.maps.get('setting', 'deleted'), null)
    t.equal(one.maps.size('setting'), owner.size('setting'))
    const byImage = [
      ['deleted', null, 3],
      ['changed', 2, 3],
      ['new', 1, 3],
    ]
    t.same(told, moreBehind ? [...byImage, ['later', 1, 4]] : byImage, 'once all of it stands')
    t.ok(one.follower.isFresh)
  }
})

t.test(
  'away meanwhile: a key that another actor has now is told, whatever its version',
  async (t) => {
    const { follower, commit, image, trim } = await configuration()
    await commit('key', 1, 'the one')
    const one = follower()
    await one.follower.read()
    const told: unknown[] = []
    one.maps.onChange('setting', (key, entry) => told.push([key, entry?.actorId, entry?.version]))
    await commit('key', null, 'the one')
    await commit('key', 2, 'the other')
    await image()
    await trim()
    await one.follower.read()
    t.same(told, [['key', 'the other', 1]])
  },
)

t.test(
  'keys that an image brings are among those that begin with them, the gone not',
  async (t) => {
    const { follower, commit, image, trim } = await configuration()
    for (const key of ['a', 'b', 'd']) await commit(key, 1)
    const one = follower()
    await one.follower.read()
    const keys = () => [...one.maps.withPrefix('setting', '')].map(({ key }) => key)
    t.same(keys(), ['a', 'b', 'd'], 'asked for before as well')
    await commit('b', null)
    await commit('c', 1)
    await commit('e', 1)
    await image()
    await trim()
    await one.follower.read()
    t.same(keys(), ['a', 'c', 'd', 'e'])
  },
)

t.test('a key is among those that begin with it', async (t) => {
  const { owner, commit } = await configuration()
  for (const key of ['b', 'a/b', 'a', 'A', 'ab']) await commit(key, 1)
  const keys = (prefix: string) => [...owner.withPrefix('setting', prefix)].map(({ key }) => key)
  t.same(keys('a'), ['a', 'a/b', 'ab'])
  t.same(keys('a/'), ['a/b'])
  t.same(keys('b'), ['b'])
  t.same(keys('c'), [])
})

t.test('an empty log is news only as far as its head', async (t) => {
  const { clock, follower, commit, image, trim, owner } = await configuration()
  await commit('a', 1)
  const one = follower()
  await one.follower.read()
  await clock.advance(LIMITS.cluster.systemStaleMs)
  await commit('a', null)
  await trim()
  await t.rejects(one.follower.read(), /trimmed/)
  t.notOk(one.follower.isFresh)
  t.notOk(await one.follower.freshens())
  await image()
  await one.follower.read()
  t.ok(one.follower.isFresh)
  t.same(all(one.maps), all(owner))
})

t.test('an older image is never gone back to', async (t) => {
  const { follower, commit, image, trim } = await configuration()
  await commit('a', 1)
  await image()
  await commit('a', 2)
  const one = follower()
  await one.follower.read()
  await commit('a', 3)
  await trim()
  await t.rejects(one.follower.read())
  t.same(all(one.maps), [['a', 2, 2]])
})

t.test('what comes while an empty log is compared with its head is read, not missed', async (t) => {
  const { journal, follower, commit, owner } = await configuration()
  await commit('a', 1)
  const one = follower()
  await one.follower.read()
  const { log } = journal
  const status = log.status.bind(log)
  log.status = async (shard) => {
    log.status = status
    await commit('a', 2)
    return status(shard)
  }
  await one.follower.read()
  t.same(all(one.maps), all(owner))
})

t.test('behind what an operator has given up it goes on higher', async (t) => {
  const { journal, clock, commit, owner } = await configuration()
  await commit('a', 1)
  await commit('a', 2)
  const loss = { shard: SYSTEM_SHARD, offset: 1, resumedAt: 2 }
  const identity = { ...journal.identity, losses: [loss] }
  const maps = new SystemMaps(BEHAVIOURS)
  maps.offset = 1
  const log = { debug: () => 0, info: () => 0, warn: () => 0, error: () => 0 }
  const one = new SystemFollower({ journal: { ...journal, identity }, maps, clock, log })
  await one.read()
  t.ok(one.isFresh)
  await commit('a', 3)
  await one.read()
  t.same(all(maps), all(owner))
})
