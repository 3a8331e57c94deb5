// A long incarnation in two minutes: periods of days are lowered to seconds, and members are
// killed, restarted and put to rest over many of them, under a load with refusals among the
// changes. What was acknowledged is there when everything that may expire has expired. Source:
// PROTOCOL 3.6, 3.12, 4.2.

import t from 'tap'
import { randomUUID } from 'node:crypto'
import { apply, create, query } from '../harness/orders.ts'
import type { Command, Message } from '../harness/orders.ts'
import type { Answer } from '../harness/node-process.ts'
import { Patience, tick, until } from '../harness/patience.ts'
import { LIMITS_VARIABLE } from '../harness/lowered-limits.ts'
import type { LimitOverrides } from '../../config/limits.ts'
import { SYSTEM_SHARD, nextNumberIn, placeOfKey, shardOf } from '../../protocol/ids.ts'
import { logExtent } from './log-extent.ts'
import type { Cluster, ClusterMember } from './harness/cluster.ts'
import { Random } from './random.ts'
import { faults } from './scene.ts'
import type { Scene } from './scene.ts'

/** What is seconds here is hours or days in production; each is as far from the next as there. */
const SHORT: LimitOverrides = {
  'sharding.requestBudgetMs': 5_000,
  'redis.entryAgeMs': 5_000,
  'storage.edgeMarkMs': 12_000,
  'storage.callerMarkMs': 16_000,
  'storage.derivedTtlSeconds': 20,
  'sharding.marksMax': 24,
  'sharding.snapshotEntriesMin': 6,
  'sharding.snapshotEntryBytesMin': 2_048,
  'sharding.flushStoredEntries': 50,
  'sharding.flushStoredMs': 500,
  'sharding.trimEveryMs': 1_500,
  'sharding.feedRetentionMs': 5_000,
  'cluster.systemImageEntries': 20,
  'storage.segmentRowsMax': 150,
  'sharding.passivateMs': 400,
  'sharding.sweepEveryMs': 150,
  'sharding.sweepMax': 4_096,
  'indexing.consistencyWaitMs': 400,
}
/** Fills a segment of the log, and some images of the maps. */
const CONFIGURED = 200
/** A key is sent for the last time so long after the first; its answer comes before its end. */
const KEYS_LIVE_MS = 9_000
const PATIENCE_MS = 4_000
const EXPIRY_MS = 45_000
const TTL_MS = 20_000

/** A log is trimmed within this, once it may be. */
const TRIMMED_MS = 20_000

/** Messages of so many bytes, one after each rest, grow an order to its bound. */
const RESTS = 105
const GROWN_BYTES = 33_000
const REST_MS = 650

const INDEX_ASKED = 10_000
const ASKED_AT_ONCE = 250
/** Requests that lie in a member's sockets when it wakes. */
const ASKED_ASLEEP = 8
/** What a member may take more for them: waiting requests, never what they leave behind. */
const INDEX_BYTES_MAX = 96 * 1024 * 1024
/** For a collection of all garbage, under load. */
const COLLECTED_MS = 15_000

/** Done, over the bound, or done by a copy before whose answer was not heard. */
const TOLD = new Set([200, 413, 409])

let growing: Promise<Grown> | null = null
/** When the load was last at work, by performance.now(). */
let loadedAt = 0

