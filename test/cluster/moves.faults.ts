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

/** Shorter than a pause that is too long; and seldom enough that looking is not the load. */
const LOOK_EVERY_MS = 150
/** Well below what the machine can do: a request that waits for a CPU looks like a pause. */
const LOAD = { clients: 4, pauseMs: 120 }

/** A member that ends takes no new connections: its load balancer goes elsewhere. */
const ELSEWHERE = 'ECONNREFUSED'

/** What was asked and moved from here on. */
interface Watch {
  readonly at: number
  readonly looks: number
  /** How long each shard that moved was served by nobody, as its old owner has logged it. */
  readonly pausesMs: number[]
}

function watched({ load, probes, cluster }: Scene): Watch {
  const from = { at: load.now(), looks: probes.looks.length, pausesMs: [] }
  probes.watch(() => cluster.doors, LOOK_EVERY_MS)
  for (const { node } of cluster.up) node.output = ''
  return from
}

/** Ends one; what it has said of its moves is kept. */
async function stop({ t, cluster }: Scene, name: string, { pausesMs }: Watch): Promise<void> {
  t.equal(await cluster.stop(name), 0, `${name} ends with 0`)
  pausesMs.push(...movesIn(cluster.member(name).node.output))
}

function movesIn(output: string): number[] {
  return [...output.matchAll(/"pauseMs":(\d+)[^\n]*handed over is served/g)].map(([, ms]) =>
    Number(ms),
  )
}

/** No request that came to a member, the one that ends included, was refused or lost. */
async function checkMoves(
  { t, took, load, probes, cluster }: Scene,
  { at, looks: before, pausesMs }: Watch,
): Promise<void> {
  const looks = (await probes.stop()).slice(before)
  const attempts = load.between(at, load.now())
  const failed = attempts.filter(({ outcome, how }) => outcome !== 'ok' && how !== ELSEWHERE)
  const text = failed.slice(0, 5).map(({ op, member, how }) => `${op} over ${member}: ${how}`)
  t.equal(failed.length, 0, `${attempts.length} requests, none failed; ${text.join(', ')}`)
  const odd = looks.filter(({ how }) => how !== '200' && how !== ELSEWHERE)
  t.equal(odd.length, 0, `${looks.length} looks, none failed; ${odd[0]?.how ?? ''}`)
  const silent = pauses(looks)
  t.equal(silent.size, probes.count, 'every shard was looked at')
  // With what a caller waits for a machine that starts a process at the same time.
  t.comment(`longest look: ${Math.round(quantile(silent.values(), 1))} ms`)
  for (const { node } of cluster.up) pausesMs.push(...movesIn(node.output))
  t.ok(pausesMs.length > 0, `${pausesMs.length} shards moved`)
  t.comment(`half of them were served by nobody for ${quantile(pausesMs, 0.5)} ms`)
  took(quantile(pausesMs, 0.99), PAUSE_MS, 'p99 of the pauses of shards that moved')
}

// The one first that leaves requests whose outcome nobody knows: their time is over before the end.
faults(
  t,
  {
    'dies in the middle of a handoff': async ({ took, cluster, probes }) => {
      // The one that hands over, at several moments; then the one that gets.
      for (const ms of [50, 250, 600]) {
        const ending = cluster.stop('a')
        await tick(ms)
        await cluster.kill('a')
        await ending
        took(
          await probes.allAnswer(),
          TAKEOVER_MS,
          `killed ${ms} ms into its stop: all answer after`,
        )
        await cluster.start('a')
      }
      await cluster.addMember('e')
      await tick(100)
      await cluster.kill('e')
      took(await probes.allAnswer(), TAKEOVER_MS, 'the new one died: all answer after')
    },

    'a member joins, and leaves again': async (scene) => {
      const { cluster } = scene
      const from = watched(scene)
      await cluster.addMember('d')
      await cluster.settled()
      await tick(1_000)
      await stop(scene, 'd', from)
      await cluster.settled()
      await checkMoves(scene, from)
    },

    'each is restarted in turn': async (scene) => {
      const { cluster } = scene
      const from = watched(scene)
      for (const name of ['a', 'b', 'c']) {
        await stop(scene, name, from)
        await cluster.start(name)
        await cluster.settled()
      }
      await checkMoves(scene, from)
    },
  },
  { load: LOAD, env: { KONTOR_LOG_LEVEL: 'info' } },
)
