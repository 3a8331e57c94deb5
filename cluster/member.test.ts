// The runtime on the journal in memory: effects once, all or nothing, order, restarts.

import t from 'tap'
import fc from 'fast-check'
import { LIMITS } from '../config/limits.ts'
import { SYSTEM_SHARD } from '../protocol/ids.ts'
import type { Reply } from '../protocol/message.ts'
import { startMember } from './testing/harness.ts'
import { ledger } from './testing/ledger.ts'

function data(reply: Reply, i = 0): unknown {
  if (reply.outcome !== 'answered') throw new Error(JSON.stringify(reply))
  const result = reply.results[i]!
  if (!result.success) throw new Error(JSON.stringify(result))
  return result.data
}

function code(reply: Reply, i = 0): string {
  if (reply.outcome !== 'answered') return reply.error.code
  const result = reply.results[i]!
  return result.success ? 'success' : result.errors[0]!.code
}

t.test('makes an actor, finds it by id and by number, keeps it over a restart', async (t) => {
  const world = await startMember()
  const made = await world.ask('new', [['open', { number: 'A1', token: 'x' }]])
  const { id } = data(made) as { id: string }
  t.match(made, { actorId: id, keys: ['A1'], position: { offset: 1 } })
  t.same(data(await world.ask(id, [['append', { token: 'y' }]])), 2)
  t.same(data(await world.ask('A1', [['read']])), ['x', 'y'])
  const again = await world.restart()
  t.same(data(await again.ask('A1', [['read']])), ['x', 'y'])
  t.equal(code(await again.ask('A2', [['read']])), 'NOT_FOUND')
  t.equal(code(await again.ask('new', [['open', { number: 'A1' }]])), 'ALREADY_EXISTS')
})

t.test('a store that has no TTL is asked to remove what is over', async (t) => {
  const told: (number | null)[][] = []
  const expire = async (clockOf: (shard: number) => number | null) => {
    told.push([clockOf(0), clockOf(SYSTEM_SHARD), clockOf(99)])
  }
  const { clock } = await startMember({ expire })
  await clock.advance(3 * LIMITS.storage.expireEveryMs)
  const times = [1, 2, 3].map((i) => i * LIMITS.storage.expireEveryMs)
  t.same(
    told,
    times.map((ms) => [ms, ms, null]),
    'by the clocks of its shards, whatever the wall clock says',
  )
})

t.test(
  'embedded, ids that an edge made are known for as long as anybody may send them',
  async (t) => {
    const world = await startMember()
    const { clock, member, ask } = world
    const { id } = data(await ask('new', [['open', { token: 'x' }]])) as { id: string }
    const append = (): Promise<Reply> => ask(id, [['append', { token: 'y' }]])
    const known = (): number => {
      const found = [...member.shards.values()].map(({ activations }) => activations.get(id))
      return found.find((one) => one !== undefined)!.marks.size
    }
    await append()
    await clock.advance(LIMITS.storage.soleEdgeMarkMs - 1)
    await append()
    t.equal(known(), 3)
    await clock.advance(1)
    await append()
    t.equal(known(), 2, 'those of the first moment are not')
  },
)

t.test('answers a repeated key with the first answer, also after a restart', async (t) => {
  let world = await startMember()
  const open = (): Promise<Reply> => world.ask('new', [['open', { token: 'x' }]], { key: 'k' })
  const first = await open()
  t.same(await open(), first)
  world = await world.restart()
  t.same(await open(), first)
  const { id } = data(first) as { id: string }
  const append = (): Promise<Reply> => world.ask(id, [['append', { token: 'y' }]], { key: 'k' })
  const appended = await append()
  t.same(await append(), appended)
  t.same(data(await world.ask(id, [['read']])), ['x', 'y'])
  const other = await world.ask(id, [['append', { token: 'z' }]], { key: 'k' })
  t.equal(code(other), 'IDEMPOTENCY_MISMATCH')
  t.same(data(await world.ask(id, [['read']])), ['x', 'y'])
})

t.test('two creates with one key at once make one actor', async (t) => {
  const world = await startMember()
  const asks = Array.from({ length: 5 }, () => world.ask('new', [['open', {}]], { key: 'k' }))
  const ids = new Set((await Promise.all(asks)).map((r) => (data(r) as { id: string }).id))
  t.equal(ids.size, 1)
})

