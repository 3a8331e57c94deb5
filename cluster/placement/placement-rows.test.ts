// One member's placement over rows that a test writes: what it makes of each view, of each notice
// and of its own end. Its shards do as they are told; the other members are rows that beat.

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { SYSTEM_SHARD } from '../../protocol/ids.ts'
import { ranked, targets } from '../ring.ts'
import { seeded, settle } from '../testing/harness.ts'
import { parcelOf } from '../testing/wire-conformance.ts'
import type { Inbox, Notice, Wire } from '../wire.ts'
import { Placement } from './placement.ts'
import { FakeHost, QUIET, makeRows } from './testing/fake-host.ts'

const INBOX: Inbox = { receive: () => undefined, hear: () => undefined }
const LOOK_MS = 250

function makePlacement(shards = 3) {
  const host = new FakeHost()
  const rows = makeRows(shards)
  const { clock, state } = rows
  const chance = seeded(7)
  const told: (readonly [readonly string[], Notice, string])[] = []
  const wired: string[] = []
  const wire: Wire = {
    serve: (incarnation) => void wired.push(`serve ${incarnation}`),
    send: () => undefined,
    tell: (to, notice, from) => void told.push([to, notice, from]),
    close: (incarnation) => void wired.push(`close ${incarnation}`),
  }
  const random = (bytes: Uint8Array): void => {
    for (let i = 0; i < bytes.length; i++) bytes[i] = Math.floor(chance() * 256)
  }
  const placement = new Placement({
    control: rows.control,
    wire,
    world: { clock, random },
    log: QUIET,
    member: 'me',
    address: 'http://me',
    version: '1',
    host,
    inbox: INBOX,
  })
  /** The other members go on beating. */
  const beat = (): void => {
    for (const row of state.members.values()) {
      const lives = row.member !== 'me' && (row.state === 'up' || row.state === 'leaving')
      if (lives) state.members.set(row.member, { ...row, beat: row.beat + 1 })
    }
    clock.after(LOOK_MS, beat)
  }
  beat()
  const world = {
    placement,
    host,
    rows,
    clock,
    told,
    wired,
    owner: (shard: number, member: string, epoch: number) =>
      rows.set(shard, { owner: member, incarnation: `inc-${member}`, epoch }),
    /** Time goes on until it holds. */
    async until(what: string, holds: () => boolean, ms = 20_000): Promise<void> {
      for (let at = 0; !holds(); at += 25) {
        if (at > ms) throw new Error(`not within ${ms} ms: ${what}`)
        await clock.advance(25)
      }
    },
    async start(): Promise<void> {
      const starting = placement.start()
      await world.until('it takes part', () => placement.incarnation !== '')
      await starting
    },
    /** Two looks are over. */
    look: () => clock.advance(2 * LOOK_MS),
    /** Everything is another's, which lives. */
    async startBeside(): Promise<void> {
      rows.member('other', 'inc-other', 'up')
      for (const shard of state.shards.keys()) world.owner(shard, 'other', 4)
      await world.start()
      await world.look()
      host.did.length = 0
      told.length = 0
    },
    serves: (shard: number): boolean => host.shards.get(shard)?.state === 'serving',
    end: () => {
      placement.stop()
    },
  }
  t.teardown(() => world.end())
  return world
}

t.test('alone it takes what nobody has, its inbox first', async (t) => {
  const { placement, until, start, serves, wired, rows } = makePlacement()
  await start()
  t.same(wired, [`serve ${placement.incarnation}`])
  await until('all are served', () => [SYSTEM_SHARD, 0, 1, 2].every(serves), 3_000)
  for (const { incarnation, epoch } of rows.state.shards.values()) {
    t.same([incarnation, epoch], [placement.incarnation, 1])
  }
  t.same(placement.stats.claims, 4)
  t.equal(placement.stats.lives, 1)
})

