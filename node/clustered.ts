// The foundation of a cluster: this process is one member of many, its journal in Cassandra, its
// graph in Elasticsearch, its wire over Redis. Source: ARCHITECTURE 0, PROTOCOL 3.3, 3.6, 3.13.

import { getHeapStatistics } from 'node:v8'
import { LogFollowers } from '../cluster/feed/log-followers.ts'
import { SegmentedLog } from '../cluster/log/segmented-log.ts'
import { Member } from '../cluster/member.ts'
import type { BeatSender } from '../cluster/membership/beat.ts'
import type { Placement } from '../cluster/placement/placement.ts'
import { redisWire } from '../cluster/redis/wire.ts'
import type { RedisWire } from '../cluster/redis/wire.ts'
import { LIMITS } from '../config/limits.ts'
import { RequestError } from '../protocol/errors.ts'
import { Outage } from '../protocol/outage.ts'
import { openCassandra } from '../storage/cassandra/store.ts'
import type { CassandraStore } from '../storage/cassandra/store.ts'
import { ElasticClient } from '../storage/elastic/client.ts'
import type { Journal } from '../storage/journal.ts'
import { collectClusterMetrics, collectWireMetrics } from './cluster/cluster-metrics.ts'
import { NO_RULES, stuckShardCheck } from './foundation.ts'
import type { Foundation, FoundationOptions } from './foundation.ts'

import { startClusterIndex } from './indexing/cluster/cluster-index.ts'
import { consumerOf } from './indexing/cluster/index-registers.ts'
import type { ClusterIndex } from './indexing/cluster/cluster-index.ts'
import { collectClusterIndexMetrics } from './indexing/cluster/cluster-index-metrics.ts'
import { BeatThread } from './membership/beat-thread.ts'
import { IncarnationFile } from './membership/incarnation-file.ts'
import type { Check } from './health/routes.ts'
import { StuckShardWatch } from './health/stuck-shards.ts'

/** What follows the member's commits; there before the member takes part. */
interface Parts {
  readonly store: CassandraStore
  readonly journal: Journal
  readonly wire: RedisWire
  readonly beat: BeatSender
  readonly followers: LogFollowers
  index: ClusterIndex | null
}

export async function clusteredFoundation(options: FoundationOptions): Promise<Foundation> {
  const { log, world } = options
  const store = await openStore(options)
  const alarms = new Set<string>()
  const journal = makeJournal(options, store, alarms)
  const { redisUrls, redis } = options.settings.cluster
  const running: { member: Member | null } = { member: null }
  const wire = redisWire({
    ...redis,
    urls: redisUrls,
    prefix: `${options.settings.cluster.cassandra.keyspace}:`,
    clock: world.clock,
    secret: store.identity.secret,
    log,
    onReconnect: () => running.member?.edge.resend(),
  })
  const beat = makeBeat(options, store)
  const followers = new LogFollowers({ ...journal, clock: world.clock })
  const parts: Parts = { store, journal, wire, beat, followers, index: null }
  const member = makeMember(options, parts)
  running.member = member
  options.learn(member.system)
  const index = startIndex(options, parts, member)
  parts.index = index
  await member.start()
  const placement = member.ownership as Placement
  const stuckShards = new StuckShardWatch(world.clock)
  return {
    journal,
    member,
    followers,
    watch: index.watch,
    runner: index.runner,
    served: () => index.served,
    index: index.rebuild,
    applied: (shard) => index.indexed(shard),
    parkedBy: () => consumerOf(index.numbers.generation),
    checks: () => [
      ...checks(member, placement, index),
      alarmCheck(alarms),
      stuckShardCheck(stuckShards, member, {
        applied: (shard) => index.applied(shard),
        outages: index.numbers.feed.failures + index.numbers.feed.actors,
      }),
    ],
    collect: (metrics) => {
      collectClusterMetrics(metrics, placement)
      collectWireMetrics(metrics, wire)
      collectClusterIndexMetrics(metrics, index, () => member.heads())
    },
    async stop(leftMs) {
      await member.stop(leftMs() * 0.7)
      await Promise.all([index.close(), followers.close()])
      await wire.stop()
      await store.close()
    },
  }
}

/** Engines and members are often started together: waits for an engine that is not there yet. */
async function openStore(options: FoundationOptions): Promise<CassandraStore> {
  const { log, world } = options
  const now = (): number => world.clock.monotonicMs()
  const untilMs = now() + LIMITS.cluster.engineWaitMs
  const failing = 'Cassandra can not be used yet; it is tried again'
  const outage = new Outage({ log, now, failing, back: 'Cassandra is there' })
  for (;;) {
    try {
      const store = await openOnce(options)
      outage.answered()
      return store
    } catch (error) {
      if (!isAway(error) || now() >= untilMs) throw error
      outage.failed({ err: error })
      await new Promise<void>((resolve) => void setTimeout(resolve, LIMITS.cluster.engineRetryMs))
    }
  }
}

/** Without an answer; a store that is not ours, or an engine that is unfit, stays so. */
function isAway(error: unknown): boolean {
  return error instanceof RequestError || (error as Error).cause !== undefined
}

