// Generated numbers: each shard takes its own, how far a prefix has come is a row, and numbers that
// callers have chosen are passed over in few reads. Source: ARCHITECTURE 4 "A generated number".

import t from 'tap'
import fc from 'fast-check'
import { LIMITS } from '../../../config/limits.ts'
import { placeOfKey, shardOf } from '../../../protocol/ids.ts'
import { COUNTER_SUFFIX } from '../../../storage/journal.ts'
import type { AliasRow, DerivedRow } from '../../../storage/journal.ts'
import type { Behaviour } from '../../../protocol/behaviour.ts'
import { seeded } from '../../testing/harness.ts'
import { ledger } from '../../testing/ledger.ts'
import type { Ledger } from '../../testing/ledger.ts'
import { NEW_SNAPSHOT, decodeShardSnapshot } from '../recovery/shard-snapshot.ts'
import type { ShardSnapshot } from '../recovery/shard-snapshot.ts'
import { Numbers, seriesOf } from './numbers.ts'
import { Scene, code, data } from '../testing/scene.ts'

const SERIES = seriesOf('ledger', 'L')

function numbersOf(shard: number, shards: number, row: AliasRow | null = null): Numbers {
  return new Numbers({ shard, shards, derived: { alias: () => row }, random: seeded(7) })
}

t.test('each shard takes its own, together they take all', async () => {
  fc.assert(
    fc.property(fc.constantFrom('O', '', 'X-'), fc.constantFrom(1, 4, 32), (prefix, shards) => {
      const seen = new Set<string>()
      const series = seriesOf('order', prefix)
      for (let shard = 0; shard < shards; shard++) {
        const numbers = numbersOf(shard, shards)
        void numbers.ready(series)
        let last = 0
        for (let i = 0; i < 20; i++) {
          const peeked = numbers.peek(series).n
          const { text, n } = numbers.next(series)
          if (n <= last || peeked !== n || seen.has(text)) return false
          if (shardOf(placeOfKey('order', text), shards) !== shard) return false
          seen.add(text)
          last = n
        }
        numbers.heard({ [series.counter]: last }, 1)
        const again = numbersOf(shard, shards, numbers.rowOf(series.counter))
        void again.ready(series)
        if (again.next(series).n <= last) return false
      }
      return true
    }),
  )
})

/** Passes over what is taken; the number that comes then, and how many were looked up. */
async function passed(isTaken: (n: number) => boolean, from = 0) {
  const numbers = numbersOf(3, 32)
  void numbers.ready(SERIES)
  numbers.heard({ [SERIES.counter]: from }, 1)
  let looks = 0
  await numbers.skip(SERIES, (text) => {
    looks++
    return isTaken(Number(text.slice(1)))
  })
  return { n: numbers.peek(SERIES).n, looks }
}

/** The own number of shard 3 of 32 behind `after`. */
function ownBehind(after: number): number {
  const numbers = numbersOf(3, 32)
  void numbers.ready(SERIES)
  return numbers.peek(SERIES, after).n
}

t.test('a counter is not forgotten while numbers are passed over for it', async (t) => {
  const numbers = numbersOf(3, 32)
  void numbers.ready(SERIES)
  const { n } = numbers.next(SERIES)
  const looks: ((error: Error) => void)[] = []
  const search = numbers.skip(SERIES, () => new Promise((_, refuse) => looks.push(refuse)))
  for (let i = 0; i < 2 * LIMITS.sharding.countersKnownMax; i++) {
    void numbers.ready(seriesOf('ledger', `${i}-`))
  }
  for (const refuse of looks) refuse(new Error('the store is away'))
  await t.rejects(search, { message: 'the store is away' })
  void numbers.ready(SERIES)
  t.ok(numbers.peek(SERIES).n > n, 'what was handed out is not handed out again')
})

for (const count of [30, 30_000, 1_000_000]) {
  t.test(`${count} numbers that were imported are passed over without a gap`, async (t) => {
    const { n, looks } = await passed((number) => number <= count)
    t.equal(n, ownBehind(count))
    t.ok(looks <= 200, `${looks} looked up`)
  })
}