t.test('of the dead: its own targets at once, the others by its rank', async (t) => {
  const world = makePlacement(16)
  const { rows, placement, host, clock } = world
  const names = ['a', 'b', 'me']
  rows.member('a', 'inc-a', 'up')
  rows.member('b', 'inc-b', 'up')
  rows.member('gone', 'inc-gone', 'up')
  for (const shard of rows.state.shards.keys()) world.owner(shard, 'gone', 4)
  await world.start()
  await world.look()
  t.same(host.did, [], 'its owner lives')
  rows.member('gone', 'inc-gone', 'dead')
  const diedMs = clock.monotonicMs()
  const servedMs = new Map<number, number>()
  await world.until('all are taken', () => {
    for (const shard of rows.state.shards.keys()) {
      if (world.serves(shard) && !servedMs.has(shard)) servedMs.set(shard, clock.monotonicMs())
    }
    return servedMs.size === rows.state.shards.size
  })
  const target = targets([...rows.state.shards.keys()], names)
  for (const shard of rows.state.shards.keys()) {
    const others = ranked(`shard-${shard}`, names).filter((name) => name !== target.get(shard))
    const rank = target.get(shard) === 'me' ? 0 : others.indexOf('me') + 1
    const tookMs = servedMs.get(shard)! - diedMs
    t.ok(tookMs >= rank * LIMITS.nextInRankMs - LOOK_MS, `${shard}: rank ${rank}, ${tookMs} ms`)
    t.ok(tookMs <= rank * LIMITS.nextInRankMs + 3 * LOOK_MS, `${shard}: rank ${rank}, ${tookMs} ms`)
  }
  t.ok(wiredOnce(world.wired, 'close inc-gone'))
  t.equal(host.did.filter((what) => what === 'died inc-gone').length, 1)
  t.notOk(host.did.includes(`died ${placement.incarnation}`))
})

function wiredOnce(wired: readonly string[], what: string): boolean {
  return wired.filter((one) => one === what).length === 1
}

t.test('the wait for a shard begins anew with each owner that dies', async (t) => {
  const world = makePlacement(4)
  await world.startBeside()
  const { rows, clock } = world
  const names = ['me', 'other']
  const target = targets([...rows.state.shards.keys()], names)
  const shard = [0, 1, 2, 3].find((number) => target.get(number) === 'other')!
  rows.member('x', 'inc-x', 'dead')
  rows.member('y', 'inc-y', 'dead')
  world.owner(shard, 'x', 5)
  await clock.advance(LIMITS.nextInRankMs - LOOK_MS)
  world.owner(shard, 'y', 6)
  await clock.advance(LIMITS.nextInRankMs - LOOK_MS)
  t.notOk(world.serves(shard), 'the second has not been dead for so long')
  world.owner(shard, 'other', 7)
  await world.look()
  world.owner(shard, 'y', 8)
  await clock.advance(LIMITS.nextInRankMs - LOOK_MS)
  t.notOk(world.serves(shard), 'nor has it after somebody had it in between')
  await world.until('it is taken', () => world.serves(shard), 3 * LOOK_MS)
})

t.test('a row that names this life is served; one of before, or of another, is not', async (t) => {
  const world = makePlacement()
  await world.startBeside()
  const { rows, placement, host } = world
  rows.set(1, { epoch: 5, owner: 'me', incarnation: placement.incarnation })
  await world.look()
  t.same(host.did, ['open 1', 'serving 1'])
  await world.look()
  t.same(host.did, ['open 1', 'serving 1'], 'once')
  rows.set(1, { epoch: 6 })
  await world.look()
  t.equal(host.shards.get(1)!.epoch, 6, 'a newer epoch of its own')
  host.did.length = 0
  host.shards.get(1)!.state = 'stopped'
  await world.look()
  t.equal(host.shards.get(1)!.epoch, 7, 'one that has stopped is claimed again')
})