t.test('a refusal is recorded: its repeat is refused even when it could succeed', async (t) => {
  const world = await startMember()
  const { id } = data(await world.ask('new', [['open', { token: 'x' }]])) as { id: string }
  const ask = (): Promise<Reply> =>
    world.ask(id, [['append', { token: 'y', unless: 'x' }]], { key: 'k' })
  t.equal(code(await ask()), 'INVALID_STATE')
  const refused = await world.ask('new', [['open', { number: 'N' }]], { key: 'taken' })
  t.equal(code(refused), 'success')
  const taken = (): Promise<Reply> =>
    world.ask('new', [['open', { number: 'N' }]], { key: 'other' })
  t.equal(code(await taken()), 'ALREADY_EXISTS')
  await world.ask('N', [['renumber', { number: 'M' }]])
  t.equal(code(await taken()), 'ALREADY_EXISTS', 'N is free now, but this key was refused')
  t.equal(code(await ask()), 'INVALID_STATE')
  t.equal(code(await world.ask('new', [['open', { number: 'N' }]], { key: 'new' })), 'success')
})

t.test('messages of a request are independent and in order', async (t) => {
  const world = await startMember()
  const reply = await world.ask('new', [
    ['open', { token: 'a' }],
    ['append', { token: 'b', unless: 'a' }],
    ['append', { token: 'c' }],
    ['crash'],
    ['read'],
  ])
  t.equal(code(reply, 1), 'INVALID_STATE')
  t.equal(data(reply, 2), 2)
  t.equal(code(reply, 3), 'INTERNAL_ERROR')
  t.same(data(reply, 4), ['a', 'c'])
})

t.test('a preview stores nothing and shows no trace', async (t) => {
  const world = await startMember()
  const { id, number } = data(await world.ask('new', [['open', { token: 'a' }]])) as {
    id: string
    number: string
  }
  const seen = await world.ask(id, [['append', { token: 'b' }], ['read']], { preview: true })
  t.same(data(seen, 1), ['a', 'b'])
  t.same(data(await world.ask(id, [['read']])), ['a'])
  const taken = await world.ask('new', [['open', { number }]], { preview: true })
  t.equal(code(taken), 'ALREADY_EXISTS')
  const made = await world.ask('new', [['open', { number: 'free' }]], { preview: true })
  t.equal(code(made), 'success')
  t.equal(code(await world.ask('free', [['read']])), 'NOT_FOUND')
})

t.test('generated numbers are unique, skip chosen ones and lead to their actor', async (t) => {
  let world = await startMember({ shards: 4 })
  for (let n = 1; n < 40; n += 3) await world.ask('new', [['open', { number: `L${n}` }]])
  const seen = new Set<string>()
  for (let i = 0; i < 60; i++) {
    if (i === 30) world = await world.restart()
    const { id, number } = data(await world.ask('new', [['open', { token: `${i}` }]])) as {
      id: string
      number: string
    }
    t.notOk(seen.has(number))
    seen.add(number)
    const found = await world.ask(number, [['read']])
    t.match(found, { actorId: id })
  }
})

t.test('keys apart: a number of another shard is claimed, moved and freed', async (t) => {
  let world = await startMember({ shards: 16 })
  const ids: string[] = []
  for (let i = 0; i < 20; i++) {
    const { id } = data(await world.ask('new', [['open', { number: `A${i}` }]])) as { id: string }
    ids.push(id)
  }
  for (let i = 0; i < 20; i++) {
    t.equal(code(await world.ask(ids[i]!, [['renumber', { number: `B${i}` }]])), 'success')
  }
  await world.clock.advance(1_000)
  world = await world.restart()
  for (let i = 0; i < 20; i++) {
    t.match(await world.ask(`B${i}`, [['read']]), { actorId: ids[i] })
    t.equal(code(await world.ask(`A${i}`, [['read']])), 'NOT_FOUND', 'the old number is free')
    const twin = ids[(i + 1) % 20]!
    const taken = await world.ask(twin, [['renumber', { number: `B${i}` }]])
    t.equal(code(taken), 'ALREADY_EXISTS')
    const failed = await world.ask(twin, [['renumber', { number: `C${i}`, fail: 'yes' }]])
    t.equal(code(failed), 'INVALID_STATE')
  }
  await world.clock.advance(1_000)
  for (let i = 0; i < 20; i++) {
    const free = await world.ask(ids[i]!, [['renumber', { number: `C${i}` }]])
    t.equal(code(free), 'success', 'a refused turn has freed its claim')
  }
})

