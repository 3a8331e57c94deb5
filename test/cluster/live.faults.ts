// Live queries and events while members die, stand still and join, shards move and the wire forgets
// everything, under load: what a client has by its frames alone is what the graph answers, and a
// dead member costs those whom it served one resume. Source: PROTOCOL 3.15, 3.18, 4.1 (K6), 4.2
// (F33).

import t from 'tap'
import type { ShownNode } from '../../node/live/queries/testing/live-view.ts'
import { tick, until } from '../harness/patience.ts'
import { faults } from './scene.ts'
import type { Scene } from './scene.ts'
import type { ClusterMember } from './harness/cluster.ts'
import { EventWatcher, LiveWatcher } from './watchers.ts'
import type { LiveQuery } from './watchers.ts'

const PAST_DEATH_MS = 4_000
const TAKEOVER_MS = 5_000
/** On a machine that has little time for it. */
const LISTED_MS = 60_000
/** Events are told within this, or never. */
const TOLD_MS = 5_000

const SHOWN = { fields: ['orderId', 'orderNumber', 'orderTotal'] }
const QUERIES: readonly (LiveQuery & { readonly idField: string })[] = [
  { edge: 'orders', orderBy: 'orderNumber desc', limit: 20, node: SHOWN, idField: 'orderId' },
  {
    ...{ edge: 'orders', filter: 'orderTotal > 20 and orderTotal <= 60', node: SHOWN },
    ...{ orderBy: 'orderTotal desc, orderNumber', limit: 30, idField: 'orderId' },
  },
  {
    ...{ edge: 'orderLines', orderBy: 'productNumber desc', limit: 25, idField: 'orderLineId' },
    node: {
      fields: ['orderLineId', 'productNumber', 'orderLineTotal'],
      navigate: [{ edge: 'order', node: { fields: ['orderTotal'] } }],
    },
  },
]

/** Totals only rise under the load. */
function versionOf({ orderTotal, order }: ShownNode): number {
  return Number(orderTotal ?? (order as ShownNode | null)?.['orderTotal'] ?? 0)
}

const watchers: LiveWatcher[] = []

/** Followed by clients of these members, from here to the end of the file. */
async function watch({ cluster }: Scene, names: readonly string[]): Promise<void> {
  for (const { idField, ...query } of QUERIES) {
    for (const name of names) {
      const at = cluster.member(name)
      watchers.push(new LiveWatcher({ query, idField, versionOf, at, up: () => cluster.up }))
    }
  }
  const haveLists = (): boolean => watchers.every(({ view }) => view.position !== null)
  await until('all have their lists', haveLists, LISTED_MS)
}

/** When nothing happens any more all have what the graph has, and none was told nonsense. */
async function agree({ t, cluster, load, probes }: Scene, what: string): Promise<void> {
  await probes.allAnswer()
  await load.stop()
  const [member] = cluster.up
  const found = await Promise.all(watchers.map((one) => one.disagreement(member!)))
  t.strictSame(found.filter(Boolean), [], `${what}: all ${watchers.length} have what there is`)
  const problems = watchers.flatMap(({ view, name }) =>
    view.problems.map((one) => `${name} ${one}`),
  )
  t.strictSame(problems.slice(0, 5), [], `${what}: no frame contradicts another`)
  for (const { name, view, resumes, reasons } of watchers) {
    const { changes, anew } = view
    const text = `${changes} changes, ${anew} times anew, ${resumes} resumes`
    t.comment(`${name}: ${text}${reasons.map((one) => `; ${one}`).join('')}`)
  }
  load.start()
}

/** Of how many members each has seen the death meanwhile. */
async function deaths(during: () => Promise<void>): Promise<readonly number[]> {
  const before = watchers.map((one) => one.deaths)
  await during()
  return watchers.map((one, i) => one.deaths - before[i]!)
}

/** Those that were made since, or are missing where no gap was told. */
async function checkEvents(
  { t, load }: Scene,
  { events, member, from }: { events: EventWatcher; member: ClusterMember; from: number },
): Promise<void> {
  const made = load.history.operations.filter(
    ({ op, outcome, rejected, invokedAt }) =>
      op === 'create' && outcome === 'ok' && !rejected && invokedAt > from,
  )
  const ids = [...new Set(made.map(({ pid }) => pid))]
  const isTold = (): boolean => events.missing(ids).length === 0
  await until('all events have come', isTold, TOLD_MS).catch(() => null)
  const missing = events.missing(ids).length
  const told = await member.node.metric('kontor_watch_gaps_total')
  t.ok(made.length > 0 && events.created.size > 0, `${made.length} orders were made`)
  t.ok(missing === 0 || told > 0, `${missing} events are missing, ${told} gaps were told`)
  events.close()
}

faults(
  t,
  {
    'an owner dies that serves none of them': async (scene) => {
      const { t, cluster, load } = scene
      await watch(scene, ['a'])
      // Of the live queries it knows nothing: what it has of gaps is of events.
      const member = cluster.member('b')
      const events = await EventWatcher.open(member)
      const from = load.now()
      const seen = await deaths(async () => {
        await tick(1_000)
        await cluster.kill('c')
        await agree(scene, 'an owner died')
      })
      t.strictSame(new Set(seen), new Set([0]), 'they saw nothing of it')
      await checkEvents(scene, { events, member, from })
    },

    'the member dies that serves them': async (scene) => {
      const { t, took, cluster } = scene
      await watch(scene, ['b'])
      const served = watchers.map(({ member }) => Number(member.name === 'a'))
      const seen = await deaths(async () => {
        await cluster.kill('a')
        const began = performance.now()
        const isElsewhere = (): boolean => watchers.every(({ member }) => member.name !== 'a')
        await until('they go on elsewhere', isElsewhere, LISTED_MS)
        took(performance.now() - began, TAKEOVER_MS, 'its clients are elsewhere after')
        await agree(scene, 'their member died')
      })
      t.strictSame(seen, served, 'whom it served came back once, nobody else did')
    },

    'their member stands still past its death': async (scene) => {
      const { cluster } = scene
      cluster.freeze('b')
      await tick(PAST_DEATH_MS)
      cluster.thaw('b')
      await until('it is a member again', () => cluster.member('b').isReady(), LISTED_MS)
      await agree(scene, 'it stood still')
    },

    'shards move, and the wire forgets everything': async (scene) => {
      const { t, cluster } = scene
      await cluster.addMember('d')
      await cluster.flushRedis()
      await cluster.settled()
      await cluster.flushRedis()
      t.equal(await cluster.stop('d'), 0)
      await agree(scene, 'shards moved')
      await Promise.all(watchers.map((one) => one.stop()))
    },
  },
  { load: { clients: 6, pauseMs: 60 } },
)