faults(
  t,
  {
    'killed, restarted and handed over, period after period': async (scene) => {
      const { cluster, others, load } = scene
      others.orders += 1
      growing = grow(cluster)
      const random = new Random(load.done)
      const endAt = performance.now() + EXPIRY_MS
      while (performance.now() < endAt) {
        const name = random.one(['a', 'b', 'c'])
        if (random.share() < 0.5) await cluster.kill(name)
        else await cluster.stop(name)
        await tick(random.between(500, 4_000))
        await cluster.start(name)
        const from = load.done
        await until('the load goes on', () => load.done > from + 100)
      }
    },

    'Elasticsearch is away, and a member stands still, for longer than logs reach': async (
      scene,
    ) => {
      const { cluster } = scene
      const [asked, other, sleeper] = cluster.up as [ClusterMember, ClusterMember, ClusterMember]
      await cluster.stopEngine('elasticsearch')
      const token = await sleeper.node.token()
      await until('it is known', async () => (await usedOver(sleeper, token)) === 200)
      // What lay in its sockets meanwhile would be older than its key's incarnation when it is
      // read.
      sleeper.isLeaving = true
      await tick(PATIENCE_MS)
      cluster.freeze(sleeper.name)
      sleeper.isLeaving = false
      const { head: sleptAt } = await logExtent(cluster, SYSTEM_SHARD)
      await revoke(other, token)
      const { head: revokedAt } = await logExtent(cluster, SYSTEM_SHARD)
      await configure(other)
      await askForIndex(scene, asked)
      await trimmedBehind(scene, { sleptAt, revokedAt })
      await checkRefused(scene, sleeper, token)
      await cluster.startEngine('elasticsearch')
    },

    'an order grows to its bound over a hundred rests': async ({ t, cluster, others }) => {
      const { answers } = await growing!
      others.lines += answers.filter(({ status }) => status !== 413).length
      const statuses = new Set(answers.map(({ status }) => (status === 409 ? 200 : status)))
      t.same([...statuses], [200, 413], 'it grows, and then it may not')
      const { status } = await applied(cluster.up[0]!, 'GROWS', { type: 'addTag', key: 'small' })
      t.equal(status, 200, 'what is small is still done to it')
    },

    'the shard of an order at its bound serves on': async (scene) => {
      const { t, cluster, load, others, probes } = scene
      const { line } = await growing!
      // What it has left behind expires meanwhile.
      await load.stop()
      loadedAt = performance.now()
      const shards = probes.count
      const shard = shardOf(placeOfKey('order', 'GROWS'), shards)
      const place = { type: 'order', prefix: 'NEAR-', shard, shards }
      const near = `NEAR-${nextNumberIn(place, 0)}`
      others.orders += 1
      const made = await put(cluster, 'new', create({ orderNumber: near }))
      t.equal(made.status, 200, 'another order of it is made')
      await checkServes(scene, near, ['behind the bound'])
      const owner = (await cluster.ownerOf(shard))!
      await cluster.kill(owner)
      const refused = await put(cluster, 'GROWS', apply({ ...line, orderLineId: randomUUID() }))
      t.equal(refused.status, 413, 'who takes it over knows the bound')
      t.not(await cluster.ownerOf(shard), owner)
      await checkServes(scene, near, ['behind the bound', 'taken over'])
      await cluster.start(owner)
      await Promise.all(['a', 'b', 'c'].map((name) => cluster.kill(name)))
      await Promise.all(['a', 'b', 'c'].map((name) => cluster.start(name)))
      const again = await put(cluster, 'GROWS', apply({ ...line, orderLineId: randomUUID() }))
      t.equal(again.status, 413, 'nor does a new start let it grow')
      await checkServes(scene, near, ['behind the bound', 'taken over', 'begun anew'])
    },

    'what may expire has expired, and everybody begins anew': async ({ t, cluster, load }) => {
      await tick(Math.max(0, loadedAt + TTL_MS + 2_000 - performance.now()))
      await Promise.all(['a', 'b', 'c'].map((name) => cluster.kill(name)))
      await Promise.all(['a', 'b', 'c'].map((name) => cluster.start(name)))
      await cluster.settled()
      const from = load.done
      load.start()
      await until('new changes go on', () => load.done > from + 100)
      t.pass('they go on')
    },
  },
  {
    env: { [LIMITS_VARIABLE]: JSON.stringify(SHORT) },
    load: { keysLiveMs: KEYS_LIVE_MS, patienceMs: PATIENCE_MS, rejectShare: 0.6 },
  },
)

/** The answer of somebody who serves the order; members come and go. */
async function applied(member: ClusterMember, id: string, command: Command): Promise<Answer> {
  const body = [apply(command)]
  return member.ask(`/resources/actors/order/${id}`, { body, timeoutMs: PATIENCE_MS })
}