t.test(
  'a row in somebody newer’s hands ends the tenure, but one that is being moved',
  async (t) => {
    for (const state of ['serving', 'sealed', 'claiming'] as const) {
      const world = makePlacement()
      await world.startBeside()
      const shard = world.host.served(1, 4)
      shard.state = state
      await world.look()
      t.equal(shard.state, state, 'a row of the same epoch says nothing new')
      world.owner(1, 'other', 5)
      await world.look()
      t.equal(shard.state, state === 'claiming' ? 'claiming' : 'stopped')
    }
    const world = makePlacement()
    await world.startBeside()
    const { host, placement, rows } = world
    const shard = host.served(1, 4)
    rows.set(1, { epoch: 4, owner: 'me', incarnation: placement.incarnation })
    await world.look()
    host.script.prepare = () => new Promise(() => undefined)
    placement.hear({ kind: 'hand-over', shard: 1, epoch: 4, to: 'inc-other' }, 'inc-other')
    await settle()
    t.ok(placement.handoff.underWay.has(1))
    world.owner(1, 'other', 5)
    await world.look()
    t.equal(shard.state, 'serving', 'its own handoff finds out')
  },
)

t.test('claims run eight side by side, one a shard', async (t) => {
  const world = makePlacement(20)
  const { host } = world
  let claiming = 0
  let most = 0
  let let_go: (() => void)[] = []
  host.script.claim = async () => {
    most = Math.max(most, ++claiming)
    await new Promise<void>((resolve) => void let_go.push(resolve))
    claiming--
  }
  await world.start()
  await world.until('as many as may', () => claiming === LIMITS.claimsInFlightMax)
  await world.look()
  t.equal(claiming, LIMITS.claimsInFlightMax)
  const opened = host.did.filter((what) => what.startsWith('open'))
  t.equal(new Set(opened).size, opened.length, 'no shard twice')
  for (let i = 0; i < 40 && host.did.filter((d) => d.startsWith('serving')).length < 21; i++) {
    for (const go of let_go.splice(0)) go()
    let_go = []
    await world.clock.advance(25)
  }
  t.equal(host.did.filter((what) => what.startsWith('serving')).length, 21)
  t.equal(most, LIMITS.claimsInFlightMax)
})

t.test('a claim that fails is tried again', async (t) => {
  const world = makePlacement()
  const { host } = world
  let failures = 2
  host.script.claim = () =>
    failures-- > 0 ? Promise.reject(new Error('as asked')) : Promise.resolve()
  await world.start()
  await world.until('all are served', () => [SYSTEM_SHARD, 0, 1, 2].every(world.serves), 3_000)
  const raised = [...world.rows.state.shards.values()].filter(({ epoch }) => epoch === 2)
  t.equal(raised.length, 2, 'in an epoch in which nothing was sent')
})

t.test('routes: as rows and answers say, to nobody who is dead', async (t) => {
  const world = makePlacement()
  await world.startBeside()
  const { placement, rows } = world
  t.match(placement.route(1), { incarnation: 'inc-other', epoch: 4 })
  t.equal(placement.route(99), null)
  rows.member('third', 'inc-third', 'up')
  await world.look()
  placement.learn(1, { incarnation: 'inc-third', epoch: 6 })
  t.match(placement.route(1), { incarnation: 'inc-third', epoch: 6 })
  placement.learn(1, { incarnation: 'inc-other', epoch: 5 })
  t.match(placement.route(1), { incarnation: 'inc-third' }, 'the newest counts')
  rows.member('third', 'inc-third', 'dead')
  await world.look()
  t.equal(placement.route(1), null)
})

t.test('somebody newer is heard of: the rows are looked at, and they decide', async (t) => {
  const world = makePlacement()
  await world.startBeside()
  const { placement, host, rows } = world
  rows.set(1, { epoch: 5, owner: 'me', incarnation: placement.incarnation })
  await world.look()
  const shard = host.shards.get(1)!
  world.owner(1, 'other', 6)
  placement.learn(1, { incarnation: 'inc-other', epoch: 6 })
  await settle()
  t.equal(shard.state, 'stopped', 'at once, not with the next look')
})

