// One inbox's reader against a Redis that does as it is told: what it sends each round, what it
// takes of what comes, and what it makes of answers that are cut off and of ids that go back.

import t from 'tap'
import type { Test } from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { systemClock } from '../clock.ts'
import { eventually } from '../testing/wire-conformance.ts'
import { EMPTY_ENTRY } from './entry.ts'
import { InboxReader } from './inbox-reader.ts'
import { ScriptedRedis } from './testing/scripted-redis.ts'

// Everything goes over sockets: a busy machine may take more than tap's half minute.
t.setTimeout(120_000)
const soon = (holds: () => boolean): Promise<boolean> => eventually(holds, 30_000)

const KEY = 'in:me'

async function makeReader(t: Test, before: (redis: ScriptedRedis) => void = () => undefined) {
  const redis = await ScriptedRedis.start()
  before(redis)
  const seen = { taken: [] as [string, number][], ups: 0, downs: 0, warned: [] as string[] }
  const say = (_: object, text: string): void => void seen.warned.push(text)
  const quiet = (): void => undefined
  const reader = new InboxReader({
    key: KEY,
    urls: [redis.url],
    clock: systemClock(),
    log: { debug: quiet, info: quiet, warn: say, error: say },
    take: (fields, ageMs) => {
      if (fields[1] !== '0') seen.taken.push([fields[1]!, ageMs])
    },
    onUp: () => void seen.ups++,
    onDown: () => void seen.downs++,
  })
  t.teardown(async () => {
    reader.stop()
    await redis.stop()
  })
  reader.start()
  const names = (): string[] => seen.taken.map(([name]) => name)
  const took = (...wanted: string[]): Promise<boolean> =>
    soon(() => names().join() === wanted.join())
  return { redis, reader, seen, names, took }
}

function rounds(redis: ScriptedRedis): number {
  return redis.commands.filter(([name]) => name === 'xread').length
}

/** So many rounds more are over. */
async function roundsMore(redis: ScriptedRedis, count: number): Promise<void> {
  const wanted = rounds(redis) + count + 1
  if (!(await soon(() => rounds(redis) >= wanted))) throw new Error('it reads no more')
}

t.test('a stream that is not there is made, once, and kept alive', async (t) => {
  const { redis, reader, seen } = await makeReader(t)
  t.notOk(reader.isUp, 'not before it is there')
  t.ok(await soon(() => reader.isUp))
  await roundsMore(redis, 2)
  t.same(redis.commands.slice(0, 3), [
    ['pexpire', KEY, String(LIMITS.redis.streamMs)],
    ['xadd', KEY, '*', ...EMPTY_ENTRY],
    ['pexpire', KEY, String(LIMITS.redis.streamMs)],
  ])
  t.equal(redis.sentTo(KEY, 'xadd').length, 1)
  t.equal(seen.ups, 1)
  const [, , third] = redis.commands.filter(([name]) => name === 'xread')
  const block = ['BLOCK', String(LIMITS.redis.readBlockMs)]
  const count = ['COUNT', String(LIMITS.redis.readEntriesMax)]
  t.same(third, ['xread', ...count, ...block, 'STREAMS', KEY, '0-0'])
  t.ok(redis.sentTo(KEY, 'pexpire').length >= rounds(redis), 'each round')
})

t.test('one that is there is read from its beginning', async (t) => {
  const { redis, took } = await makeReader(t, (redis) => {
    redis.add(KEY, ['v', 'early'])
  })
  t.ok(await took('early'))
  t.equal(redis.sentTo(KEY, 'xadd').length, 0)
})

t.test('what was taken is trimmed, and nothing else', async (t) => {
  const { redis, took } = await makeReader(t, (redis) => {
    for (const name of ['a', 'b', 'c']) redis.add(KEY, ['v', name])
  })
  t.ok(await took('a', 'b', 'c'))
  // What comes between the reading and the trimming is above the mark.
  let isAdded = false
  redis.fate = ([name]) => {
    const { entries } = redis.streams.get(KEY)!
    if (name === 'xtrim' && !isAdded && entries.some(({ fields }) => fields[1] === 'd')) {
      isAdded = true
      redis.add(KEY, ['v', 'e'])
    }
    return 'answered'
  }
  redis.add(KEY, ['v', 'd'])
  t.ok(await took('a', 'b', 'c', 'd', 'e'))
  await roundsMore(redis, 2)
  t.same(redis.streams.get(KEY)!.entries, [], 'all are gone')
  const ids = redis.sentTo(KEY, 'xtrim').map((command) => command.slice(2))
  t.same(ids[0], ['MINID', '1700000000000-3'], 'the smallest id above the last')
})