function openOnce({
  settings,
  secretsKeys,
  log,
  world,
}: FoundationOptions): Promise<CassandraStore> {
  const { datacenter, ...cassandra } = settings.cluster.cassandra
  return openCassandra({
    ...cassandra,
    // config/load.ts asks for it.
    datacenter: datacenter!,
    shards: settings.shards,
    secretsKeys,
    log,
    random: world.random,
    clock: () => world.clock.nowMs(),
    now: () => world.clock.monotonicMs(),
  })
}

function makeJournal(
  { world, log }: FoundationOptions,
  store: CassandraStore,
  alarms: Set<string>,
): Journal {
  const { identity, segments, control, derived } = store
  const segmented = new SegmentedLog({
    segments,
    control,
    flushOf: async (shard) => (await derived.consumer(shard, 'flush')) ?? 0,
    clock: world.clock,
    log,
    // The log says what can't be: that shard stops, and a person has to look (PROTOCOL 3.2.4). Not
    // the process: a hole in the store would take one member after the other along.
    onBug: (shard, alarm) => {
      log.error({ shard, alarm }, 'the log contradicts itself; this member is no longer ready')
      alarms.add(`shard ${shard}: ${alarm}`)
    },
  })
  return { identity, log: segmented, derived, close: () => store.close() }
}

/** From a thread of its own: a main loop that is busy is alive, one that stands still is not. */
function makeBeat({ settings, world, log }: FoundationOptions, store: CassandraStore): BeatThread {
  const { contactPoints, keyspace, datacenter, credentials, tls } = settings.cluster.cassandra
  const { serial } = store.identity
  return new BeatThread({
    control: { contactPoints, keyspace, datacenter: datacenter!, serial, credentials, tls },
    clock: world.clock,
    log,
  })
}

function makeMember(options: FoundationOptions, parts: Parts): Member {
  const { settings, log, version, world, behaviours, query } = options
  return new Member({
    memberId: settings.memberId,
    address: settings.http.baseUrl,
    version,
    journal: parts.journal,
    cluster: {
      control: parts.store.control,
      beat: parts.beat,
      former: new IncarnationFile({ dir: settings.dataDir, member: settings.memberId, log }),
    },
    behaviours,
    world,
    heapBytes: getHeapStatistics().heap_size_limit,
    wire: parts.wire,
    wireDeliversOnce: true,
    log,
    hooks: NO_RULES,
    query,
    throttleMs: () => 0,
    onCommitted: (shard, entries, first, body) => {
      parts.index?.committed(shard, entries, first, body)
      parts.followers.committed(shard, { first, entries, body })
    },
    onGained: (shard, { epoch, head }) => {
      parts.index?.gained(shard, epoch, head)
      parts.followers.gained(shard, head)
    },
    onReleased: (shard) => {
      parts.index?.lost(shard)
      parts.followers.lost(shard)
    },
    onRetryParked: () => parts.index?.retryParked(),
    doneWith: (shard) =>
      Math.min(parts.index?.doneWith(shard) ?? 0, parts.followers.doneWith(shard)),
    onLost: (shard, why) => log.warn({ shard, why }, 'a shard was lost'),
  })
}

function startIndex(
  { settings, world, log, schema }: FoundationOptions,
  { journal }: Parts,
  member: Member,
): ClusterIndex {
  const { urls, prefix, auth, tls } = settings.cluster.elasticsearch
  return startClusterIndex({
    journal,
    engine: new ElasticClient({ urls, auth, tls }),
    prefix,
    schema,
    behaviours: member.behaviours,
    clock: world.clock,
    log,
    flushed: (shard) => member.shards.get(shard)?.flusher.flushed ?? null,
    serves: (shard) => member.serves(shard),
  })
}

function alarmCheck(alarms: ReadonlySet<string>): Check {
  const [first] = alarms
  if (first === undefined) return { name: 'log', ok: true }
  const more = alarms.size > 1 ? ` (and ${alarms.size - 1} more)` : ''
  return { name: 'log', ok: false, reason: `${first}${more}` }
}

/** Every shard has an owner that lives, and those of this member are served. */
function checks(member: Member, placement: Placement, index: ClusterIndex): readonly Check[] {
  const shards = placement.overview().shards
  const unowned = shards.filter(({ owner }) => owner === null).length
  const away = [...member.shards.values()].filter(({ state }) => state !== 'serving').length
  // A member that is started while the index is away serves all but the graph, as the others do.
  const unready = index.isAway ? null : index.watch.unready()
  const reasons: [string, string | null][] = [
    ['member', placement.mayServe() ? null : 'this member has no lease'],
    [
      'shards',
      shards.length === 0
        ? 'the control rows were not read yet'
        : unowned > 0
          ? `${unowned} shards have no living owner`
          : away > 0
            ? `${away} shards are being taken over`
            : null,
    ],
    ['configuration', member.knowsConfiguration ? null : 'the system log could not be read'],
    ['wire', placement.wireFault()],
    ['graph', unready],
  ]
  return reasons.map(([name, reason]) => {
    return reason === null ? { name, ok: true } : { name, ok: false, reason }
  })
}