t.test('effects reach their actor once, over restarts', async (t) => {
  let world = await startMember({ shards: 8 })
  const a = (data(await world.ask('new', [['open', {}]])) as { id: string }).id
  const b = (data(await world.ask('new', [['open', {}]])) as { id: string }).id
  const sent: string[] = []
  for (let i = 0; i < 30; i++) {
    sent.push(`t${i}`)
    const asked = world.ask(a, [['send', { token: `t${i}`, to: b }]])
    await asked
    if (i % 10 === 9) world = await world.restart()
  }
  await world.clock.advance(1_000)
  t.same(data(await world.ask(b, [['read']])), sent)
})

t.test('checkpoints can be listed and looked at', async (t) => {
  const world = await startMember()
  const { id } = data(await world.ask('new', [['open', { token: 'a' }]])) as { id: string }
  await world.ask(id, [['append', { token: 'b' }]])
  await world.ask(id, [['append', { token: 'c' }]])
  const list = data(await world.ask(id, [['checkpoints']])) as { checkpointId: string }[]
  t.equal(list.length, 3)
  const past = await world.ask(id, [['at', { id: list[1]!.checkpointId }]])
  t.same(data(past), ['a', 'b'])
})

t.test('a full disk refuses and changes nothing', async (t) => {
  let full = false
  const hooks = { beforeAppend: () => (full ? ('full' as const) : null) }
  const world = await startMember({ hooks })
  const { id } = data(await world.ask('new', [['open', { token: 'a' }]])) as { id: string }
  full = true
  t.equal(code(await world.ask(id, [['append', { token: 'b' }]])), 'STORAGE_FULL')
  t.equal(code(await world.ask('new', [['open', { number: 'N' }]])), 'STORAGE_FULL')
  t.same(data(await world.ask(id, [['read']])), ['a'])
  full = false
  t.same(data(await world.ask(id, [['append', { token: 'c' }]])), 2)
  t.equal(code(await world.ask('new', [['open', { number: 'N' }]])), 'success')
})

t.test('no answer leaves before its commit, reads and previews included', async (t) => {
  let release: (() => void) | null = null
  let held = false
  const hooks = {
    beforeAppend: () =>
      held ? new Promise<null>((resolve) => (release = () => resolve(null))) : null,
  }
  const world = await startMember({ hooks })
  const { id } = data(await world.ask('new', [['open', { token: 'a' }]])) as { id: string }
  held = true
  const order: string[] = []
  const note = (name: string) => (): void => void order.push(name)
  const write = world.ask(id, [['append', { token: 'b' }]]).then(note('write'))
  await world.clock.advance(10)
  const read = world.ask(id, [['read']]).then(note('read'))
  const preview = world.ask(id, [['append', { token: 'c' }]], { preview: true }).then(note('look'))
  await world.clock.advance(10)
  t.same(order, [])
  held = false
  release!()
  await Promise.all([write, read, preview])
  t.same(order, ['write', 'read', 'look'])
})

t.test('unknown outcomes are resolved by asking the store', async (t) => {
  let mode: 'applied' | 'lost' | null = null
  const hooks = {
    beforeAppend: () => (mode === 'lost' ? ((mode = null), 'unknown' as const) : null),
    afterAppend: () => (mode === 'applied' ? ((mode = null), 'unknown' as const) : null),
  }
  const world = await startMember({ hooks })
  const { id } = data(await world.ask('new', [['open', { token: 'a' }]])) as { id: string }
  for (const how of ['applied', 'lost', 'applied'] as const) {
    mode = how
    const asked = world.ask(id, [['append', { token: how }]])
    await world.clock.advance(3_000)
    t.equal(code(await asked), 'success')
  }
  t.same(data(await world.ask(id, [['read']])), ['a', 'applied', 'lost', 'applied'])
})