t.test('every second one taken: the next free one is taken, not one far ahead', async (t) => {
  let isEven = false
  const taken = new Map<number, boolean>()
  const { n, looks } = await passed((number) => {
    if (!taken.has(number)) taken.set(number, (isEven = !isEven))
    return taken.get(number)!
  })
  t.notOk(taken.get(n))
  t.ok(n < ownBehind(ownBehind(ownBehind(0))) + 1)
  t.ok(looks <= LIMITS.sharding.numberProbesTogether)
})

t.test('one that was chosen far ahead moves nothing', async (t) => {
  const { n } = await passed((number) => number === Number.MAX_SAFE_INTEGER || number <= 100)
  t.equal(n, ownBehind(100))
})

t.test(
  'numbers chosen at the distances of a search push it on no further than their count',
  async (t) => {
    const chosen = new Set<number>()
    for (let i = 0; i < 1_000; i++) chosen.add(ownBehind(i * 32))
    for (let at = 1; at < 2 ** 52; at *= 2) {
      for (let n = ownBehind(at), i = 0; i < 16; i++, n = ownBehind(n)) chosen.add(n)
    }
    const { n } = await passed((number) => chosen.has(number))
    t.ok(n < 10_000_000, `it goes on at ${n}`)
  },
)

t.test('where all is taken it ends, and says so', async (t) => {
  await t.rejects(
    passed(() => true),
    { errors: [{ code: 'TOO_BUSY' }] },
  )
})

/** A ledger whose prefix the caller chooses. */
const prefixed: Behaviour<Ledger> = {
  ...ledger,
  *decide(state, message, turn) {
    const turns = ledger.decide(state, message, turn)
    const { prefix } = (message.body ?? {}) as { prefix?: string }
    let step = turns.next()
    while (!step.done) {
      const call = step.value
      const answer: unknown = yield call.call === 'number' && prefix ? { ...call, prefix } : call
      step = turns.next(answer)
    }
    return step.value
  },
}

function takenRows(count: number): DerivedRow[] {
  return Array.from({ length: count }, (_, i) => {
    const claims = [{ actorId: 'a', messageId: 'm', confirmed: true, clock: 0 }]
    return { kind: 'alias', offset: 1, row: { keyType: 'ledger', key: `L${i + 1}`, claims } }
  })
}

t.test('creates behind an import of 30,000 are answered at once, and side by side', async (t) => {
  const scene = new Scene({ readMs: 1 })
  await scene.run(scene.shard.claim())
  await scene.journal.derived.write(0, scene.shard.epoch, takenRows(30_000))
  const began = scene.clock.monotonicMs()
  const opened = Array.from({ length: 20 }, () =>
    scene.ask(scene.newUuid(0), { say: [['open', {}]] }),
  )
  const replies = await scene.run(Promise.all(opened), 1)
  const tookMs = scene.clock.monotonicMs() - began
  t.ok(tookMs < 100, `${tookMs} ms`)
  const numbers = replies.map((reply) => (data(reply) as { number: string }).number)
  t.same(
    numbers.toSorted(),
    Array.from({ length: 20 }, (_, i) => `L${30_001 + i}`),
  )
  const sum = scene.reads.sum
  t.ok(sum < 500, `${sum} reads`)
  t.match(data(await scene.run(scene.ask(scene.newUuid(0), { say: [['open', {}]] }), 1)), {
    number: 'L30021',
  })
  t.equal(scene.reads.sum - sum, 3, 'and then each reads its actor (twice) and its number')
})

t.test('prefixes of callers cost rows: the row of their shard stays small', async (t) => {
  const scene = new Scene({ behaviours: [prefixed], hooks: {} })
  await scene.run(scene.shard.claim())
  const count = 2 * LIMITS.sharding.countersKnownMax
  const open = (i: number) => {
    const prefix = `${i}-`.padEnd(100, 'x')
    return scene.ask(scene.newUuid(0), { say: [['open', { prefix }]] })
  }
  for (let i = 0; i < count; i += 100) {
    await scene.run(Promise.all(Array.from({ length: 100 }, (_, k) => open(i + k))))
  }
  await scene.clock.advance(LIMITS.sharding.flushStoredMs * 2)
  const row = await scene.journal.derived.shard(0)
  t.ok(row!.body.length < 5_000, `${row!.body.length} bytes`)
  for (const isOver of [false, true]) {
    if (isOver) await scene.restart()
    for (const i of [0, count - 1]) {
      const wanted = `${i}-`.padEnd(100, 'x') + (isOver ? '3' : '2')
      t.match(data(await scene.run(open(i))), { number: wanted })
    }
  }
})

