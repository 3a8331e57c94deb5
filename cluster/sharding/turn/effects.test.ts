// Messages from actor to actor: each message of each effect takes effect once at its target, what
// one shard has for one actor in the order of its log, whether it names the actor by UUID or by
// number, whatever becomes of copies and processes. Source: PROTOCOL 3.6 "Outbox".

import t from 'tap'
import { overrideLimits } from '../../../config/testing/override-limits.ts'
import { RequestError } from '../../../protocol/errors.ts'
import { placeOfActor, shardOf } from '../../../protocol/ids.ts'
import type { Group } from '../../../storage/journal.ts'
import { seeded, startMember } from '../../testing/harness.ts'
import type { World } from '../../testing/harness.ts'
import { isBefore } from './activation.ts'
import { Scene } from '../testing/scene.ts'

const SHARDS = 4

/** Asks until there is an answer: in a bad network a request may end unknown. */
async function must(world: World, id: string, say: [string, object?][], key: string) {
  for (;;) {
    const passing = { reply: null as Awaited<ReturnType<World['ask']>> | null }
    void world.ask(id, say, { key }).then((reply) => (passing.reply = reply))
    while (passing.reply === null) await world.clock.advance(50)
    const { reply } = passing
    if (reply.outcome !== 'answered') continue
    const result = reply.results[0]!
    if (!result.success) throw new Error(JSON.stringify(reply))
    return { id: reply.actorId!, data: result.data }
  }
}

const tokensOf = async (world: World, id: string): Promise<readonly string[]> => {
  const { data } = await must(world, id, [['read']], 'read')
  return data as readonly string[]
}

/** Ends a member as a kill would, and has another serve what is left. */
function restarted(world: World): Promise<World> {
  for (const shard of world.member.shards.values()) shard.stepDown('killed')
  world.member.edge.abandon()
  return world.restart()
}

async function quiet(world: World): Promise<void> {
  const isBusy = (): boolean =>
    [...world.member.shards.values()].some(({ outbox }) => outbox.size > 0)
  for (let waits = 0; isBusy(); waits++) {
    if (waits > 400) throw new Error('effects stay in an outbox')
    await world.clock.advance(100)
  }
}

t.test('effects by UUID and by number, over a bad wire and restarts', async (t) => {
  for (let seed = 1; seed <= 12; seed++) {
    const chance = seeded(seed)
    const below = (n: number): number => Math.floor(chance() * n)
    const nasty = { drop: 0.1, double: 0.2, delay: 0.3 }
    let world = await startMember({ shards: SHARDS, seed, nasty })
    const ids: string[] = []
    for (let i = 0; i < 6; i++) {
      ids.push((await must(world, 'new', [['open', { number: `N${i}` }]], `open ${i}`)).id)
    }
    const [targets, sources] = [ids.slice(0, 3), ids.slice(3)]
    const due = targets.map(() => new Map<number, string[]>())
    for (let i = 0; i < 30; i++) {
      const from = sources[below(3)]!
      const to = below(3)
      const also = Array.from({ length: below(3) }, (_, n) => `${i}.${n}`)
      const address = chance() < 0.5 ? { to: targets[to] } : { toNumber: `N${to}` }
      await must(world, from, [['send', { token: `${i}`, also, ...address }]], `send ${i}`)
      const shard = shardOf(placeOfActor(from), SHARDS)
      due[to]!.set(shard, [...(due[to]!.get(shard) ?? []), `${i}`, ...also])
      if (chance() < 0.1) world = await restarted(world)
    }
    await quiet(world)
    for (const [n, id] of targets.entries()) {
      const tokens = await tokensOf(world, id)
      for (const [shard, sent] of due[n]!) {
        const came = tokens.filter((token) => sent.includes(token))
        t.strictSame(came, sent, `seed ${seed}: of shard ${shard} to N${n}`)
      }
    }
  }
})

t.test('an effect with several messages that was cut short goes on where it was', async (t) => {
  const scene = new Scene()
  await scene.run(scene.shard.claim())
  const id = await scene.made('first')
  const effect = (...tokens: string[]) => ({
    say: tokens.map((token): [string, object] => ['append', { token }]),
    relay: [7, 1, 0] as const,
  })
  await scene.run(scene.ask(id, effect('A')))
  await scene.restart()
  await scene.run(scene.ask(id, effect('A', 'B', 'C')))
  t.same(await scene.tokens(id), ['first', 'A', 'B', 'C'])
  await scene.restart()
  // The pair remembers it when no mark does any more.
  await scene.run(scene.ask(id, { ...effect('A', 'B', 'C'), key: 'another id' }))
  t.same(await scene.tokens(id), ['first', 'A', 'B', 'C'])
})

