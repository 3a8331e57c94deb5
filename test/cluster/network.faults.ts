// The network between one member and one engine: answers that are never heard, requests that arrive
// late, cuts of one side or both, slowness. Nothing is acknowledged before its outcome is known, a
// member that has lost its lease is silent, and somebody else serves. Source: PROTOCOL 3.2, 3.3,
// 4.2 (F13, F14, F16).

import t from 'tap'
import { tick, until } from '../harness/patience.ts'
import { AppendPicker } from './harness/cassandra-frames.ts'
import { faults } from './scene.ts'
import type { Scene } from './scene.ts'

const TAKEOVER_MS = 5_000
const BACK_MS = 10_000
/** Beyond what a member waits for an outcome before it tells its callers that it is unknown. */
const LATE_MS = 5_000

/** Until a wire that is down counts, and its member has given its shards back. */
const CUT_OFF_MS = 20_000

/** One member loses an engine: it is not ready, the others take over, it comes back. */
async function away(
  { took, cluster, probes }: Scene,
  what: string,
  harm: (name: string) => void,
  withinMs = TAKEOVER_MS,
): Promise<void> {
  const victim = await cluster.ownerOfMost()
  const member = cluster.member(victim)
  const began = performance.now()
  harm(victim)
  member.isLeaving = true
  // For as long as its lease lasts it answers reads.
  await until(`${what}: ${victim} is not ready`, async () => !(await member.isReady()))
  await probes.allAnswer()
  const tookMs = performance.now() - began
  took(tookMs, withinMs, `${what}: every shard answers over the others after`)
  cluster.heal(victim)
  member.isLeaving = false
  await cluster.settled()
}

faults(t, {
  'appends that apply, and nobody hears': async ({ took, cluster, load, probes }) => {
    for (const name of ['a', 'b', 'c']) {
      const way = cluster.member(name).ways.cassandra
      const picker = new AppendPicker()
      way.hold('requests', picker.mark)
      way.hold('answers', picker.answers)
      await until('appends have gone through', () => picker.seen >= 2)
      // The connection breaks with the answers in it: only the store knows.
      way.break()
      way.heal()
      took(await probes.allAnswer(), BACK_MS, `${name} knows again after`)
    }
    const done = load.done
    await until('the load goes on', () => load.done > done + 50)
  },

  'appends that apply five seconds later': async ({ took, cluster, probes }) => {
    for (const name of ['a', 'b']) {
      const way = cluster.member(name).ways.cassandra
      const picker = new AppendPicker()
      way.hold('requests', picker.requests)
      await until('appends are held', () => picker.seen >= 2)
      await tick(LATE_MS)
      way.heal()
      took(await probes.allAnswer(), BACK_MS, `${name} serves again after`)
    }
  },

  'a member without Cassandra': async (scene) => {
    const { cluster } = scene
    await away(scene, 'nothing passes', (name) => cluster.cut(name, 'cassandra'))
    await away(scene, 'its beats arrive, the answers do not', (name) =>
      cluster.cut(name, 'cassandra', 'answers'),
    )
    await away(scene, 'it hears, and is not heard', (name) =>
      cluster.cut(name, 'cassandra', 'requests'),
    )
    await away(scene, 'connections are refused', (name) =>
      cluster.member(name).ways.cassandra.refuse(),
    )
  },

  'a member without Redis': async ({ took, cluster, probes }) => {
    const victim = await cluster.ownerOfMost()
    const member = cluster.member(victim)
    for (const side of ['both', 'answers'] as const) {
      cluster.cut(victim, 'redis', side)
      await tick(3_000)
      cluster.heal(victim)
      took(
        await probes.allAnswer(),
        BACK_MS,
        `${side}: every shard answers over every member after`,
      )
    }
    member.ways.redis.refuse()
    await tick(2_000)
    cluster.heal(victim)
    took(await probes.allAnswer(), BACK_MS, `refused: every shard answers over every member after`)
  },

  'a member without Redis for long': async (scene) => {
    const refuse = (name: string): void => scene.cluster.member(name).ways.redis.refuse()
    await away(scene, 'its wire is down', refuse, CUT_OFF_MS)
  },

  'a slow store, and slow wires': async ({ t, cluster, load }) => {
    const before = await cluster.epochs()
    cluster.delay('a', 'cassandra', 150)
    cluster.delay('b', 'redis', 300)
    cluster.delay('c', 'elasticsearch', 500)
    const done = load.done
    await until('the load goes on', () => load.done > done + 200)
    const after = await cluster.epochs()
    t.same(after, before, 'slowness moves no shard')
    cluster.heal()
  },
})