t.test('a number that was given up is not given out again, by no owner', async (t) => {
  const scene = new Scene({ hooks: {} })
  await scene.run(scene.shard.claim())
  const id = await scene.made()
  await scene.run(scene.ask(id, { say: [['renumber', { number: 'mine' }]] }))
  const next = async () =>
    (
      data(await scene.run(scene.ask(scene.newUuid(0), { say: [['open', {}]] }))) as {
        number: string
      }
    ).number
  await scene.restart()
  t.equal(await next(), 'L2', 'behind what the tail says')
  await scene.clock.advance(LIMITS.sharding.flushStoredMs * 2)
  await scene.restart()
  t.equal(await next(), 'L3', 'behind what its row says')
  scene.journal.hooks.beforeWrite = () => 'unknown'
  t.equal(await next(), 'L4')
  await scene.restart()
  t.equal(await next(), 'L5', 'behind the tail, which is newer than the row')
})

t.test('counters that an older version left in the row of the shard go on', async (t) => {
  const scene = new Scene({ hooks: {} })
  await scene.run(scene.shard.claim())
  await scene.made()
  await scene.clock.advance(LIMITS.sharding.flushStoredMs * 2)
  const offset = scene.shard.gate.head
  const memory = { ...NEW_SNAPSHOT, counters: { 'ledger/L': 41 }, relayed: offset }
  const body = Buffer.from(JSON.stringify(memory))
  const old = { kind: 'shard', offset, body } as const
  await scene.journal.derived.write(0, scene.shard.epoch, [old])
  scene.journal.hooks.beforeWrite = () => 'unknown'
  await scene.restart()
  t.same(scene.shard.lastSnapshot().memory.counters, { 'ledger/L': 41 }, 'the next owner is told')
  t.same(scene.shard.lastSnapshot().memory.countersTold, {}, 'and that no row of its own has it')
  scene.journal.hooks.beforeWrite = undefined
  await scene.restart()
  await scene.clock.advance(LIMITS.sharding.flushStoredMs * 2)
  const { counters, countersTold } = scene.shard.lastSnapshot().memory
  t.same({ counters, countersTold }, { counters: { 'ledger/L': 41 }, countersTold: counters })
  t.equal(scene.shard.flusher.flushed, offset, 'their rows are of the head')
  await scene.restart()
  const reply = await scene.run(scene.ask(scene.newUuid(0), { say: [['open', {}]] }))
  t.equal(code(reply), 'success')
  t.match(data(reply), { number: 'L42' })
})

/** Opens a ledger; the number that it was given. */
async function opened(scene: Scene): Promise<string> {
  const reply = await scene.run(scene.ask(scene.newUuid(0), { say: [['open', {}]] }))
  return (data(reply) as { number: string }).number
}

async function shardRow(scene: Scene): Promise<ShardSnapshot> {
  await scene.clock.advance(LIMITS.sharding.flushStoredMs * 2)
  return decodeShardSnapshot((await scene.journal.derived.shard(0))!.body)
}

/** The row of the shard as an older version writes it: what it doesn't know it leaves as it is. */
async function asOlderVersion(scene: Scene, counters: ShardSnapshot['counters']): Promise<void> {
  const body = Buffer.from(JSON.stringify({ ...(await shardRow(scene)), counters }))
  const row = { kind: 'shard', offset: scene.shard.gate.head, body } as const
  await scene.journal.derived.write(0, scene.shard.epoch, [row])
}

function counterRow(n: number): DerivedRow {
  const claims = [{ actorId: 'nobody', messageId: String(n), confirmed: true, clock: 0 }]
  return {
    kind: 'alias',
    offset: 1,
    row: { keyType: `ledger${COUNTER_SUFFIX}`, key: '0/L', claims },
  }
}

async function storedCounter(scene: Scene): Promise<string | undefined> {
  const row = await scene.journal.derived.alias(`ledger${COUNTER_SUFFIX}`, '0/L')
  return row?.claims[0]!.messageId
}

