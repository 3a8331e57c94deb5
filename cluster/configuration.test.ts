// How long a member goes by the configuration that it has: as long as it can know that it is all,
// by the lease of `system` or a look at its log, on either clock (PROTOCOL 3.0 "The system shard").

import t from 'tap'
import { LIMITS } from '../config/limits.ts'
import { RequestError } from '../protocol/errors.ts'
import { SYSTEM_SHARD } from '../protocol/ids.ts'
import { startMember } from './testing/harness.ts'
import { ledger } from './testing/ledger.ts'
import { makeMembers } from './testing/members.ts'
import type { MembersOptions, OneMember } from './testing/members.ts'

const has = (one: OneMember): boolean => one.member.shards.get(SYSTEM_SHARD)?.state === 'serving'

async function three(options: MembersOptions = {}) {
  const members = makeMembers(options)
  const all: OneMember[] = []
  for (const name of ['a', 'b', 'c']) all.push(await members.start(name))
  await members.until('somebody has `system`', () => all.filter(has).length === 1)
  const owner = all.find(has)!
  const others = all.filter((one) => one !== owner)
  return { ...members, owner, others }
}

t.test('cut off from the journal alone: for 2 s, whatever the wire brings', async (t) => {
  const { clock, owner, others, until } = await three()
  const cut = others[0]!
  t.ok(cut.member.knowsConfiguration)
  cut.cutJournal()
  await clock.advance(LIMITS.cluster.systemStaleMs)
  t.notOk(cut.member.knowsConfiguration)
  t.ok(owner.member.knowsConfiguration)
  const learning = cut.member.learnConfiguration()
  await clock.advance(LIMITS.cluster.systemFollowMs)
  t.notOk(await learning)
  await until('it is dead', () => owner.member.ownership.others().length === 1)
  t.notOk(cut.member.knowsConfiguration)
})

t.test('the owner of `system`: as long as its lease stands, then another has it', async (t) => {
  const { clock, owner, others, until } = await three()
  owner.cutJournal()
  await clock.advance(LIMITS.membership.leaseMs)
  t.notOk(owner.member.ownership.mayServe())
  t.notOk(owner.member.knowsConfiguration, 'at once, not when it hears of a new one')
  await until('another has it', () => others.some(has))
  t.ok(others.every(({ member }) => member.knowsConfiguration))
  t.notOk(owner.member.knowsConfiguration)
})

t.test('the owner of `system` whose reads fail knows what it has committed', async (t) => {
  const { clock, owner } = await three()
  owner.onStatement = (statement) => {
    if (statement.startsWith('rows')) throw new Error('away')
    return null
  }
  await clock.advance(2 * LIMITS.cluster.systemStaleMs)
  t.ok(owner.member.ownership.mayServe())
  t.ok(owner.member.knowsConfiguration)
  owner.member.system.offset--
  t.notOk(owner.member.knowsConfiguration, 'a new owner may not have read all of it')
  owner.member.system.offset++
  clock.stepWall(10 * 60_000)
  t.notOk(owner.member.knowsConfiguration)
})

t.test('a machine that was suspended reads first', async (t) => {
  const { clock, others } = await three()
  const [one] = others
  t.ok(one!.member.knowsConfiguration)
  clock.stepWall(10 * 60_000)
  t.notOk(one!.member.knowsConfiguration)
  t.ok(await one!.member.learnConfiguration())
  t.ok(one!.member.knowsConfiguration)
})

t.test('who leaves answers first what waits for the configuration', async (t) => {
  const { others, until } = await three({ behaviours: [{ ...ledger, home: 'system' }] })
  const [one] = others
  const open = async (number: string): Promise<void> => {
    answered = false
    await one!.ask('new', [['open', { number }]])
    answered = true
  }
  let answered = false
  void open('A0')
  await until('something is done', () => answered)
  one!.onStatement = (statement) => {
    if (statement.startsWith('rows')) throw new Error('away')
    return null
  }
  // It has missed something: what others push doesn't fit to what it has.
  one!.member.system.offset--
  void open('A1')
  await until('it is done', () => one!.member.edge.pending === 0)
  t.notOk(answered)
  t.equal(one!.member.pending, 1)
  let left = false
  const leaving = one!.member.stop(10_000).then(() => {
    left = true
    t.ok(answered)
  })
  await until('it has left', () => left)
  await leaving
  t.equal(one!.member.pending, 0)
})

t.test('embedded: another process has the store', async (t) => {
  const first = await startMember()
  t.ok(first.member.knowsConfiguration)
  await first.clock.advance(60_000)
  t.ok(first.member.knowsConfiguration, 'nobody asks it anything, and it looks all the same')
  const second = await first.restart()
  await first.clock.advance(LIMITS.cluster.systemReadEveryMs)
  t.notOk(first.member.knowsConfiguration)
  t.notOk(await first.member.learnConfiguration())
  t.ok(first.lost.length > 0, 'and the process is told to end')
  t.ok(second.member.knowsConfiguration)
})

t.test('embedded: a process that was stopped while another had the store', async (t) => {
  const first = await startMember()
  const second = await first.restart()
  t.ok(second.member.knowsConfiguration)
  first.clock.stepWall(60_000)
  t.notOk(first.member.knowsConfiguration)
  t.notOk(await first.member.learnConfiguration())
  t.ok(await second.member.learnConfiguration())
})

t.test('a journal that is away while a member starts is waited for, each read of it', async (t) => {
  const { clock, start } = makeMembers()
  const away = (): never => {
    throw new RequestError('UNAVAILABLE', 'away')
  }
  for (const what of ['rows', 'shards', 'members']) {
    const untilMs = clock.monotonicMs() + LIMITS.cluster.engineWaitMs / 2
    const one = await start(what, (statement) =>
      statement.startsWith(what) && clock.monotonicMs() < untilMs ? away() : null,
    )
    await clock.advance(LIMITS.cluster.engineWaitMs)
    t.ok(one.member.ownership.mayServe(), what)
    t.ok(one.member.knowsConfiguration, what)
  }
  await t.rejects(
    start('late', (statement) => (statement.startsWith('rows') ? away() : null)),
    { message: 'away' },
    'not for ever',
  )
})