t.test('a second owner fences the first: its writes and reads move away', async (t) => {
  const world = await startMember()
  const { id } = data(await world.ask('new', [['open', { token: 'a' }]])) as { id: string }
  const second = await world.restart()
  t.same(data(await second.ask(id, [['append', { token: 'b' }]])), 2)
  const late = world.ask(id, [['append', { token: 'c' }]], { budgetMs: 500 })
  const read = world.ask(id, [['read']], { budgetMs: 500 })
  await world.clock.advance(1_000)
  t.equal(code(await late), 'UNAVAILABLE')
  t.equal(code(await read), 'UNAVAILABLE')
  t.same(data(await second.ask(id, [['read']])), ['a', 'b'])
  t.ok(world.lost.length > 0)
})

t.test('a wire that loses, doubles and reorders changes nothing', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.integer(), async (seed) => {
      const nasty = { drop: 0.15, double: 0.3, delay: 0.3 }
      const world = await startMember({ nasty, seed })
      const asks: Promise<Reply>[] = []
      for (let i = 0; i < 12; i++) {
        asks.push(
          world.ask('new', [['open', { number: `N${i % 8}`, token: `${i}` }]], {
            key: `k${i % 10}`,
          }),
        )
      }
      await world.clock.advance(40_000)
      const opened = await Promise.all(asks)
      const ok = opened.filter((r) => code(r) === 'success')
      const known = new Set(ok.map((r) => (data(r) as { id: string }).id))
      const appends = [...known].flatMap((id) =>
        [1, 2, 3].map((n) => world.ask(id, [['append', { token: `t${n}` }]], { key: `a${n}` })),
      )
      await world.clock.advance(40_000)
      const done = await Promise.all(appends)
      for (const id of known) {
        const read = world.ask(id, [['read']])
        await world.clock.advance(20_000)
        const reply = await read
        if (reply.outcome === 'unknown') continue
        const tokens = data(reply) as string[]
        t.equal(new Set(tokens).size, tokens.length, 'nothing twice')
        const okTokens = done.filter((r) => r.outcome === 'answered' && r.actorId === id).length
        t.ok(tokens.length - 1 >= okTokens, 'nothing acknowledged is lost')
      }
      t.same(world.errors, [])
    }),
    { numRuns: 25 },
  )
})

t.test(
  'memory stays bounded when many actors are touched and one gets many messages',
  async (t) => {
    const world = await startMember({ shards: 1 })
    let hot = ''
    for (let i = 0; i < 60; i++) {
      const made = await Promise.all(
        Array.from({ length: 500 }, () => world.ask('new', [['open', { token: 'x' }]])),
      )
      hot = (data(made[0]!) as { id: string }).id
    }
    const shard = world.member.shards.get(0)!
    t.ok(shard.activations.size < 12_000, `${shard.activations.size} of 30,000 actors are active`)
    for (let i = 0; i < 40; i++) {
      await Promise.all(
        Array.from({ length: 50 }, (_, j) =>
          world.ask(hot, [['append', { token: `${i}.${j}` }]], { key: `${i}.${j}` }),
        ),
      )
    }
    const activation = shard.activations.get(hot)!
    t.ok(activation.marks.size <= 1_000)
    t.ok(activation.marks.spilled)
    const again = await world.ask(hot, [['append', { token: '0.0' }]], { key: '0.0' })
    t.equal(data(again), 2, 'a key that left the window is still known')
    const later = await world.restart()
    t.equal(data(await later.ask(hot, [['append', { token: '0.0' }]], { key: '0.0' })), 2)
    t.equal(data(await later.ask(hot, [['append', { token: '39.49' }]], { key: '39.49' })), 2_001)
  },
)

t.test('what is committed is told on; configuration is taken up here, at once', async (t) => {
  for (const home of ['shards', 'system'] as const) {
    const told: [shard: number, first: number, count: number][] = []
    const { member, ask } = await startMember({
      behaviours: [{ ...ledger, home }],
      onCommitted: (shard, entries, first) => void told.push([shard, first, entries.length]),
    })
    const { offset } = member.system
    const reply = await ask('new', [['open', { number: 'N' }]])
    t.equal(reply.outcome, 'answered')
    t.ok(home === 'system' ? told.length > 0 : told.length === 1)
    const [shard, first, count] = told[0]!
    t.ok(home === 'system' ? shard === SYSTEM_SHARD : shard >= 0)
    t.ok(count > 0)
    t.equal(first, 1)
    if (home === 'system') t.ok(member.system.offset > offset)
    else t.equal(member.system.offset, offset)
  }
})
