// Planned moves fail no request: a member joins, a member leaves, each is restarted in turn, under
// load, whichever member is asked. Source: PROTOCOL 3.8, 4.2 (F24, F25); ARCHITECTURE 3 (promise
// 5).

import t from 'tap'
import { tick } from '../harness/patience.ts'
import { pauses, quantile } from './probes.ts'
import { faults } from './scene.ts'
import type { Scene } from './scene.ts'

/** p99 of the silence of a shard that moves. */
const PAUSE_MS = 250
const TAKEOVER_MS = 5_000

/** A member that ends takes no new connections: its load balancer goes elsewhere. */
const ELSEWHERE = 'ECONNREFUSED'

/** What was asked from here on. */
function watched({ load, probes, cluster }: Scene): {
  readonly at: number
  readonly looks: number
} {
  const from = { at: load.now(), looks: probes.looks.length }
  probes.watch(() => cluster.doors)
  return from
}

/** No request that came to a member, the one that ends included, was refused or lost. */
async function checkMoves(
  { t, took, load, probes }: Scene,
  from: ReturnType<typeof watched>,
): Promise<void> {
  const looks = (await probes.stop()).slice(from.looks)
  const attempts = load.between(from.at, load.now())
  const failed = attempts.filter(({ outcome, how }) => outcome !== 'ok' && how !== ELSEWHERE)
  const text = failed.slice(0, 5).map(({ op, member, how }) => `${op} over ${member}: ${how}`)
  t.equal(failed.length, 0, `${attempts.length} requests, none failed; ${text.join(', ')}`)
  const odd = looks.filter(({ how }) => how !== '200' && how !== ELSEWHERE)
  t.equal(odd.length, 0, `${looks.length} looks, none failed; ${odd[0]?.how ?? ''}`)
  const silent = pauses(looks)
  t.equal(silent.size, probes.count, 'every shard was looked at')
  took(quantile(silent.values(), 0.99), PAUSE_MS, 'p99 of the pauses of shards')
}

faults(t, {
  'a member joins, and leaves again': async (scene) => {
    const { t, took, cluster } = scene
    const from = watched(scene)
    await cluster.addMember('d')
    await cluster.settled()
    await tick(1_000)
    t.equal(await cluster.stop('d'), 0, 'it ends with 0')
    await cluster.settled()
    await checkMoves(scene, from)
    for (const { name, node } of cluster.up) {
      const p99 = await node.metric('kontor_handoff_pause_seconds_p99')
      took(p99 * 1_000, PAUSE_MS, `${name} says that it sealed shards for`)
    }
  },

  'each is restarted in turn': async (scene) => {
    const { t, cluster } = scene
    const from = watched(scene)
    for (const name of ['a', 'b', 'c']) {
      t.equal(await cluster.stop(name), 0, `${name} ends with 0`)
      await cluster.start(name)
      await cluster.settled()
    }
    await checkMoves(scene, from)
  },

  'dies in the middle of a handoff': async ({ took, cluster, probes }) => {
    // The one that hands over, at several moments; then the one that gets.
    for (const ms of [50, 250, 600]) {
      const ending = cluster.stop('a')
      await tick(ms)
      await cluster.kill('a')
      await ending
      took(await probes.allAnswer(), TAKEOVER_MS, `killed ${ms} ms into its stop: all answer after`)
      await cluster.start('a')
    }
    await cluster.addMember('e')
    await tick(100)
    await cluster.kill('e')
    took(await probes.allAnswer(), TAKEOVER_MS, 'the new one died: all answer after')
  },
})
