// The composition root: the only place where drivers are made and stations are wired. It stands
// between the settings and a running node; everything else gets what it needs from here. The order
// of the lines is the order of the walk, from the journal up to the socket.

import { randomFillSync } from 'node:crypto'
import type { Settings } from '../config/settings.ts'
import { systemClock } from '../cluster/clock.ts'
import type { World } from '../cluster/clock.ts'
import { Member } from '../cluster/member.ts'
import { memoryWire } from '../cluster/memory/wire.ts'
import type { ActorQuery, HookTable } from '../cluster/sharding/core.ts'
import type { Behaviour } from '../protocol/behaviour.ts'
import { graphSchema } from '../protocol/graph/schema.ts'
import { SYSTEM_SHARD } from '../protocol/ids.ts'
import type { Log } from '../protocol/log.ts'
import { openEmbeddedJournal } from '../storage/embedded/journal.ts'
import type { Journal } from '../storage/journal.ts'
import { createAccess } from './access/access.ts'
import type { Access } from './access/access.ts'
import { actorOperations } from './actors/routes.ts'
import { behaviours } from './behaviours.ts'
import { actorQuery } from './graph/actor-query.ts'
import { consistencyTokens } from './graph/consistency.ts'
import { Graph } from './graph/graph.ts'
import { collectGraphMetrics } from './graph/graph-metrics.ts'
import { IndexThread } from './graph/index-thread.ts'
import { ReaderThread } from './graph/reader-thread.ts'
import { graphRoutes } from './graph/routes.ts'
import { ClusterStatusReader } from './cluster/cluster-status.ts'
import { clusterOperations } from './cluster/routes.ts'
import { healthOperations } from './health/routes.ts'
import type { Check } from './health/routes.ts'
import { collectProcessMetrics } from './health/process-metrics.ts'
import { collectRuntimeMetrics } from './health/runtime-metrics.ts'
import type { Authenticate } from './http/core.ts'
import { createHttpServer } from './http/server.ts'
import type { HttpServer } from './http/server.ts'
import { Metrics } from './metrics.ts'
import { RegistryChannels } from './registry/channels.ts'
import { registryOperations } from './registry/routes.ts'
import { readSampleFile } from './sample/file.ts'
import { fileMarker } from './sample/marker.ts'
import { loadSample } from './sample/sample.ts'

export interface NodeOptions {
  readonly settings: Settings
  readonly log: Log
  readonly version: string
  /** Shows a text to the operator. */
  readonly print: (text: string) => void
  /** The process can't go on: a failed flush, a store that another process has taken. */
  readonly onFatal: (error: Error) => void
}

/** Rules join later; until then no hook has one (COMMERCE 6). */
const NO_RULES: HookTable = { has: () => false, effects: () => [] }

/** A running node. */
export interface KontorNode {
  readonly port: number
  /** Stops accepting, drains, closes; at the latest after the shutdown setting. */
  stop(): Promise<void>
}

export async function startNode(options: NodeOptions): Promise<KontorNode> {
  const { settings, log, version } = options
  const world: World = { clock: systemClock(), random: (bytes) => void randomFillSync(bytes) }
  const journal = await openJournal(options, world)
  const metrics = new Metrics()
  const channels = new RegistryChannels()
  const table = behaviours(channels)
  const schema = graphSchema(table.flatMap(({ nodeTypes }) => nodeTypes))
  const clocks = { nowMs: () => world.clock.nowMs(), monotonicMs: () => world.clock.monotonicMs() }
  const following: Following = { index: null }
  const query = actorQuery({ schema, ...clocks })
  const member = makeMember(options, { journal, table, world, query, following })
  await member.start()
  channels.follow(member.system)
  const index = startIndex({ settings, journal, member, world, log })
  following.index = index
  const reader = new ReaderThread({ dir: settings.dataDir, clock: world.clock, log })
  const tokens = consistencyTokens(journal.identity)
  const graph = new Graph({ schema, runner: reader, index: index.watch, tokens, ...clocks })
  let { baseUrl } = settings.http
  const access = makeAccess(options, member, world, () => baseUrl)
  await access.start()
  collectProcessMetrics(metrics)
  collectRuntimeMetrics(metrics, member)
  collectGraphMetrics(metrics, { index, reader })
  const sample = { ready: !settings.sample }
  const checks = (): readonly Check[] => readiness(member, index, sample.ready)
  const status = new ClusterStatusReader({
    overview: () => member.ownership.overview(),
    tenures: member.shards,
    log: journal.log,
    applied: (shard) => index.progress.applied(shard),
    clock: world.clock,
  })
  const operations = [
    ...healthOperations({ checks, metrics }),
    ...clusterOperations(status),
    ...access.operations,
    ...actorOperations({ actorSystem: member, consistency: tokens, world }),
    ...registryOperations({ actorSystem: member, consistency: tokens }),
    ...graphRoutes(graph),
  ]
  const authenticate: Authenticate = (header) => access.authenticate(header)
  const http = { settings: settings.http, operations, authenticate, log, metrics, version }
  const server = createHttpServer({ ...http, clock: clocks })
  const { port } = await server.listen()
  // Port 0 stands for a free one, which is known only now.
  baseUrl = baseUrl.replace(/:0$/, `:${port}`)
  if (settings.sample) void fillSample(member, options).then((ok) => (sample.ready = ok))
  const stop = stopper({ server, access, member, index, reader, journal, settings, log })
  return { port, stop }
}