t.test('more than one round brings: all, in their order, each once', async (t) => {
  const wanted = Array.from({ length: LIMITS.redis.readEntriesMax * 2 + 5 }, (_, i) => `e${i}`)
  const { took, names } = await makeReader(t, (redis) => {
    for (const name of wanted) redis.add(KEY, ['v', name])
  })
  t.ok(await took(...wanted), `${names().length} of ${wanted.length}`)
})

t.test('how old each is, by the clock of Redis; too old is dropped', async (t) => {
  const { seen, took } = await makeReader(t, (redis) => {
    const at = (ageMs: number): string => `${redis.nowMs - ageMs}-1`
    redis.add(KEY, ['v', 'too old'], at(LIMITS.redis.entryAgeMs + 1))
    redis.add(KEY, ['v', 'old'], at(LIMITS.redis.entryAgeMs))
    redis.add(KEY, ['v', 'young'], at(750))
    redis.add(KEY, ['v', 'now'], at(0))
    redis.add(KEY, ['v', 'ahead'], at(-5_000))
    redis.nowMs += 0.25
  })
  t.ok(await took('young', 'now', 'ahead'))
  t.same(
    seen.taken.map(([name, ageMs]) => [name, Math.floor(ageMs)]),
    [
      ['young', 750],
      ['now', 0],
      ['ahead', 0],
    ],
    'a quarter of a millisecond past the bound is past it',
  )
})

t.test('an answer that was cut off is read again; nothing is trimmed over it', async (t) => {
  const { redis, seen, took } = await makeReader(t)
  t.ok(await soon(() => seen.ups === 1))
  redis.add(KEY, ['v', 'a'])
  t.ok(await took('a'))
  await roundsMore(redis, 2)
  let cuts = 0
  redis.fate = ([name]) => {
    if (name !== 'xread' || !redis.streams.get(KEY)?.entries.length || cuts > 0) return 'answered'
    cuts++
    return 'unheard'
  }
  redis.add(KEY, ['v', 'b'])
  redis.add(KEY, ['v', 'c'])
  t.ok(await took('a', 'b', 'c'), 'once each')
  t.equal(cuts, 1)
  t.ok(await soon(() => seen.ups === 2))
  t.equal(seen.downs, 1, 'what was on its way may be lost')
})

t.test('after a failover: what was taken is not taken again, lower ids are read', async (t) => {
  const { redis, seen, took } = await makeReader(t, (redis) => {
    redis.add(KEY, ['v', 'a'], '1700000000000-5')
    redis.add(KEY, ['v', 'b'], '1700000000009-0')
  })
  t.ok(await took('a', 'b'))
  // The other server has what was trimmed here, and makes ids by a clock that is behind.
  redis.fate = ([name]) => (name === 'xread' ? 'lost' : 'answered')
  t.ok(await soon(() => seen.downs > 0))
  redis.streams.clear()
  redis.add(KEY, ['v', 'low'], '1699999999990-0')
  redis.add(KEY, ['v', 'a'], '1700000000000-5')
  redis.add(KEY, ['v', 'c'], '1700000000001-0')
  redis.fate = null
  t.ok(await took('a', 'b', 'low', 'c'))
})

