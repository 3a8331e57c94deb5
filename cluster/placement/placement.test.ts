// Members among each other on stores in memory: they share the shards, take over from the dead,
// move shards without failing a request, and leave.

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { placeOfActor, shardOf } from '../../protocol/ids.ts'
import type { Reply } from '../../protocol/message.ts'
import { makeMembers } from '../testing/members.ts'
import type { Members, OneMember } from '../testing/members.ts'

function owners(all: Members): Map<string, number> {
  const found = new Map<string, number>()
  for (const { owner } of all.state.shards.values()) found.set(owner, (found.get(owner) ?? 0) + 1)
  return found
}

/** Every shard is served by the incarnation that its row names. */
function isSettled(all: Members, living: readonly OneMember[]): boolean {
  return [...all.state.shards.values()].every(({ shard, incarnation, epoch }) => {
    const one = living.find(({ member }) => member.ownership.incarnation === incarnation)
    const tenure = one?.member.shards.get(shard)
    return tenure?.state === 'serving' && tenure.epoch === epoch
  })
}

function isLevel(all: Members, living: readonly OneMember[]): boolean {
  const shards = all.state.shards.size
  const most = Math.ceil(shards / living.length)
  const names = living.map(({ name }) => name)
  const has = owners(all)
  return names.every((name) => (has.get(name) ?? 0) <= most) && isSettled(all, living)
}

async function ended<T>(all: Members, waiting: Promise<T>): Promise<T> {
  let done = false
  void waiting.finally(() => (done = true))
  await all.until('an answer', () => done, 60_000)
  return waiting
}

function ok(reply: Reply): unknown {
  if (reply.outcome !== 'answered') throw new Error(JSON.stringify(reply))
  const [result] = reply.results
  if (!result!.success) throw new Error(JSON.stringify(result))
  return result!.data
}

t.test('three members share the shards; any of them answers for all', async (t) => {
  const all = makeMembers({ shards: 8 })
  const a = await all.start('a')
  await all.until('a serves', () => isSettled(all, [a]))
  const made = await ended(all, a.ask('new', [['open', { number: 'N1', token: 'x' }]]))
  const { id } = ok(made) as { id: string }
  const b = await all.start('b')
  const c = await all.start('c')
  await all.until('the load is level', () => isLevel(all, [a, b, c]), 60_000)
  for (const one of [a, b, c]) {
    t.same(ok(await ended(all, one.ask('N1', [['read']]))), ['x'])
  }
  t.same(ok(await ended(all, c.ask(id, [['append', { token: 'y' }]], { key: 'k' }))), 2)
  t.same(ok(await ended(all, b.ask(id, [['append', { token: 'y' }]], { key: 'k' }))), 2, 'once')
  t.same(ok(await ended(all, a.ask(id, [['read']]))), ['x', 'y'])
  const { members, shards, moves } = b.member.ownership.overview()
  t.same(
    members.map(({ member, state }) => [member, state]),
    [
      ['a', 'up'],
      ['b', 'up'],
      ['c', 'up'],
    ],
  )
  t.ok(shards.every(({ owner }) => owner !== null))
  t.same(moves, [])
})

t.test('the shards of a killed member are taken over; what it acknowledged is there', async (t) => {
  const all = makeMembers({ shards: 8 })
  const a = await all.start('a')
  const b = await all.start('b')
  await all.until('the load is level', () => isLevel(all, [a, b]), 60_000)
  const ids: string[] = []
  for (let i = 0; i < 20; i++) {
    const reply = await ended(all, a.ask('new', [['open', { token: `t${i}` }]], { key: `k${i}` }))
    ids.push((ok(reply) as { id: string }).id)
  }
  const open = ids.map((id) => a.ask(id, [['append', { token: 'late' }]], { key: `l${id}` }))
  b.kill()
  const began = all.clock.monotonicMs()
  await all.until('a has all', () => isSettled(all, [a]), 10_000)
  t.ok(all.clock.monotonicMs() - began < 5_000, 'within 5 s')
  for (const reply of open) t.equal(ok(await ended(all, reply)), 2)
  for (const [i, id] of ids.entries()) {
    t.same(ok(await ended(all, a.ask(id, [['read']]))), [`t${i}`, 'late'])
  }
  // It comes back as a new incarnation and gets its share.
  const again = await all.start('b')
  await all.until('the load is level', () => isLevel(all, [a, again]), 60_000)
  t.same(ok(await ended(all, again.ask(ids[0]!, [['read']]))), ['t0', 'late'])
})