t.test('a parcel is taken from whom a fresh view shows alive', async (t) => {
  const world = makePlacement()
  await world.startBeside()
  const { placement, rows, clock } = world
  const from = (incarnation: string) => placement.admits(parcelOf(incarnation))
  t.equal(from(placement.incarnation), true)
  t.equal(from('inc-other'), true)
  const unknown = from('inc-new')
  t.not(unknown, true)
  t.equal(await unknown, false)
  rows.member('new', 'inc-new', 'leaving')
  t.equal(await from('inc-new'), true, 'the rows are read for it')
  rows.member('new', 'inc-new', 'dead')
  await world.look()
  t.equal(await from('inc-new'), false)
  // Rows that were read too long ago prove nothing.
  rows.isAway = true
  const { readAtMs } = placement.membership.view!
  await clock.advance(LIMITS.leaseMs - (clock.monotonicMs() - readAtMs))
  t.equal(from('inc-other'), true)
  await clock.advance(1)
  const old = from('inc-other')
  t.not(old, true)
  await clock.advance(5_000)
  t.equal(await old, false)
})

t.test('others are all that were seen alive, but this life', async (t) => {
  const world = makePlacement()
  await world.startBeside()
  world.rows.member('goes', 'inc-goes', 'leaving')
  world.rows.member('left', 'inc-left', 'left')
  await world.look()
  t.same([...world.placement.others()].toSorted(), ['inc-goes', 'inc-other'])
})

t.test('hand over: only in that epoch, to another that is up, under a lease', async (t) => {
  const world = makePlacement()
  await world.startBeside()
  const { placement, host, rows } = world
  const mine = placement.incarnation
  rows.set(1, { epoch: 5, owner: 'me', incarnation: mine })
  await world.look()
  host.did.length = 0
  const ask = async (epoch: number, to: string): Promise<boolean> => {
    placement.hear({ kind: 'hand-over', shard: 1, epoch, to }, 'inc-other')
    await settle()
    return host.did.splice(0).includes('prepare 1')
  }
  t.notOk(await ask(4, 'inc-other'))
  t.notOk(await ask(6, 'inc-other'))
  t.notOk(await ask(5, mine))
  t.notOk(await ask(5, 'inc-nobody'))
  rows.member('leaver', 'inc-leaver', 'leaving')
  t.notOk(await ask(5, 'inc-leaver'))
  rows.member('new', 'inc-new', 'up')
  host.script.prepare = () => new Promise(() => undefined)
  t.ok(await ask(5, 'inc-new'), 'the pacer has seen it first: the rows are read')
})

t.test('expect: opened where nothing is served or on its way', async (t) => {
  const world = makePlacement()
  await world.startBeside()
  const { placement, host, told } = world
  placement.hear({ kind: 'expect', shard: 1, epoch: 5 }, 'inc-other')
  await settle()
  t.same(host.did.splice(0), ['open 1'])
  t.same(told.splice(0), [
    [['inc-other'], { kind: 'ready', shard: 1, epoch: 5 }, placement.incarnation],
  ])
  placement.hear({ kind: 'expect', shard: 1, epoch: 5 }, 'inc-other')
  host.served(2, 4)
  placement.hear({ kind: 'expect', shard: 2, epoch: 5 }, 'inc-other')
  await settle()
  t.same([host.did, told], [[], []])
})