t.test('after a failover: an id that was given out again is another entry', async (t) => {
  const header = JSON.stringify({ from: 'm', copies: [] })
  const answer = (copy: number): string[] => ['v', '1', 'h', header, 'b', `[["r",${copy},{}]]`]
  const { redis, seen, names, took } = await makeReader(t, (redis) => {
    redis.add(KEY, ['v', 'a'], '1700000000000-5')
    redis.add(KEY, ['v', 'lost by the failover'], '1700000000000-6')
    redis.add(KEY, answer(17), '1700000000000-7')
  })
  const before = ['a', 'lost by the failover', '1']
  t.ok(await took(...before))
  // The other server knows the stream up to its first entry, and its clock is behind: it counts on
  // from there.
  redis.fate = ([name]) => (name === 'xread' ? 'lost' : 'answered')
  t.ok(await soon(() => seen.downs > 0))
  redis.streams.clear()
  redis.add(KEY, ['v', 'a'], '1700000000000-5')
  redis.add(KEY, ['v', 'sent after it'], '1700000000000-6')
  redis.add(KEY, answer(18), '1700000000000-7')
  redis.add(KEY, ['v', 'last'], '1700000000000-8')
  redis.fate = null
  t.ok(await soon(() => names().at(-1) === 'last'))
  t.same(names(), [...before, 'sent after it', '1', 'last'])
})

t.test('a stream that vanished: what came is taken, and it is made again', async (t) => {
  const { redis, reader, seen, took } = await makeReader(t)
  t.ok(await soon(() => seen.ups === 1))
  let isLost = false
  redis.fate = ([name, key]) => {
    // Between the reading and the sign of life: FLUSHALL.
    if (name === 'pexpire' && !isLost && redis.streams.get(key!)?.entries.length) {
      isLost = true
      redis.streams.clear()
      redis.nowMs++
    }
    return 'answered'
  }
  redis.add(KEY, ['v', 'last'])
  t.ok(await took('last'))
  t.ok(await soon(() => seen.ups === 2))
  t.same([seen.downs, reader.isUp], [1, true])
  t.ok(redis.streams.has(KEY))
  redis.add(KEY, ['v', 'again'])
  t.ok(await took('last', 'again'))
})

t.test('a command that is refused: the connection is given up, and made again', async (t) => {
  const { redis, seen, took } = await makeReader(t)
  t.ok(await soon(() => seen.ups === 1))
  for (const [i, refusal] of ['xread', 'xtrim', 'pexpire', 'time'].entries()) {
    const { connections } = redis
    let times = 0
    redis.fate = ([name]) =>
      name === refusal && times++ === 0 ? { error: 'ERR as asked' } : 'answered'
    redis.add(KEY, ['v', refusal])
    t.ok(await soon(() => redis.connections > connections), refusal)
    t.ok(await soon(() => seen.downs === i + 1 && seen.ups === i + 2))
    t.ok(await soon(() => seen.taken.some(([name]) => name === refusal)))
  }
  t.ok(await took('xread', 'xtrim', 'pexpire', 'time'), 'each once')
  t.ok(seen.warned.some((text) => text.includes('can not be read')))
})

t.test('a server that still loads is left without a word of each', async (t) => {
  const { redis, seen } = await makeReader(t)
  t.ok(await soon(() => seen.ups === 1))
  let times = 0
  redis.fate = ([name]) =>
    name === 'xread' && times++ < 2 ? { error: 'LOADING as asked' } : 'answered'
  t.ok(await soon(() => seen.ups === 3))
  t.notOk(seen.warned.some((text) => text.includes('can not be read')))
})

t.test('one that was stopped reads no more, and says nothing of it', async (t) => {
  const { redis, reader, seen } = await makeReader(t)
  t.ok(await soon(() => seen.ups === 1))
  redis.fate = ([name]) => (name === 'xread' ? 'held' : 'answered')
  t.ok(await soon(() => redis.held.length === 1))
  reader.stop()
  t.notOk(reader.isUp)
  for (const go of redis.held.splice(0)) go()
  const { connections } = redis
  const count = rounds(redis)
  await new Promise((resolve) => setTimeout(resolve, 60))
  t.same([redis.connections, rounds(redis), seen.downs, seen.ups], [connections, count, 0, 1])
})

t.test('stopped while its stream is being made: it is not up', async (t) => {
  const { redis, reader, seen } = await makeReader(t, (redis) => {
    redis.fate = ([name]) => (name === 'xadd' ? 'held' : 'answered')
  })
  t.ok(await soon(() => redis.held.length === 1))
  reader.stop()
  for (const go of redis.held.splice(0)) go()
  await new Promise((resolve) => setTimeout(resolve, 30))
  t.same([seen.ups, reader.isUp], [0, false])
})