t.test(
  'an owner of an older version finds in the row of the shard how far numbers are',
  async (t) => {
    const scene = new Scene({ hooks: {} })
    await scene.run(scene.shard.claim())
    await opened(scene)
    await opened(scene)
    t.same((await shardRow(scene)).counters, { 'ledger/L': 2 })
    await scene.restart()
    await scene.run(scene.ask(scene.newUuid(0), { say: [['open', { number: 'mine' }]] }))
    t.same(
      (await shardRow(scene)).counters,
      { 'ledger/L': 2 },
      'also where the next owner used none',
    )
    t.same(scene.shard.lastSnapshot().memory.counters, { 'ledger/L': 2 }, 'and it is told so')
  },
)

t.test('a counter that an older version has moved goes on where that one was', async (t) => {
  const scene = new Scene({ hooks: {} })
  await scene.run(scene.shard.claim())
  await opened(scene)
  await asOlderVersion(scene, { 'ledger/L': 41 })
  await scene.restart()
  t.equal(await opened(scene), 'L42')
  await shardRow(scene)
  t.equal(await storedCounter(scene), '42')
})

t.test('a counter that an older version began anew does not go back', async (t) => {
  for (const isUsedFirst of [true, false]) {
    const scene = new Scene({ hooks: {}, readMs: 1 })
    await scene.run(scene.shard.claim())
    await opened(scene)
    await asOlderVersion(scene, { 'ledger/L': 3 })
    await scene.journal.derived.write(0, scene.shard.epoch, [counterRow(41)])
    await scene.restart()
    if (isUsedFirst) t.equal(await opened(scene), 'L42')
    await scene.clock.advance(LIMITS.sharding.flushStoredMs * 2)
    t.same(scene.shard.lastSnapshot().memory.counters, { 'ledger/L': isUsedFirst ? 42 : 41 })
    t.equal(await storedCounter(scene), isUsedFirst ? '42' : '41')
    await scene.restart()
    t.equal(await opened(scene), isUsedFirst ? 'L43' : 'L42')
  }
})

t.test('nor does one in the tail that an older version has left', async (t) => {
  for (const isUsedFirst of [true, false]) {
    const scene = new Scene({ hooks: {}, readMs: 1 })
    await scene.run(scene.shard.claim())
    await opened(scene)
    await shardRow(scene)
    await scene.journal.derived.write(0, scene.shard.epoch, [counterRow(41)])
    // This owner knows as little of the row as one of an older version.
    scene.journal.hooks.beforeWrite = () => 'unknown'
    t.equal(await opened(scene), 'L2')
    await scene.restart()
    if (isUsedFirst) t.equal(await opened(scene), 'L42')
    scene.isAway = true
    scene.journal.hooks.beforeWrite = undefined
    await scene.clock.advance(LIMITS.sharding.flushRetryMs * 4)
    scene.isAway = false
    await shardRow(scene)
    t.equal(await storedCounter(scene), isUsedFirst ? '42' : '41')
    await scene.restart()
    t.equal(await opened(scene), isUsedFirst ? 'L43' : 'L42')
  }
})

t.test('a counter that can not be read: nothing was done, try again', async (t) => {
  const scene = new Scene()
  await scene.run(scene.shard.claim())
  scene.isAway = true
  const open = () =>
    scene.run(
      scene.tell({
        ...scene.envelope(scene.newUuid(0)),
        fresh: true,
        messages: [{ type: 'open', body: {} }],
      }),
    )
  t.equal(code(await open()), 'UNAVAILABLE')
  scene.isAway = false
  t.match(data(await open()), { number: 'L1' })
})

t.test(
  'an entry has its counters as far as they are when it joins, whoever moved them',
  async (t) => {
    const numbers = numbersOf(0, 4)
    void numbers.ready(SERIES)
    const [first, second] = [numbers.next(SERIES).n, numbers.next(SERIES).n]
    t.ok(second > first)
    t.same(numbers.highest({ [SERIES.counter]: first }), { [SERIES.counter]: second })
    t.same(numbers.highest({ unknown: 7 }), { unknown: 7 })
  },
)