t.test('handed: served at its word; before it the row alone is waited with', async (t) => {
  const world = makePlacement()
  await world.startBeside()
  const { placement, host, rows } = world
  const mine = placement.incarnation
  placement.hear({ kind: 'expect', shard: 1, epoch: 5 }, 'inc-other')
  await settle()
  const opened = host.shards.get(1)!
  rows.set(1, { epoch: 5, owner: 'me', incarnation: mine })
  await placement.membership.refresh()
  await settle()
  t.equal(opened.state, 'claiming', 'the owner before closes the log meanwhile')
  const end = { segment: 1, base: 0, head: 7, flush: 7 }
  placement.hear({ kind: 'handed', shard: 1, epoch: 5, end } as unknown as Notice, 'inc-other')
  await settle()
  t.match(opened, { state: 'serving', epoch: 5 })
  t.match(opened.claims, [{ tenure: { epoch: 5, segment: 1, end } }])
})

t.test('handed, and the word is lost: served all the same', async (t) => {
  const world = makePlacement()
  await world.startBeside()
  const { placement, host, rows } = world
  placement.hear({ kind: 'expect', shard: 1, epoch: 5 }, 'inc-other')
  rows.set(1, { epoch: 5, owner: 'me', incarnation: placement.incarnation })
  await world.until('it is served', () => world.serves(1), 1_000)
  t.match(host.shards.get(1), { epoch: 5 })
})

t.test('a notice that a shard is served: believed, and the pacer looks on', async (t) => {
  const world = makePlacement()
  await world.startBeside()
  const { placement, host } = world
  placement.hear({ kind: 'owns', shard: 1, epoch: 9 }, 'inc-other')
  t.match(placement.route(1), { incarnation: 'inc-other', epoch: 9 })
  placement.hear({ kind: 'retry-parked' }, 'inc-other')
  placement.hear({ kind: 'system', first: 1, entries: [] }, 'inc-other')
  t.same(host.did, ['retry parked', 'pushed'])
})

t.test('a member has stopped: the rows are looked at now', async (t) => {
  const world = makePlacement()
  await world.startBeside()
  const { placement, host, rows } = world
  rows.member('other', 'inc-other', 'left')
  placement.hear({ kind: 'stopped' }, 'inc-other')
  await settle()
  t.ok(host.did.includes('died inc-other'))
})

t.test('a shard that has stepped down: the row says whose it is, at once', async (t) => {
  const world = makePlacement()
  await world.startBeside()
  const { placement, host, rows } = world
  rows.set(1, { epoch: 5, owner: 'me', incarnation: placement.incarnation })
  await world.look()
  host.shards.get(1)!.state = 'stopped'
  placement.steppedDown(1, 'as asked')
  await settle()
  t.match(host.shards.get(1), { state: 'serving', epoch: 6 })
})

t.test('a re-claim raises the epoch, which is not served a second time', async (t) => {
  const world = makePlacement()
  await world.startBeside()
  const { placement, host, rows } = world
  rows.set(1, { epoch: 5, owner: 'me', incarnation: placement.incarnation, segment: 3 })
  await world.look()
  t.same(await placement.reclaim(1), { epoch: 6, segment: 3 })
  host.shards.get(1)!.state = 'stopped'
  await world.look()
  t.equal(host.shards.get(1)!.epoch, 7)
  t.equal(await placement.reclaim(2), null, 'another has that')
})

t.test('declared dead: nothing of that life is left, and another begins', async (t) => {
  const world = makePlacement()
  await world.startBeside()
  const { placement, host, rows, wired } = world
  const old = placement.incarnation
  rows.set(1, { epoch: 5, owner: 'me', incarnation: old })
  await world.look()
  host.did.length = 0
  const row = rows.state.members.get('me')!
  rows.state.members.set('me', { ...row, state: 'dead' })
  await world.until('it is another life', () => ![old, ''].includes(placement.incarnation))
  t.ok(host.did.includes('abandon'))
  t.notOk(host.did.includes(`died ${old}`), 'its own end it knows')
  t.ok(wiredOnce(wired, `close ${old}`) && wired.includes(`serve ${placement.incarnation}`))
  t.equal(placement.stats.lives, 2)
  await world.until('its row is served', () => world.serves(1))
  t.match(rows.state.shards.get(1), { epoch: 6, incarnation: placement.incarnation })
})