/** One message to an order, sent again until somebody says what became of it. */
function put(cluster: Cluster, id: string, message: Message): Promise<Answer> {
  const headers = { 'Idempotency-Key': randomUUID() }
  return answered(cluster, (member) => {
    const path = `/resources/actors/order/${id}`
    return member.ask(path, { body: [message], headers, timeoutMs: PATIENCE_MS })
  })
}

/** The last of the tags is put on an order; its actor and the graph show all of them. */
async function checkServes(
  { t, cluster }: Scene,
  number: string,
  tags: readonly string[],
): Promise<void> {
  const key = tags.at(-1)!
  const changed = await put(cluster, number, apply({ type: 'addTag', key }))
  t.equal(changed.status, 200, `${key}: it is changed`)
  const read = await put(cluster, number, query('tags'))
  t.same(read.json<{ data: unknown }>().data, { tags }, `${key}: its actor shows it`)
  const headers = { 'X-Consistency': String(changed.headers['x-consistency']) }
  const filter = `orderNumber == '${number}'`
  const body = [{ edge: 'orders', filter, node: { fields: ['tags'] } }]
  const found = await answered(cluster, (member) =>
    member.ask('/resources/graph', { body, headers, timeoutMs: PATIENCE_MS }),
  )
  t.same(found.json<object>(), { orders: [{ tags }] }, `${key}: the graph shows it`)
}

interface Grown {
  readonly answers: readonly Answer[]
  /** One more of what it has grown by. */
  readonly line: Command
}

/** One order gets some more after each rest; only answers that say what became of it. */
async function grow(cluster: Cluster): Promise<Grown> {
  const deliveryId = randomUUID()
  const key = randomUUID()
  await answered(cluster, (member) => {
    const body = [create({ orderNumber: 'GROWS' }, { type: 'createDelivery', deliveryId })]
    const headers = { 'Idempotency-Key': key }
    return member.ask('/resources/actors/order/new', { body, headers, timeoutMs: PATIENCE_MS })
  })
  const text = 'x'.repeat(GROWN_BYTES / 4)
  const line = {
    type: 'createOrderLine',
    deliveryId,
    productNumber: 'LARGE',
    quantity: 1,
    unitPrice: 1,
    dynamic: { a: text, b: text, c: text, d: text },
  }
  const answers: Answer[] = []
  for (let i = 0; i < RESTS; i++) {
    const added = { ...line, orderLineId: randomUUID() }
    answers.push(await answered(cluster, (member) => applied(member, 'GROWS', added)))
    await tick(REST_MS)
  }
  return { answers, line }
}

async function answered(
  cluster: Cluster,
  ask: (member: ClusterMember) => Promise<Answer>,
): Promise<Answer> {
  const patience = new Patience(60_000)
  for (let i = 0; ; i++) {
    const up = cluster.up
    const answer = up.length === 0 ? null : await ask(up[i % up.length]!).catch(() => null)
    if (answer !== null && TOLD.has(answer.status)) return answer
    if (patience.isOver()) throw new Error(`no answer: ${answer?.status} ${answer?.text}`)
    await tick(100)
  }
}

/** The status that a member answers to that token. */
async function usedOver(member: ClusterMember, token: string): Promise<number> {
  const asked = member.ask('/resources/registry?index=true', { token, timeoutMs: PATIENCE_MS })
  return asked.then(
    ({ status }) => status,
    () => 0,
  )
}

async function revoke(member: ClusterMember, token: string): Promise<void> {
  await member.node.form('/oauth/revoke', { token })
  await until('it is revoked', async () => (await usedOver(member, token)) === 401)
}

/**
 * So much that the log of the configuration no longer reaches back: only what stands in a segment
 * that is full, and below the last image but one, is trimmed.
 */
