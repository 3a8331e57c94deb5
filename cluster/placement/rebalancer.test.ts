// The rebalancer: each move is asked for once, few at a time, none to who has just begun.

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import type { MemberRow, ShardRow } from '../../storage/control.ts'
import { makeView } from '../membership/view.ts'
import type { ClusterView } from '../membership/view.ts'
import { ranked } from '../ring.ts'
import { TestClock } from '../testing/harness.ts'
import { movesAtOnce, movesDue } from './moves.ts'
import type { Move } from './moves.ts'
import { Rebalancer } from './rebalancer.ts'

const NAMES = ['a', 'b', 'c']
const [REBALANCER] = ranked('pacer', NAMES)
const SHARDS = 60

function makeRebalancer(settled = true) {
  const clock = new TestClock()
  const asked: Move[] = []
  const silent = new Set<string>()
  const isBeating = (incarnation: string): boolean => !silent.has(incarnation)
  const requestMove = (move: Move): void => void asked.push(move)
  const rebalancer = new Rebalancer({ clock, member: REBALANCER!, isBeating, requestMove })
  /** One shard has it all: two thirds of the shards are to move. */
  const rows = new Map<number, ShardRow>()
  for (let shard = 0; shard < SHARDS; shard++) {
    rows.set(shard, { shard, epoch: 1, owner: 'a', incarnation: 'inc-a', segment: 1 })
  }
  const view = (names: readonly string[] = NAMES): ClusterView => {
    const members = names.map((member): MemberRow => {
      return {
        member,
        incarnation: `inc-${member}`,
        state: 'up',
        beat: 1,
        address: '',
        version: '',
      }
    })
    return makeView({ readAtMs: clock.monotonicMs(), shards: [...rows.values()], members })
  }
  const look = (names?: readonly string[]): readonly number[] => {
    asked.length = 0
    rebalancer.look(view(names))
    return asked.map(({ shard }) => shard)
  }
  const alive = (...names: string[]): void =>
    rebalancer.living(new Set(names.map((name) => `inc-${name}`)))
  const start = async (): Promise<void> => {
    alive(...NAMES)
    if (settled) await clock.advance(LIMITS.placement.moveSettleMs)
  }
  const due = (): readonly number[] => movesDue(view()).map(({ shard }) => shard)
  return { clock, asked, rebalancer, rows, view, look, alive, start, due, silent }
}

const AT_ONCE = movesAtOnce(SHARDS)

t.test('each move is asked for once, few at a time, the lowest shards first', async (t) => {
  const { look, start, due, rebalancer, asked, view } = makeRebalancer()
  await start()
  const wanted = due()
  t.ok(AT_ONCE > 1 && wanted.length > 4 * AT_ONCE)
  t.same(
    wanted,
    wanted.toSorted((one, other) => one - other),
  )
  const first = look()
  t.same(first, wanted.slice(0, AT_ONCE))
  t.same(asked, movesDue(view()).slice(0, AT_ONCE))
  t.same(look(), [], 'they are under way')
  for (const shard of wanted) t.equal(rebalancer.isMoving(shard), first.includes(shard))
})

t.test('who is said to serve makes room for the next', async (t) => {
  const { look, start, due, rebalancer, rows, asked } = makeRebalancer()
  await start()
  const wanted = due()
  const [first] = look()
  const { to } = asked[0]!
  rebalancer.moved(first!)
  t.notOk(rebalancer.isMoving(first!))
  rows.set(first!, { ...rows.get(first!)!, epoch: 2, owner: to.slice(4), incarnation: to })
  const next = look()
  t.equal(next.length, 1)
  t.ok(wanted.includes(next[0]!) && next[0] !== first)
})

t.test('a row of another epoch is the end of its move, whoever has it now', async (t) => {
  const { look, start, rows, rebalancer } = makeRebalancer()
  await start()
  const [first, second] = look()
  rows.set(first!, { ...rows.get(first!)!, epoch: 2 })
  t.same(look(), [first], 'it is due still, in its new epoch')
  rows.delete(second!)
  look()
  t.notOk(rebalancer.isMoving(second!), 'a row that is gone')
})

t.test('what has not happened in its time is asked for again', async (t) => {
  const { look, start, clock } = makeRebalancer()
  await start()
  const first = look()
  await clock.advance(LIMITS.placement.moveMs)
  t.same(look(), [], 'its time is not over')
  await clock.advance(1)
  t.same(look(), first)
  await clock.advance(LIMITS.placement.moveMs)
  t.same(look(), [], 'it counts from when it was asked for last')
})

t.test('nothing is moved to who has just begun, as its first sight says', async (t) => {
  const { look, alive, clock, due, view } = makeRebalancer(false)
  t.same(look(), [], 'of nobody it is known')
  alive('a', 'b')
  await clock.advance(LIMITS.placement.moveSettleMs - 1)
  alive('a', 'b', 'c')
  t.same(look(), [])
  await clock.advance(1)
  const toB = movesDue(view()).filter(({ to }) => to === 'inc-b')
  t.same(
    look(),
    toB.slice(0, AT_ONCE).map(({ shard }) => shard),
    'b is ready, c is not',
  )
  t.ok(due().length > toB.length)
  // Who was away begins anew; who is seen again and again does not.
  alive('a', 'c')
  alive('a', 'b', 'c')
  await clock.advance(LIMITS.placement.moveSettleMs - 1)
  t.same(look(), [])
})

t.test('nothing is moved to who is up by its row alone', async (t) => {
  const { look, start, due, silent, view } = makeRebalancer()
  await start()
  silent.add('inc-b')
  const toC = movesDue(view()).filter(({ to }) => to === 'inc-c')
  t.ok(due().length > toC.length)
  t.same(
    look(),
    toC.slice(0, AT_ONCE).map(({ shard }) => shard),
  )
  for (const name of NAMES) silent.add(`inc-${name}`)
  t.same(look(['a', 'c', REBALANCER!]), [], 'nobody was heard of')
})

t.test('an incarnation that ended and is seen again has begun anew', async (t) => {
  const { look, alive, clock } = makeRebalancer(false)
  alive(...NAMES)
  await clock.advance(LIMITS.placement.moveSettleMs)
  alive('a')
  alive(...NAMES)
  await clock.advance(LIMITS.placement.moveSettleMs - 1)
  t.same(look(), [])
  await clock.advance(1)
  t.equal(look().length, AT_ONCE)
})

t.test(
  'who is not the rebalancer asks for nothing, and forgets what it has asked for',
  async (t) => {
    const { look, start, rebalancer } = makeRebalancer()
    await start()
    const first = look()
    const others = NAMES.filter((name) => name !== REBALANCER)
    t.same(look(others), [])
    t.notOk(rebalancer.isMoving(first[0]!))
    t.same(look(), first, 'it is the rebalancer again')
    rebalancer.reset()
    t.same(look(), first, 'another incarnation has asked for nothing')
  },
)
