// Members die, and stand still: what was acknowledged stays, what was not is done once or not at
// all, and somebody else serves in time. Source: PROTOCOL 4.2 (F1-F4), ARCHITECTURE 8 "takeover".

import t from 'tap'
import { tick, until } from '../harness/patience.ts'
import { AppendPicker } from './harness/cassandra-frames.ts'
import { faults } from './scene.ts'

/** Until every shard answers over every member that is left. */
const TAKEOVER_MS = 5_000
/**
 * Lease and death (config/limits.ts): a member that stands still for longer has lost its shards.
 */
const PAST_DEATH_MS = 4_000

const INDEX_MS = 120_000

// Those first that leave requests whose outcome nobody knows: their time is over before the end.
faults(t, {
  'stands still past its death, and goes on': async ({ took, cluster, probes }) => {
    for (let round = 0; round < 2; round++) {
      const sleeper = await cluster.ownerOfMost()
      cluster.freeze(sleeper)
      const ms = await probes.allAnswer()
      took(ms, TAKEOVER_MS, `${sleeper} stands still: every shard answers after`)
      await tick(PAST_DEATH_MS)
      cluster.thaw(sleeper)
      const began = performance.now()
      await until(`${sleeper} is a member again`, () => cluster.member(sleeper).isReady())
      took(performance.now() - began, TAKEOVER_MS, 'it is a member again after')
    }
  },

  'stands still around its lease, again and again': async ({ t, cluster }) => {
    const before = await cluster.epochs()
    const pauses = [1_000, 1_500, 1_900, 2_100, 2_600, 3_000]
    for (const [i, ms] of pauses.entries()) {
      const name = ['a', 'b', 'c'][i % 3]!
      cluster.freeze(name)
      await tick(ms)
      cluster.thaw(name)
      await tick(500)
    }
    await cluster.settled()
    const after = await cluster.epochs()
    const raised = after.map((epoch, shard) => epoch - before[shard]!)
    t.ok(
      Math.max(...raised) <= pauses.length * 2,
      `no storm of claims: epochs rose by ${raised.join()}`,
    )
  },

  'kill -9, with three members and then with two': async ({ took, cluster, probes }) => {
    for (const left of [2, 1]) {
      const victim = await cluster.ownerOfMost()
      await cluster.kill(victim)
      const ms = await probes.allAnswer()
      took(ms, TAKEOVER_MS, `${victim} died, ${left} left: every shard answers after`)
    }
    for (const [name, { isUp }] of cluster.members) if (!isUp) await cluster.start(name)
  },

  'killed, and started again at once': async ({ took, cluster, probes }) => {
    for (const name of ['a', 'b', 'c']) {
      await cluster.kill(name)
      const began = performance.now()
      await cluster.start(name)
      await probes.allAnswer()
      took(performance.now() - began, TAKEOVER_MS, `${name} serves again after`)
    }
  },

  'killed with an append on its way': async ({ took, cluster, probes }) => {
    // Applied but unheard, and then not yet applied: it arrives when its sender is long dead.
    for (const side of ['answers', 'requests'] as const) {
      const victim = await cluster.ownerOfMost()
      const way = cluster.member(victim).ways.cassandra
      const picker = new AppendPicker()
      if (side === 'answers') way.hold('requests', picker.mark)
      way.hold(side, side === 'answers' ? picker.answers : picker.requests)
      await until('appends are on their way', () => picker.seen >= 3)
      await cluster.kill(victim)
      const ms = await probes.allAnswer()
      took(ms, TAKEOVER_MS, `${side} of ${victim} held: every shard answers after`)
      // What the dead one had sent arrives at a log that has another owner.
      way.heal()
      await cluster.start(victim)
    }
  },

  'killed after it was asked to make the index anew': async ({ t, cluster, probes }) => {
    const path = '/resources/cluster/index'
    const victim = await cluster.ownerOfMost()
    const other = [...cluster.members.values()].find(({ isUp, name }) => isUp && name !== victim)!
    const state = async (): Promise<unknown> => (await other.ask(path)).json()['state']
    t.equal((await cluster.member(victim).ask(path, { method: 'POST' })).status, 202)
    t.equal(await state(), 'filling', 'another tells of it')
    await cluster.kill(victim)
    await until('it is made anew', async () => (await state()) === 'idle', INDEX_MS)
    await probes.allAnswer()
    await cluster.start(victim)
  },
})