function openJournal({ settings, log, onFatal }: NodeOptions, world: World): Promise<Journal> {
  return openEmbeddedJournal({
    dir: settings.dataDir,
    shards: settings.shards,
    acceptLoss: settings.acceptLoss,
    log,
    random: world.random,
    clock: () => world.clock.nowMs(),
    now: () => world.clock.monotonicMs(),
    onFatal,
  })
}

/** What follows the member's commits; set once the member serves. */
interface Following {
  index: IndexThread | null
}

interface MemberParts {
  readonly journal: Journal
  readonly table: readonly Behaviour[]
  readonly world: World
  readonly query: ActorQuery
  readonly following: Following
}

function makeMember({ settings, log, version, onFatal }: NodeOptions, parts: MemberParts): Member {
  const { journal, table, world, query, following } = parts
  return new Member({
    memberId: settings.memberId,
    address: settings.http.baseUrl,
    version,
    journal,
    cluster: null,
    behaviours: table,
    world,
    wire: memoryWire((run) => world.clock.defer(run)),
    wireDeliversOnce: true,
    log,
    hooks: NO_RULES,
    query,
    throttleMs: () => following.index?.throttleMs() ?? 0,
    onCommitted: (shard, entries, first) =>
      following.index?.committed(shard, first + entries.length - 1),
    doneWith: (shard) =>
      shard === SYSTEM_SHARD ? Infinity : (following.index?.progress.applied(shard) ?? 0),
    onLost: (shard, why) => onFatal(new Error(`shard ${shard} was lost: ${why}`)),
  })
}

function makeAccess(
  { settings, log, print }: NodeOptions,
  member: Member,
  world: World,
  baseUrl: () => string,
): Access {
  return createAccess({
    actorSystem: member,
    world,
    dataDir: settings.dataDir,
    bootstrapSecret: settings.bootstrapSecret,
    accessTokenMs: settings.accessTokenMs,
    baseUrl,
    print,
    onError: (error) => log.error({ err: error }, 'sessions could not be tidied up'),
  })
}

interface IndexParts {
  readonly settings: Settings
  readonly journal: Journal
  readonly member: Member
  readonly world: World
  readonly log: Log
}

function startIndex({ settings, journal, member, world, log }: IndexParts): IndexThread {
  return new IndexThread({
    dir: settings.dataDir,
    shards: journal.identity.shards,
    generation: journal.identity.generation,
    clock: world.clock,
    log,
    heads: member.heads().filter(({ shard }) => shard !== SYSTEM_SHARD),
    flushed: (shard) => member.shards.get(shard)!.flusher.flushed,
    async writeRows(shard, rows) {
      const { epoch } = member.shards.get(shard)!
      const outcome = await journal.derived.write(shard, epoch, rows)
      if (outcome !== 'committed') throw new Error(`rows were not written: ${outcome}`)
    },
  })
}

/** What must hold before requests come in (CONTRACT 0 "Operations"). */
function readiness(member: Member, index: IndexThread, sampleReady: boolean): readonly Check[] {
  const away = [...member.shards.values()].filter(({ state }) => state !== 'serving')
  const unready = index.watch.unready()
  return [
    away.length === 0
      ? { name: 'shards', ok: true }
      : { name: 'shards', ok: false, reason: `${away.length} shards are not served` },
    unready === null ? { name: 'graph', ok: true } : { name: 'graph', ok: false, reason: unready },
    sampleReady
      ? { name: 'sample', ok: true }
      : { name: 'sample', ok: false, reason: 'the sample orders are being loaded' },
  ]
}

async function fillSample(member: Member, { settings, log, print }: NodeOptions): Promise<boolean> {
  const outcome = await loadSample({
    actorSystem: member,
    readText: readSampleFile,
    marker: fileMarker(settings.dataDir),
    by: 'sample',
    delay: (ms) => new Promise((resolve) => void setTimeout(resolve, ms)),
    log: {
      info: (text) => log.info({}, text),
      error: (text) => log.error({}, text),
    },
  })
  if (outcome.outcome === 'loaded') print(`Loaded ${outcome.orders} sample orders.`)
  return outcome.outcome !== 'failed'
}

interface Running {
  readonly server: HttpServer
  readonly access: Pick<Access, 'stop'>
  readonly member: Member
  readonly index: IndexThread
  readonly reader: ReaderThread
  readonly journal: Journal
  readonly settings: Settings
  readonly log: Log
}

/** Requests end first, then what they left to write, then the drivers (CONTRACT 0 "Shutdown"). */
function stopper(running: Running): () => Promise<void> {
  let stopping: Promise<void> | null = null
  return () => (stopping ??= stopAll(running))
}

async function stopAll(running: Running): Promise<void> {
  const { server, access, member, index, reader, journal, settings, log } = running
  const began = performance.now()
  const leftMs = (): number => Math.max(100, settings.shutdownMs - (performance.now() - began))
  await server.close(leftMs() * 0.6)
  access.stop()
  await member.stop(leftMs() * 0.5)
  await Promise.all([index.close(), reader.close()])
  await journal.close()
  log.info({ ms: Math.round(performance.now() - began) }, 'stopped')
}
