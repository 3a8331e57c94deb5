// Claims: whose shard may be taken, in which epoch it is served, and what is left when it fails.

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { Outage } from '../../protocol/outage.ts'
import { LostTenure } from '../../storage/journal.ts'
import { settle } from '../testing/harness.ts'
import { Claimer } from './claimer.ts'
import type { Expected } from './claimer.ts'
import { FakeHost, PREFETCHED, QUIET, makeRows } from './testing/fake-host.ts'

function makeClaimer() {
  const host = new FakeHost()
  const rows = makeRows()
  const world = {
    host,
    rows,
    incarnation: 'mine',
    mayServe: true,
    claimer: null as unknown as Claimer,
    /** A shard that was announced. */
    expected: (shard: number): Expected => ({
      shard: host.open(shard),
      prefetched: Promise.resolve(PREFETCHED as never),
      row: Promise.resolve(null),
    }),
  }
  world.claimer = new Claimer({
    control: rows.control,
    clock: rows.clock,
    log: QUIET,
    host,
    member: 'me',
    incarnation: () => world.incarnation,
    mayServe: () => world.mayServe,
    outage: new Outage({ log: QUIET, now: () => 0, failing: '', back: '' }),
  })
  return world
}

t.test('taken from the dead: in the next epoch, from the segment of the row', async (t) => {
  const { rows, host, claimer } = makeClaimer()
  const before = { epoch: 4, owner: 'other', incarnation: 'theirs', segment: 9 }
  const ends: (() => void)[] = [
    () => rows.member('other', 'theirs', 'dead'),
    () => rows.member('other', 'theirs', 'left'),
    () => rows.member('other', 'their next incarnation', 'up'),
    () => rows.state.members.delete('other'),
  ]
  for (const [i, end] of ends.entries()) {
    rows.set(1, before)
    end()
    await claimer.force(1)
    t.match(rows.state.shards.get(1), { epoch: 5, owner: 'me', incarnation: 'mine', segment: 9 })
    t.match(host.shards.get(1), { state: 'serving', epoch: 5 })
    t.same(host.shards.get(1)!.claims, [
      { tenure: { epoch: 5, segment: 9 }, ahead: { prefetched: null } },
    ])
    t.equal(claimer.served, i + 1)
    t.same(host.did.splice(0), ['open 1', 'serving 1'])
  }
  await claimer.force(2)
  t.match(rows.state.shards.get(2), { epoch: 1, incarnation: 'mine' }, 'nobody has had it')
})

t.test('never from who lives, nor without a lease', async (t) => {
  const { rows, host, claimer } = makeClaimer()
  rows.set(1, { epoch: 4, owner: 'other', incarnation: 'theirs' })
  for (const state of ['up', 'leaving'] as const) {
    rows.member('other', 'theirs', state)
    await claimer.force(1)
  }
  t.equal(rows.state.shards.get(1)!.epoch, 4)
  t.same(host.did, [])
  const idle = makeClaimer()
  idle.mayServe = false
  await idle.claimer.force(0)
  t.same(idle.rows.asked, [])
})

t.test('the lease is looked at before each statement', async (t) => {
  const own = makeClaimer()
  own.rows.fates.push('lost')
  own.rows.before = () => void (own.mayServe = false)
  const forcing = own.claimer.force(0)
  await own.rows.clock.advance(LIMITS.routing.retryMs)
  await forcing
  t.equal(own.rows.asked.filter((what) => what.startsWith('update')).length, 1)
  t.equal(own.rows.state.shards.get(0)!.epoch, 0)
})