t.test('leaving: nobody’s target, its shards go over, then it says so', async (t) => {
  const world = makePlacement()
  await world.startBeside()
  const { placement, host, rows, told, clock } = world
  const mine = placement.incarnation
  for (const shard of [0, 1, 2]) {
    rows.set(shard, { epoch: 5, owner: 'me', incarnation: mine })
  }
  await world.look()
  host.did.length = 0
  let left = false
  let most = 0
  host.script.seal = async () => {
    most = Math.max(most, placement.handoff.underWay.size)
    await new Promise<void>((resolve) => void clock.after(20, resolve))
    return true
  }
  host.pendingRequests = 1
  void placement.leave(60_000).then(() => (left = true))
  await settle()
  t.equal(rows.state.members.get('me')!.state, 'leaving')
  const isOver = (): boolean => [0, 1, 2].every((n) => rows.state.shards.get(n)!.owner === 'other')
  await world.until('they are signed over', isOver, 10_000)
  t.equal(most, LIMITS.handoffsInFlightMax, 'two side by side')
  await clock.advance(LIMITS.moveServedMs * 2)
  t.equal(rows.state.members.get('me')!.state, 'leaving', 'a request is open yet')
  host.pendingRequests = 0
  await world.until('it has left', () => left, 5_000)
  t.equal(rows.state.members.get('me')!.state, 'left')
  t.match(told.at(-1), [['inc-other'], { kind: 'stopped' }, mine])
})

t.test('leaving waits a second for the word that its shards are served', async (t) => {
  const world = makePlacement()
  await world.startBeside()
  const { placement, rows, clock } = world
  rows.set(1, { epoch: 5, owner: 'me', incarnation: placement.incarnation })
  await world.look()
  let leftMs = 0
  const leave = (): void => void placement.leave(60_000).then(() => (leftMs = clock.monotonicMs()))
  leave()
  await world.until('signed over', () => rows.state.shards.get(1)!.owner === 'other', 10_000)
  const signedMs = clock.monotonicMs()
  await clock.advance(LIMITS.moveServedMs / 2)
  t.equal(leftMs, 0)
  placement.hear({ kind: 'owns', shard: 1, epoch: 6 }, 'inc-other')
  await world.until('it has left', () => leftMs > 0, LIMITS.moveServedMs)
  t.ok(leftMs - signedMs < LIMITS.moveServedMs, 'at that word')
})

t.test('leaving with nobody to take its shards: they are sealed, and it leaves', async (t) => {
  const world = makePlacement()
  await world.start()
  await world.until('all are served', () => [SYSTEM_SHARD, 0, 1, 2].every(world.serves))
  let left = false
  void world.placement.leave(3_000).then(() => (left = true))
  await world.until('it has left', () => left, 5_000)
  t.ok([SYSTEM_SHARD, 0, 1, 2].every((n) => world.host.shards.get(n)!.state === 'sealed'))
})

t.test('overview: who has what, and what is still to move', async (t) => {
  const world = makePlacement()
  t.same(world.placement.overview(), { members: [], shards: [], moves: [] })
  await world.startBeside()
  const { placement, rows } = world
  rows.member('gone', 'inc-gone', 'dead')
  const { members, shards, moves } = placement.overview()
  t.same(members.map(({ member }) => member).toSorted(), ['me', 'other'])
  t.ok(shards.every(({ owner, epoch }) => owner === 'other' && epoch === 4))
  t.ok(moves.length > 0)
  t.ok(moves.every(({ from, to }) => from === 'other' && to === 'me'))
  world.owner(1, 'gone', 5)
  await placement.membership.refresh()
  t.equal(placement.overview().shards.find(({ shard }) => shard === 1)!.owner, null)
  t.same(placement.overview().moves, [], 'claims come first')
})
