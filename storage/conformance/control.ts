// The one suite that every store of control rows passes: who lives and who owns, changed by
// conditional statements alone. The port is storage/control.ts. A twin may be trusted because it
// passes what the real one passes. Source: PROTOCOL 3.0, 3.3, 3.5.

import type { Test } from 'tap'
import { NIL_INCARNATION, type ControlStore, type MemberRow } from '../control.ts'
import { freshUuid } from './journal-samples.ts'

/** Makes the control rows of a store of `shards` shards; ends it with `t.teardown`. */
export type MakeControl = (t: Test, shards: number) => Promise<ControlStore>

function memberNamed(member: string, more: Partial<MemberRow> = {}): MemberRow {
  return {
    member,
    incarnation: freshUuid(),
    state: 'up',
    beat: 0,
    address: 'http://127.0.0.1:8080',
    version: '0.1.0',
    ...more,
  }
}

export function controlConformance(t: Test, makeControl: MakeControl): void {
  void t.test('members', (s) => members(s, makeControl))
  void t.test('conditions on members', (s) => memberConditions(s, makeControl))
  void t.test('shards', (s) => shards(s, makeControl))
  void t.test('two racers', (s) => racers(s, makeControl))
}

async function members(t: Test, makeControl: MakeControl): Promise<void> {
  const control = await makeControl(t, 2)
  t.same(await control.members(), [])
  t.equal(await control.member('a'), null)
  const a = memberNamed('a')
  const b = memberNamed('b', { state: 'left', beat: 7, address: '', version: '0.2.0-ü' })
  t.equal(await control.insertMember(a), 'applied')
  t.equal(await control.insertMember(b), 'applied')
  t.same(await control.member('a'), a)
  t.same([...(await control.members())].sort(byName), [a, b])
  t.equal(await control.insertMember({ ...a, incarnation: freshUuid() }), 'refused')
  t.same(await control.member('a'), a, 'a name that is taken stays as it is')
  const { incarnation } = a
  const where = { incarnation, beat: 0, state: 'up' } as const
  t.equal(await control.updateMember('a', { beat: 1 }, where), 'applied')
  t.same(await control.member('a'), { ...a, beat: 1 }, 'what is not named stays')
  const leaving = { incarnation: freshUuid(), state: 'leaving', beat: 0, address: 'x' } as const
  t.equal(await control.updateMember('a', leaving, { incarnation }), 'applied')
  t.same(await control.member('a'), { ...a, ...leaving })
  t.same(await control.member('b'), b, 'others stay')
  for (const wire of ['down', 'up'] as const) {
    t.equal(await control.updateMember('b', { wire }, { incarnation: b.incarnation }), 'applied')
    t.same(await control.member('b'), { ...b, wire })
  }
  const cut = memberNamed('cut', { wire: 'down' })
  t.equal(await control.insertMember(cut), 'applied')
  t.same(await control.member('cut'), cut)
}

async function memberConditions(t: Test, makeControl: MakeControl): Promise<void> {
  const control = await makeControl(t, 2)
  const row = memberNamed('a', { beat: 5 })
  t.equal(await control.insertMember(row), 'applied')
  const { incarnation } = row
  const other = freshUuid()
  for (const where of [
    { incarnation: other },
    { incarnation: other, beat: 5, state: 'up' },
    { incarnation, beat: 4 },
    { incarnation, beat: 6 },
    { incarnation, state: 'leaving' },
    { incarnation, beat: 5, state: 'dead' },
    { incarnation, beat: 4, state: 'up' },
  ] as const) {
    t.equal(await control.updateMember('a', { beat: 9 }, where), 'refused', JSON.stringify(where))
    t.same(await control.member('a'), row)
  }
  const there = { incarnation, beat: 5, state: 'up' } as const
  t.equal(await control.updateMember('none', { beat: 6 }, there), 'refused')
  t.equal(await control.member('none'), null, 'a change makes no member')
  t.equal(await control.updateMember('a', { state: 'dead' }, there), 'applied')
  t.equal(await control.updateMember('a', { beat: 6 }, there), 'refused', 'a beat after death')
}

async function shards(t: Test, makeControl: MakeControl): Promise<void> {
  const control = await makeControl(t, 4)
  const rows = await control.shards()
  t.same(
    rows.map(({ shard }) => shard),
    [-1, 0, 1, 2, 3],
  )
  const fresh = { epoch: 0, owner: '', incarnation: NIL_INCARNATION, segment: 1 }
  t.same(rows[0], { shard: -1, ...fresh })
  t.same(await control.shard(3), { shard: 3, ...fresh })
  const to = { epoch: 1, owner: 'a', incarnation: freshUuid() }
  const where = { epoch: 0, incarnation: NIL_INCARNATION }
  t.equal(await control.updateShard(3, to, { ...where, epoch: 1 }), 'refused')
  t.equal(await control.updateShard(3, to, { ...where, incarnation: freshUuid() }), 'refused')
  t.same(await control.shard(3), { shard: 3, ...fresh })
  t.equal(await control.updateShard(3, to, where), 'applied')
  t.same(await control.shard(3), { shard: 3, ...to, segment: 1 })
  t.equal(await control.updateShard(3, to, where), 'refused', 'the same once more')
  t.equal(await control.hintSegment(3, 2, { epoch: 0 }), 'refused')
  t.equal(await control.hintSegment(3, 2, { epoch: 1 }), 'applied')
  t.same(await control.shard(3), { shard: 3, ...to, segment: 2 })
  const next = { ...to, epoch: 2 }
  t.equal(await control.updateShard(3, next, to), 'applied')
  t.same(await control.shard(3), { shard: 3, ...next, segment: 2 }, 'a new owner keeps the hint')
  t.same(await control.shard(2), { shard: 2, ...fresh }, 'others stay')
  t.equal(await control.updateShard(-1, to, where), 'applied')
  t.same(
    (await control.shards()).map(({ epoch }) => epoch),
    [1, 0, 0, 0, 2],
  )
}

/** Of several that change the same row on the same condition one is applied. */
async function racers(t: Test, makeControl: MakeControl): Promise<void> {
  const control = await makeControl(t, 2)
  const joins = await Promise.all(
    [1, 2, 3, 4].map((beat) => control.insertMember(memberNamed('m', { beat }))),
  )
  t.equal(joins.filter((outcome) => outcome === 'applied').length, 1)
  const row = (await control.member('m'))!
  t.equal(joins[row.beat - 1], 'applied', 'the one that is there')
  const where = { epoch: 0, incarnation: NIL_INCARNATION }
  const claims = await Promise.all(
    ['a', 'b', 'c', 'd'].map((owner) =>
      control.updateShard(0, { epoch: 1, owner, incarnation: freshUuid() }, where),
    ),
  )
  t.equal(claims.filter((outcome) => outcome === 'applied').length, 1)
  const { owner } = await control.shard(0)
  t.equal(claims['abcd'.indexOf(owner)], 'applied')
}

function byName(a: MemberRow, b: MemberRow): number {
  return a.member < b.member ? -1 : 1
}