t.test('moves and a leaving member fail no request', async (t) => {
  const all = makeMembers({ shards: 8 })
  const a = await all.start('a')
  const b = await all.start('b')
  await all.until('the load is level', () => isLevel(all, [a, b]), 60_000)
  const made = await ended(all, a.ask('new', [['open', {}]]))
  const { id } = ok(made) as { id: string }
  const replies: Promise<Reply>[] = []
  let n = 0
  const load = (on: OneMember): void =>
    void replies.push(
      on.ask(id, [['append', { token: `n${n++}` }]], { key: `n${n}` }),
      on.ask('new', [['open', { token: 'z' }]], { key: `c${n}` }),
    )
  const c = await all.start('c')
  const fenced: string[] = []
  c.onStatement = (statement) => {
    if (statement.startsWith('fence')) fenced.push(statement)
    return null
  }
  await all.until(
    'three share',
    () => {
      for (const one of [a, b, c]) load(one)
      return isLevel(all, [a, b, c])
    },
    60_000,
  )
  t.same(fenced, [], 'who signs a shard over has closed its log too')
  let left = false
  void b.member.stop(20_000).then(() => (left = true))
  await all.until(
    'b has left',
    () => {
      load(a)
      load(c)
      return left && isLevel(all, [a, c])
    },
    60_000,
  )
  for (const reply of replies) ok(await ended(all, reply))
  const tokens = ok(await ended(all, a.ask(id, [['read']]))) as string[]
  t.equal(tokens.length, new Set(tokens).size)
  t.equal(tokens.length, n, 'each is there once')
  t.equal(all.state.members.get('b')!.state, 'left')
  t.match(
    a.logged.filter((line) => line.includes('BUG')),
    [],
  )
})

t.test('a member that was declared dead starts again inside its process', async (t) => {
  const all = makeMembers({ shards: 4 })
  const a = await all.start('a')
  const b = await all.start('b')
  await all.until('the load is level', () => isLevel(all, [a, b]), 60_000)
  const old = b.member.ownership.incarnation
  const had = [...b.member.shards.keys()].toSorted((x, y) => x - y)
  b.released.length = 0
  b.onStatement = (statement) => (statement.includes('"beat"') ? 'unknown' : null)
  await all.until('b is dead', () => all.state.members.get('b')!.state === 'dead', 10_000)
  b.onStatement = null
  await all.until('b knows', () => b.member.ownership.incarnation !== old, 10_000)
  t.ok(had.length > 0)
  t.strictSame(
    b.released.toSorted((x, y) => x - y),
    had,
    'its followers are told of each',
  )
  await all.until('both share again', () => isLevel(all, [a, b]), 60_000)
  t.not(b.member.ownership.incarnation, old)
  const { id } = ok(await ended(all, b.ask('new', [['open', { token: 'x' }]]))) as { id: string }
  t.same(ok(await ended(all, a.ask(id, [['read']]))), ['x'])
})

t.test('what was opened for an announced shard that is not signed over goes again', async (t) => {
  const all = makeMembers({ shards: 8 })
  const a = await all.start('a')
  const b = await all.start('b')
  await all.until('the load is level', () => isLevel(all, [a, b]), 60_000)
  const [shard, { epoch }] = [...all.state.shards].find(([, { owner }]) => owner === 'a')!
  const from = a.member.ownership.incarnation
  const opens = (): boolean => b.member.shards.get(shard) !== undefined
  b.member.ownership.hear({ kind: 'expect', shard, epoch: epoch + 1 }, from)
  t.ok(opens())
  // Another epoch than was announced: the row decides, and says that it is still a's.
  b.member.ownership.hear({ kind: 'handed', shard, epoch: epoch + 2 }, from)
  await all.until('it is gone', () => !opens(), 5_000)
  const made = await ended(all, b.ask('new', [['open', {}]]))
  ok(made)
})

t.test('a shard is served where it is until its target has read ahead', async (t) => {
  /** When each notice of the first move was heard. */
  const move = async (isHeard: boolean): Promise<ReadonlyMap<string, number>> => {
    const all = makeMembers({ shards: 8 })
    const at = new Map<string, number>()
    for (const one of [await all.start('a'), await all.start('b')]) {
      const { ownership } = one.member
      const hear = ownership.hear.bind(ownership)
      ownership.hear = (notice, from) => {
        if (!at.has(notice.kind)) at.set(notice.kind, all.clock.monotonicMs())
        if (notice.kind !== 'ready' || isHeard) hear(notice, from)
      }
    }
    await all.until('a shard has moved', () => at.has('handed'), 60_000)
    return at
  }
  const at = await move(true)
  const kinds = ['expect', 'ready', 'handed'].map((kind) => at.get(kind)!)
  t.same(
    kinds,
    kinds.toSorted((one, other) => one - other),
  )
  t.ok(at.get('handed')! - at.get('expect')! < LIMITS.placement.readAheadMs / 2)
  const deaf = await move(false)
  const waitedMs = deaf.get('handed')! - deaf.get('expect')!
  t.ok(
    waitedMs >= LIMITS.placement.readAheadMs,
    `not for ever: its word may be lost; ${waitedMs} ms`,
  )
})

t.test('who may lie anywhere begins where it was received', async (t) => {
  const all = makeMembers({ shards: 8 })
  const a = await all.start('a')
  const b = await all.start('b')
  await all.until('the load is level', () => isLevel(all, [a, b]), 60_000)
  for (const one of [a, b]) {
    const homes = new Set<number>()
    for (let i = 0; i < 30; i++) {
      const { id } = ok(await ended(all, one.ask('new', [['open', {}]]))) as { id: string }
      const shard = shardOf(placeOfActor(id), 8)
      t.equal(all.state.shards.get(shard)!.owner, one.name)
      homes.add(shard)
    }
    t.ok(homes.size > 1, 'over all that it has')
  }
  const key = { key: 'k' }
  const first = ok(await ended(all, a.ask('new', [['open', {}]], key))) as { id: string }
  const again = ok(await ended(all, b.ask('new', [['open', {}]], key))) as { id: string }
  t.equal(first.id, again.id, 'a key decides, wherever it comes in')
})
