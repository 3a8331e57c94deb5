// Activity on members of one store: whoever of them sees an identity, its time is one, neither the
// identity nor the log of the `system` shard knows of it, and it ends with the identity, whoever
// dies on the way.

import t from 'tap'
import type { Test } from 'tap'
import type { SystemView } from '../../../cluster/actor-system.ts'
import { makeMembers } from '../../../cluster/testing/members.ts'
import type { OneMember } from '../../../cluster/testing/members.ts'
import { overrideLimits } from '../../../config/testing/override-limits.ts'
import { SYSTEM_SHARD } from '../../../protocol/ids.ts'
import { deleteRequest, failureOf, putRequest, systemActor } from '../../system-actor.ts'
import { activityBehaviour, endOfActivity } from './activity.ts'
import { LastActivity } from './last-activity.ts'
import { NotedActivity } from './noted-activity.ts'

const EVERY_MS = 5_000
const OF = { kind: 'client', identity: 'shop' } as const
const ORIGIN = { by: 'test', trace: 't' }

async function scene(t: Test) {
  t.teardown(overrideLimits({ 'access.activityEveryMs': EVERY_MS }))
  const client = systemActor<unknown>(
    'client',
    () => null,
    () => null,
    { onDeletion: (identity) => [endOfActivity({ ...OF, identity })] },
  )
  const members = makeMembers({ behaviours: [client, activityBehaviour] as never })
  const { clock, until } = members
  const join = async (name: string) => {
    const one = await members.start(name)
    const noted = new NotedActivity(one.member, clock)
    t.teardown(() => noted.stop())
    return Object.assign(one, { noted, last: new LastActivity(one.member, clock) })
  }
  const [a, b] = [await join('a'), await join('b')]
  const during = async <T>(promise: Promise<T>): Promise<T> => {
    let isSettled = false
    promise.finally(() => (isSettled = true)).catch(() => undefined)
    await until('it is settled', () => isSettled, 60_000)
    return promise
  }
  const ask = async (one: OneMember, request: Parameters<OneMember['member']['ask']>[0]) => {
    const failure = failureOf(await during(one.member.ask(request)))
    if (failure !== null) throw new Error(failure.message)
  }
  await ask(a, putRequest('client', 'shop', { value: { secrets: [] } }, ORIGIN))
  const isKnown = (): boolean =>
    [a, b].every(({ member }) => member.system.get('client', 'shop') !== null)
  await until('both know it', isKnown)
  const shown = async (one: typeof a): Promise<number> => {
    const [found] = await during(one.last.of('client', ['shop'], 't'))
    if (found?.lastActiveAt === undefined) throw new Error('it can not be told')
    return found.lastActiveAt === null ? 0 : Date.parse(found.lastActiveAt)
  }
  const head = (shard: number): number =>
    Math.max(...[a, b].map(({ member }) => member.shards.get(shard)?.gate.head ?? 0))
  return { clock, until, join, during, ask, a, b, shown, head }
}

t.test('two members that see it write it as seldom as one, and both show it', async (t) => {
  const { clock, a, b, shown, head } = await scene(t)
  const before = head(SYSTEM_SHARD)
  const version = a.member.system.get('client', 'shop')!.version
  const heads = (): number => [0, 1, 2, 3].reduce((sum, shard) => sum + head(shard), 0)
  const entries = heads()
  t.equal(await shown(b), 0)
  const fromMs = clock.nowMs()
  let last = 0
  for (let second = 0; second < 30; second++) {
    for (const { noted } of [a, b]) {
      noted.active(OF)
      await clock.advance(500)
    }
    for (const one of [a, b]) {
      const atMs = await shown(one)
      t.ok(atMs >= last && atMs <= clock.nowMs(), 'never back, never ahead')
      last = atMs
    }
  }
  t.ok(last >= clock.nowMs() - EVERY_MS - 3_000)
  const most = Math.ceil((clock.nowMs() - fromMs) / EVERY_MS) + 1
  t.ok(heads() - entries >= 5 && heads() - entries <= most, `${heads() - entries} entries`)
  t.equal(head(SYSTEM_SHARD), before, 'no entry in the log of all members')
  t.equal(a.member.system.get('client', 'shop')!.version, version, 'no other ETag')
})

t.test('it outlives the member that wrote it, and ends with its identity', async (t) => {
  const { clock, a, b, join, until, ask, shown } = await scene(t)
  a.noted.active(OF)
  await clock.advance(3_000)
  const atMs = await shown(b)
  t.ok(atMs > 0)
  const c = await join('c')
  a.kill()
  await until(
    'others have its shards',
    () => {
      const all = [b, c]
      return [SYSTEM_SHARD, 0, 1, 2, 3].every((shard) =>
        all.some((one) => one.member.serves(shard)),
      )
    },
    120_000,
  )
  for (const one of [b, c]) t.equal(await shown(one), atMs)
  await ask(c, deleteRequest('client', 'shop', {}, ORIGIN))
  for (let i = 0; i < 100 && (await shown(b)) !== 0; i++) await clock.advance(100)
  t.equal(await shown(c), 0)
  await clock.advance(2 * EVERY_MS)
  // A member that has not heard of the deletion.
  const system = { get: () => ({ value: {} }) } as unknown as SystemView
  const late = new NotedActivity({ ask: (one) => b.member.ask(one), system }, clock)
  late.active(OF)
  await clock.advance(3_000)
  t.equal(await shown(b), 0, 'nothing revives')
  late.stop()
})