async function configure(member: ClusterMember): Promise<void> {
  const patience = new Patience(60_000)
  for (let done = 0; done < CONFIGURED;) {
    const path = `/resources/registry/long-life/${done % 7}`
    const asked = member.ask(path, { body: { done }, timeoutMs: PATIENCE_MS })
    const problem = await asked.then(
      ({ status, text }) => (isSuccess(status) ? null : text),
      (error: Error) => error.message,
    )
    if (problem === null) done++
    else if (patience.isOver()) throw new Error(`it is not configured: ${problem}`)
  }
}

/** Requests to an index that isn't there, each with a token that it would have to wait for. */
async function askForIndex({ t, others }: Scene, member: ClusterMember): Promise<void> {
  const made = await member.node.order('new', [create({})])
  others.orders += 1
  const token = String(made.headers['x-consistency'])
  const anonymousBytes = (): Promise<number> => member.node.metric('process_anonymous_memory_bytes')
  const ask = async (): Promise<number> => {
    const body = [{ edge: 'orders', count: true }]
    const headers = { 'X-Consistency': token }
    const asked = member.ask('/resources/graph', { body, headers, timeoutMs: 10_000 })
    return asked.then(
      ({ status }) => status,
      () => 0,
    )
  }
  const statuses = new Set<number>()
  let left = INDEX_ASKED
  let before = 0
  const asker = async (): Promise<void> => {
    while (left-- > 0) {
      statuses.add(await ask())
      // The first of them warm up the code, and the pools of the connections.
      if (left === INDEX_ASKED * 0.8) before = await anonymousBytes()
    }
  }
  await Promise.all(Array.from({ length: ASKED_AT_ONCE }, asker))
  t.same([...statuses], [503], 'each is told that the index is away')
  // The load goes on, and with it what collects garbage; what they leave behind stays.
  let grown = Infinity
  const patience = new Patience(COLLECTED_MS)
  while (grown >= INDEX_BYTES_MAX && !patience.isOver()) {
    await tick(250)
    grown = Math.min(grown, (await anonymousBytes()) - before)
  }
  t.ok(grown < INDEX_BYTES_MAX, `${INDEX_ASKED} requests took ${Math.round(grown / 1e6)} MB more`)
}

/** What a member that stands still has read is gone from the log, and so is what it has missed. */
async function trimmedBehind(
  { t, cluster }: Scene,
  { sleptAt, revokedAt }: { readonly sleptAt: number; readonly revokedAt: number },
): Promise<void> {
  let { begin, head } = await logExtent(cluster, SYSTEM_SHARD)
  const patience = new Patience(TRIMMED_MS)
  while (begin < revokedAt && !patience.isOver()) {
    await tick(500)
    ;({ begin, head } = await logExtent(cluster, SYSTEM_SHARD))
  }
  t.ok(sleptAt < revokedAt, `it stands still since ${sleptAt}, revoked was at ${revokedAt}`)
  t.ok(begin >= revokedAt, `the log of \`system\` reaches from ${begin} to ${head}`)
}

/** Once it goes on it refuses, from its first answer on, what was revoked while it stood still. */
async function checkRefused(
  { t, cluster }: Scene,
  sleeper: ClusterMember,
  token: string,
): Promise<void> {
  const statuses = new Set<number>()
  const use = async (): Promise<void> => void statuses.add(await usedOver(sleeper, token))
  // These it finds before it has looked at anything else.
  const asleep = Array.from({ length: ASKED_ASLEEP }, use)
  await tick(PATIENCE_MS / 8)
  t.equal(statuses.size, 0, 'it stands still')
  cluster.thaw(sleeper.name)
  await until('it is a member again', async () => {
    await use()
    return sleeper.isReady()
  })
  await Promise.all(asleep)
  for (let i = 0; i < 50; i++) await use()
  const said = [...statuses]
  t.notOk(said.some(isSuccess), `what was revoked meanwhile: ${said.join(', ')}`)
  t.ok(statuses.has(401), 'it is told that it was revoked')
}

function isSuccess(status: number): boolean {
  return status >= 200 && status < 300
}