t.test(
  'a message of an effect that may be tried again is, behind one that was taken',
  async (t) => {
    let isAway = true
    const rules = (): readonly unknown[] => {
      if (isAway) throw new RequestError('UNAVAILABLE', 'the rules are away')
      return []
    }
    const scene = new Scene({ rules })
    await scene.run(scene.shard.claim())
    const id = await scene.made('first')
    const effect = { relay: [7, 1, 0] as const, key: 'relay-7-1-0' }
    const say: [string, object][] = [
      ['append', { token: 'A' }],
      ['append', { token: 'B', wait: 'a rule' }],
      ['append', { token: 'C' }],
    ]
    const cut = await scene.run(scene.ask(id, { ...effect, say }))
    t.match(cut, { outcome: 'refused', error: { code: 'UNAVAILABLE' } }, 'it is to be sent again')
    isAway = false
    await scene.run(scene.ask(id, { ...effect, say }))
    t.same(await scene.tokens(id), ['first', 'A', 'B', 'C'])
  },
)

t.test('a number that was resolved for an effect stays resolved', async (t) => {
  let world = await startMember({ shards: SHARDS, seed: 5 })
  const open = (number: string) => must(world, 'new', [['open', { number }]], number)
  const [from, old] = [(await open('FROM')).id, (await open('N')).id]
  await must(world, from, [['send', { token: 'x', toNumber: 'N' }]], 'x')
  await quiet(world)
  await must(world, old, [['renumber', { number: 'M' }]], 'm')
  const next = (await must(world, 'new', [['open', { number: 'N' }]], 'another')).id
  t.not(next, old)
  world = await restarted(world)
  await quiet(world)
  t.same(await tokensOf(world, old), ['x'])
  t.same(await tokensOf(world, next), [])
})

t.test('the disk is full once for what is noted of an effect by number: it arrives', async (t) => {
  let notes = 0
  const beforeAppend = ({ body }: Group): 'full' | null =>
    Buffer.from(body).includes('!resolved') && ++notes === 1 ? 'full' : null
  const world = await startMember({ shards: 1, seed: 8, hooks: { beforeAppend } })
  const open = (number: string) => must(world, 'new', [['open', { number }]], number)
  const [from, to] = [(await open('FROM')).id, (await open('N')).id]
  for (const token of ['a', 'b']) {
    await must(world, from, [['send', { token, toNumber: 'N' }]], token)
  }
  await quiet(world)
  t.ok(notes > 2, 'it was noted again')
  t.same(await tokensOf(world, to), ['a', 'b'])
})

t.test('a takeover tells what is noted of an effect from what its actor has done', async (t) => {
  // So few that the actor's window has to be looked through.
  t.teardown(overrideLimits({ 'sharding.marksMax': 4 }))
  let world = await startMember({ shards: 1, seed: 7 })
  const { id } = await must(world, 'new', [['open', { number: 'N' }]], 'open')
  const tokens = Array.from({ length: 8 }, (_, i) => `token ${i}`)
  for (const token of tokens) await must(world, id, [['append', { token }]], token)
  for (let i = 0; world.member.shards.get(0)!.flusher.stored < 9; i++) {
    t.ok(i < 100, 'the flush offset moves on')
    await world.clock.advance(100)
  }
  // Of itself: in the tail it is noted before any entry of the actor that the tail holds.
  const other = (await must(world, 'new', [['open', { number: 'M' }]], 'other')).id
  await must(world, other, [['send', { token: 'sent', toNumber: 'N' }]], 'send')
  await quiet(world)
  world = await restarted(world)
  t.same(await tokensOf(world, id), [...tokens, 'sent'])
})

t.test('an effect to a number that an earlier effect gives an actor finds it', async (t) => {
  const world = await startMember({ shards: SHARDS, seed: 6 })
  const from = (await must(world, 'new', [['open', { number: 'FROM' }]], 'f')).id
  const id = '0198c0de-7000-7abc-8def-0123456789ab'
  const both: [string, object][] = [
    ['send', { token: 'a', to: id, open: 'NEW' }],
    ['send', { token: 'b', toNumber: 'NEW' }],
    ['send', { token: 'c', toNumber: 'NOBODY' }],
    ['send', { token: 'd', to: id }],
  ]
  await must(world, from, both, 'k')
  await quiet(world)
  t.same(await tokensOf(world, id), ['a', 'b', 'd'])
})

t.test('a place that was stored before effects had several messages is of the first', async (t) => {
  t.notOk(isBefore([10, 1], [10, 1, 0]))
  t.ok(isBefore([10, 1], [10, 1, 1]))
  t.notOk(isBefore([10, 1, 2], [10, 1, 1]))
  t.ok(isBefore([10, 1, 2], [10, 2]))
  t.notOk(isBefore([10, 1, 2], [9, 5]))
})