t.test('an unknown outcome is looked up, and asked again while nothing has changed', async (t) => {
  const unheard = makeClaimer()
  unheard.rows.fates.push('unheard')
  unheard.rows.before = () => unheard.rows.set(0, { segment: 3 })
  await unheard.claimer.force(0)
  t.same(unheard.host.shards.get(0)!.claims[0]!.tenure, { epoch: 1, segment: 3 })

  const lost = makeClaimer()
  lost.rows.fates.push('lost', 'lost')
  const forcing = lost.claimer.force(0)
  await lost.rows.clock.advance(LIMITS.routing.retryMs * 2 - 1)
  t.equal(lost.rows.state.shards.get(0)!.epoch, 0)
  await lost.rows.clock.advance(1)
  await forcing
  t.match(lost.host.shards.get(0), { state: 'serving', epoch: 1 })

  const silent = makeClaimer()
  silent.rows.fates.push(...Array<'lost'>(50).fill('lost'))
  const giving = silent.claimer.force(0)
  await silent.rows.clock.advance(60_000)
  await giving
  const sent = silent.rows.asked.filter((what) => what.startsWith('update'))
  t.equal(sent.length, LIMITS.storage.claimAttemptsMax)
  t.same(silent.host.did, [])
})

t.test('who was second leaves it alone', async (t) => {
  for (const fate of ['heard', 'lost'] as const) {
    const { rows, host, claimer } = makeClaimer()
    rows.fates.push(fate)
    rows.before = () => rows.set(0, { epoch: 1, owner: 'other', incarnation: 'theirs' })
    await claimer.force(0)
    t.same(host.did, [], fate)
    t.equal(rows.asked.filter((what) => what.startsWith('update')).length, 1)
    t.equal(rows.state.shards.get(0)!.incarnation, 'theirs')
  }
  // An epoch of its own, but of later: another step of this incarnation has it.
  const later = makeClaimer()
  later.rows.before = () => later.rows.set(0, { epoch: 2, owner: 'me', incarnation: 'mine' })
  await later.claimer.force(0)
  t.same(later.host.did, [])
  // Refused, for an earlier copy of this incarnation's own has landed meanwhile.
  const { rows, host, claimer } = makeClaimer()
  rows.before = () => rows.set(0, { epoch: 1, owner: 'me', incarnation: 'mine' })
  await claimer.force(0)
  t.match(host.shards.get(0), { state: 'serving', epoch: 1 })
})

t.test('a re-claim serves what the row gives this incarnation, and only that', async (t) => {
  const { rows, host, claimer } = makeClaimer()
  rows.set(0, { epoch: 3, owner: 'me', incarnation: 'my incarnation before' })
  await claimer.reclaim(0)
  t.same(host.did, [])
  rows.set(0, { epoch: 3, incarnation: 'mine', segment: 2 })
  await claimer.reclaim(0)
  t.match(rows.state.shards.get(0), { epoch: 3 }, 'it has never appended in that epoch')
  t.same(host.shards.get(0)!.claims[0]!.tenure.epoch, 3)
  host.did.length = 0
  await claimer.reclaim(0)
  t.same(host.did, [], 'it serves that already')
  rows.set(0, { epoch: 6 })
  await claimer.reclaim(0)
  t.match(host.shards.get(0), { state: 'serving', epoch: 6 }, 'an older tenure is no reason')
})

t.test('no epoch is served twice in one incarnation', async (t) => {
  const { rows, host, claimer } = makeClaimer()
  rows.set(0, { epoch: 3, owner: 'me', incarnation: 'mine' })
  rows.set(1, { epoch: 3, owner: 'me', incarnation: 'mine' })
  host.script.claim = () => Promise.reject(new Error('as asked'))
  await claimer.reclaim(0)
  t.same(host.did.splice(0), ['open 0', 'forget 0', 'step down 0: the claim has failed'])
  t.equal(claimer.served, 0)
  host.script.claim = () => Promise.resolve()
  await claimer.reclaim(0)
  t.match(host.shards.get(0), { state: 'serving', epoch: 4 }, 'it may have appended in the third')
  t.match(rows.state.shards.get(0), { epoch: 4, owner: 'me', incarnation: 'mine' })
  await claimer.reclaim(1)
  t.match(host.shards.get(1), { epoch: 3 }, 'another shard is another matter')

  claimer.used(2, 8)
  claimer.used(2, 5)
  rows.set(2, { epoch: 8, owner: 'me', incarnation: 'mine' })
  await claimer.reclaim(2)
  t.match(host.shards.get(2), { epoch: 9 })
  const next = makeClaimer()
  next.claimer.used(2, 8)
  next.claimer.reset()
  next.rows.set(2, { epoch: 8, owner: 'me', incarnation: 'mine' })
  await next.claimer.reclaim(2)
  t.match(next.host.shards.get(2), { epoch: 8 }, 'a new incarnation has appended nothing')
})

