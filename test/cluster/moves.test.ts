// Planned moves fail no request: a member joins, a member leaves, each is restarted in turn, under
// load, whichever member is asked. Source: PROTOCOL 3.8, 4.2 (F24, F25); ARCHITECTURE 3 (promise
// 5).

import t from 'tap'
import { tick } from '../harness/patience.ts'
import { pauses, quantile } from './probes.ts'
import type { Look } from './probes.ts'
import { fault } from './scene.ts'
import type { Scene } from './scene.ts'

/** p99 of the silence of a shard that moves. */
const PAUSE_MS = 250
const TAKEOVER_MS = 5_000

/** A member that ends takes no new connections: its load balancer goes elsewhere. */
const ELSEWHERE = 'ECONNREFUSED'

/** No request that came to a member, the one that ends included, was refused or lost. */
function checkMoves({ t, took, load, probes }: Scene, looks: readonly Look[], what: string): void {
  const attempts = load.history.operations.flatMap((operation) => operation.attempts)
  const failed = attempts.filter(({ outcome, how }) => outcome !== 'ok' && how !== ELSEWHERE)
  const text = failed.slice(0, 5).map(({ member, how }) => `${how} of ${member}`)
  t.equal(failed.length, 0, `${what}: ${attempts.length} requests, none failed ${text.join()}`)
  const odd = looks.filter(({ how }) => how !== '200' && how !== ELSEWHERE)
  t.equal(odd.length, 0, `${what}: ${looks.length} looks, none failed ${odd[0]?.how ?? ''}`)
  const silent = pauses(looks)
  const p99 = quantile(silent.values(), 0.99)
  t.equal(silent.size, probes.count, 'every shard was looked at')
  took(p99, PAUSE_MS, `${what}: p99 of the pauses of shards`)
}

fault(t, 'a member joins, and leaves again', {}, async (scene) => {
  const { t, took, cluster, probes } = scene
  probes.watch(() => cluster.doors)
  await cluster.addMember('d')
  await cluster.settled()
  await tick(1_000)
  t.equal(await cluster.stop('d'), 0, 'it ends with 0')
  await cluster.settled()
  checkMoves(scene, await probes.stop(), 'one more and one less')
  for (const { name, node } of cluster.up) {
    const p99 = await node.metric('kontor_handoff_pause_seconds_p99')
    took(p99 * 1_000, PAUSE_MS, `${name} says that it sealed shards for`)
  }
})

fault(t, 'each is restarted in turn', { ms: 240_000 }, async (scene) => {
  const { t, cluster, probes } = scene
  probes.watch(() => cluster.doors)
  for (const name of ['a', 'b', 'c']) {
    t.equal(await cluster.stop(name), 0, `${name} ends with 0`)
    await cluster.start(name)
    await cluster.settled()
  }
  checkMoves(scene, await probes.stop(), 'a rolling restart')
})

fault(t, 'dies in the middle of a handoff', {}, async ({ took, cluster, probes }) => {
  // The one that hands over, at several moments; then the one that gets.
  for (const ms of [50, 250, 600]) {
    const ending = cluster.stop('a')
    await tick(ms)
    await cluster.kill('a')
    await ending
    took(await probes.allAnswer(), TAKEOVER_MS, `killed ${ms} ms into its stop: all answer after`)
    await cluster.start('a')
  }
  const joining = cluster.addMember('d')
  await joining
  await tick(100)
  await cluster.kill('d')
  took(await probes.allAnswer(), TAKEOVER_MS, 'the new one died: all answer after')
})