t.test(
  'handed over: served without a look at the row, but where it has served before',
  async (t) => {
    const { rows, host, claimer, expected } = makeClaimer()
    const tenure = { epoch: 5, segment: 2 }
    await claimer.handed(0, tenure, { ...expected(0), last: { what: 'last' } as never })
    t.same(rows.asked, [])
    const ahead = { prefetched: PREFETCHED, last: { what: 'last' } }
    t.same(host.shards.get(0)!.claims, [{ tenure, ahead }])
    rows.set(0, { epoch: 5, owner: 'me', incarnation: 'mine' })
    host.shards.clear()
    await claimer.handed(0, tenure, expected(0))
    t.match(host.shards.get(0), { state: 'serving', epoch: 6 }, 'the row decides')
    t.same(host.shards.get(0)!.claims[0]!.ahead, { prefetched: PREFETCHED })
  },
)

t.test('what was opened for it is used while it is still the tenure of its shard', async (t) => {
  const { host, claimer, expected } = makeClaimer()
  const announced = expected(0)
  await claimer.handed(0, { epoch: 1, segment: 1 }, announced)
  t.equal(host.tenure(0), announced.shard)
  const gone = expected(1)
  const other = host.open(1)
  host.did.length = 0
  await claimer.handed(1, { epoch: 1, segment: 1 }, gone)
  t.not(host.tenure(1), gone.shard)
  t.not(host.tenure(1), other)
  t.same(host.did, ['open 1', 'serving 1'])
})

t.test('an incarnation that ends on the way serves nothing', async (t) => {
  const reading = makeClaimer()
  let read: (what: never) => void = () => undefined
  const prefetched = new Promise<never>((resolve) => (read = resolve))
  const ahead = { ...reading.expected(0), prefetched }
  const handed = reading.claimer.handed(0, { epoch: 1, segment: 1 }, ahead)
  await settle()
  reading.incarnation = 'next'
  read(PREFETCHED as never)
  await handed
  t.equal(ahead.shard.state, 'stopped')
  t.same((ahead.shard as unknown as { claims: unknown[] }).claims, [])
  t.equal(reading.host.tenure(0), null)

  const claiming = makeClaimer()
  let claimed: () => void = () => undefined
  claiming.host.script.claim = () => new Promise((resolve) => (claimed = resolve))
  const forced = claiming.claimer.force(0)
  await settle()
  claiming.incarnation = 'next'
  claimed()
  await forced
  t.equal(claiming.claimer.served, 0)
  t.equal(claiming.host.tenure(0), null)
  t.same(claiming.host.did, [
    'open 0',
    'forget 0',
    'step down 0: this incarnation of the member is over',
  ])
})

t.test('to lose it to somebody newer is no failure', async (t) => {
  const { host, claimer } = makeClaimer()
  host.script.claim = () => Promise.reject(new LostTenure(0, 1))
  await claimer.force(0)
  t.same([claimer.served, host.tenure(0)], [0, null])
})

t.test('an epoch is raised only in a row of this incarnation', async (t) => {
  const { rows, claimer } = makeClaimer()
  rows.set(0, { epoch: 3, owner: 'other', incarnation: 'theirs' })
  t.equal(await claimer.raise(rows.state.shards.get(0)!), null)
  t.equal(rows.state.shards.get(0)!.epoch, 3)
  rows.set(0, { incarnation: 'mine', segment: 4 })
  t.same(await claimer.raise(rows.state.shards.get(0)!), { epoch: 4, segment: 4 })
  t.match(rows.state.shards.get(0), { epoch: 4, owner: 'me', incarnation: 'mine' })
})
