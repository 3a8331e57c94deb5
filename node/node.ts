// The composition root: the stations are wired here on a foundation (embedded.ts, clustered.ts).
// Everything else gets what it needs from here. The order of the lines is the order of the walk,
// from the journal up to the socket.

import { randomFillSync } from 'node:crypto'
import type { Settings } from '../config/settings.ts'
import { systemClock } from '../cluster/clock.ts'
import type { World } from '../cluster/clock.ts'
import type { Member } from '../cluster/member.ts'
import type { Behaviour } from '../protocol/behaviour.ts'
import { RequestError } from '../protocol/errors.ts'
import { SYSTEM_SHARD } from '../protocol/ids.ts'
import type { Log } from '../protocol/log.ts'
import { createAccess } from './access/access.ts'
import type { AttributesOf } from './access/authenticate.ts'
import type { Access } from './access/access.ts'
import { actorOperations } from './actors/routes.ts'
import { behaviours } from './behaviours.ts'
import { ClusterStatusReader } from './cluster/cluster-status.ts'
import { clusterOperations } from './cluster/routes.ts'
import { SetAside } from './cluster/set-aside.ts'
import { iamOperations } from './iam/iam.ts'
import { embeddedFoundation } from './embedded.ts'
import type { Foundation, FoundationOptions } from './foundation.ts'
import { OrderCount } from './front/order-count.ts'
import { frontOperations } from './front/routes.ts'
import { actorQuery } from './graph/actor-query.ts'
import { consistencyTokens } from './graph/consistency.ts'
import { cursorSeal } from './graph/cursors.ts'
import { type FollowedSystem, RegistrySchema } from './graph/custom/registry-schema.ts'
import { Graph } from './graph/graph.ts'
import { GraphQl } from './graph/graphql/loader.ts'
import { graphqlRoutes } from './graph/graphql/routes.ts'
import { LiveSchema } from './graph/live-schema.ts'
import { graphRoutes } from './graph/routes.ts'
import { AskedRebuilds } from './indexing/asked-rebuilds.ts'
import { searchRoutes } from './indexing/search-routes.ts'
import { listenForMetrics } from './health/metrics-port.ts'
import { healthOperations, stateOperations } from './health/routes.ts'
import type { Check } from './health/routes.ts'
import { collectProcessMetrics } from './health/process-metrics.ts'
import { collectRuntimeMetrics } from './health/runtime-metrics.ts'
import type { Authenticate, Clock } from './http/core.ts'
import type { Operation } from './http/operation.ts'
import { createHttpServer } from './http/server.ts'
import type { HttpServer } from './http/server.ts'
import { startLive } from './live/live.ts'
import { livePageOperations } from './live/page.ts'
import { signInOperation } from './static-page.ts'
import type { Live } from './live/live.ts'
import type { Voice } from './log/log.ts'
import { Metrics } from './metrics.ts'
import { meOperations } from './me/routes.ts'
import { RegistryChannels } from './registry/channels.ts'
import { registryOperations } from './registry/routes.ts'
import { RegistrySecrets } from './registry/secrets.ts'
import { readSampleFile } from './sample/file.ts'
import { fileMarker } from './sample/marker.ts'
import { loadSample } from './sample/sample.ts'

export interface NodeOptions {
  readonly settings: Settings
  readonly log: Log
  readonly version: string
  /** Shows a text to the operator. */
  readonly tell: Voice['tell']
  /** Whether it is shown at a terminal. */
  readonly isTerminal: boolean
  /** The process can't go on: a failed flush, a store that another process has taken. */
  readonly onFatal: (error: Error) => void
  /** Access attributes of identities, by their ids; absent: none has any. */
  readonly attributesOf?: AttributesOf
}

/** A running node. */
export interface KontorNode {
  readonly port: number
  /** Port of the metrics alone; null where there is none. */
  readonly metricsPort: number | null
  /** Stops accepting, drains, closes; at the latest after the shutdown setting. */
  stop(): Promise<void>
}

/** Listens first: who can't have the port must not have taken a shard. */
export async function startNode(given: NodeOptions): Promise<KontorNode> {
  const world: World = { clock: systemClock(), random: (bytes) => void randomFillSync(bytes) }
  const metrics = new Metrics()
  const phase: Phase = {
    checks: () => [STARTING],
    authenticate: () => NOBODY_YET,
    orders: () => Promise.resolve(null),
    isLeaving: false,
  }
  const server = listener(given, { world, metrics, phase })
  const { port } = await server.listen()
  const { settings, log } = given
  const metricsServer = await listenForMetrics({ settings, log, metrics, clock: clocksOf(world) })
  // Port 0 stands for a free one, which is known only now.
  const baseUrl = settings.http.baseUrl.replace(/:0$/, `:${port}`)
  const http = { ...settings.http, baseUrl }
  const options = { ...given, settings: { ...settings, http } }
  const running = await startStations(options, { world, metrics, phase, server })
  const metricsPort = metricsServer?.port ?? null
  return { port, metricsPort, stop: stopper({ ...running, metricsServer }) }
}

/** What changes while a node comes and goes. */
interface Phase {
  checks: () => readonly Check[]
  authenticate: Authenticate
  /** How many there are; null: unknown. */
  orders: () => Promise<number | null>
  /** It was told to stop, and serves on for a moment. */
  isLeaving: boolean
}

interface Entrance {
  readonly world: World
  readonly metrics: Metrics
  readonly phase: Phase
}

const STARTING: Check = { name: 'start', ok: false, reason: 'this node is starting' }
const LEAVING: Check = { name: 'stop', ok: false, reason: 'this node is about to stop' }
const LACKING =
  'secrets of the registry can not be read: they are encrypted with a key that this process ' +
  'does not have; name it in KONTOR_SECRETS_KEYS_OLD, or write them anew'
const NOBODY_YET = new RequestError('UNAVAILABLE', 'this node is starting; nothing was done')

/** What is answered from the first moment on. */
function doorstep(options: NodeOptions, { metrics, phase }: Entrance): Operation[] {
  const { settings, version } = options
  const checks = (): readonly Check[] => [...phase.checks(), ...(phase.isLeaving ? [LEAVING] : [])]
  const orders = (): Promise<number | null> => phase.orders()
  const hasMetrics = settings.metrics.port === null
  return [
    ...frontOperations({ version, settings, checks, orders, hasMetrics }),
    signInOperation(),
    ...(hasMetrics ? healthOperations({ checks, metrics }) : stateOperations(checks)),
  ]
}

function listener(options: NodeOptions, entrance: Entrance): HttpServer {
  const { settings, log, version } = options
  const { world, metrics, phase } = entrance
  return createHttpServer({
    settings: settings.http,
    rates: settings.rates,
    operations: doorstep(options, entrance),
    isStarting: true,
    authenticate: (authorization, addressOf) => phase.authenticate(authorization, addressOf),
    log,
    metrics,
    version,
    clock: clocksOf(world),
  })
}

function clocksOf({ clock }: World): Clock {
  return { nowMs: () => clock.nowMs(), monotonicMs: () => clock.monotonicMs() }
}

async function startStations(
  options: NodeOptions,
  entrance: Entrance & { readonly server: HttpServer },
): Promise<Omit<Running, 'metricsServer'>> {
  const { settings, log } = options
  const { world, metrics, phase, server } = entrance
  const secrets = new RegistrySecrets(settings.secrets, world.random)
  const channels = makeChannels(secrets, log)
  const table = behaviours(channels, settings.orderCompletion)
  const { schema, custom } = makeSchema(table, world, log)
  const clocks = clocksOf(world)
  const { graphFilterFields: filterFields } = settings
  const query = actorQuery({ schema, filterFields, ...clocks })
  const learn = (system: FollowedSystem): void => custom.follow(system)
  const graphs = { schema, query, learn }
  const parts = { ...options, ...graphs, world, behaviours: table, secretsKeys: secrets.names }
  const foundation = await makeFoundation(parts)
  const { journal, member, runner, watch: index, served } = foundation
  for (const [key, count] of secrets.lacking(member.system.withPrefix('registry', ''))) {
    log.error({ key, count }, LACKING)
  }
  channels.follow(member.system)
  const tokens = consistencyTokens(journal.identity)
  const seals = { tokens, cursors: cursorSeal(journal.identity.secret) }
  const read = { schema, custom, served, runner, index }
  const graph = new Graph({ ...read, ...seals, filterFields, ...clocks })
  const graphql = new GraphQl(graph)
  const access = makeAccess(options, { member, storeSecret: journal.identity.secret }, world)
  await access.start()
  collectProcessMetrics(metrics)
  collectRuntimeMetrics(metrics, member)
  foundation.collect(metrics)
  const sample = { ready: !settings.sample }
  phase.checks = () => [...foundation.checks(), sampleCheck(sample.ready)]
  phase.authenticate = access.authenticate
  const count = new OrderCount({ graph, ...clocks })
  phase.orders = () => count.read()
  const operations = [
    ...doorstep(options, entrance),
    ...clusterStation(foundation, world),
    ...access.operations,
    ...meOperations({ system: member.system, access, nowMs: clocks.nowMs }),
    ...identityOperations({ member, world, access, consistency: tokens, journal }),
    ...actorOperations({ actorSystem: member, consistency: tokens, world }),
    ...registryOperations({ actorSystem: member, consistency: tokens, secrets, graph: custom }),
    ...graphRoutes(graph),
    ...searchRoutes({
      rebuilds: new AskedRebuilds(foundation.index, world.clock),
      schema: () => schema.current.schema,
    }),
    ...graphqlRoutes(graphql),
    ...livePageOperations(),
  ]
  const { authenticate } = access
  const live = startLive({ foundation, authenticate, filterFields, graphql, world, log, metrics })
  server.serve(operations, live.sockets)
  if (settings.sample) void fillSample(member, options).then((ok) => (sample.ready = ok))
  return { server, access, live, foundation, settings, log, phase }
}

/** Members, shards, and what was set aside. */
function clusterStation(foundation: Foundation, { clock }: World): Operation[] {
  const { journal, member, applied, parkedBy, index } = foundation
  const status = new ClusterStatusReader({
    overview: () => member.ownership.overview(),
    tenures: member.shards,
    ...{ log: journal.log, applied, clock },
  })
  const setAside = new SetAside({
    ...{ journal, parkedBy },
    send: (envelope, respond) => member.edge.send(envelope, respond),
  })
  return clusterOperations({ status, setAside, index, retryParked: () => member.retryParked() })
}

function identityOperations(given: {
  readonly member: Member
  readonly world: World
  readonly access: Access
  readonly consistency: ReturnType<typeof consistencyTokens>
  readonly journal: Foundation['journal']
}): Operation[] {
  const { member: actorSystem, world, consistency, journal } = given
  const { passwords, secrets, lastActivity } = given.access
  const { derived } = journal
  const identities = { passwords, secrets, lastActivity }
  return iamOperations({ actorSystem, world, consistency, ...identities, derived })
}

function makeChannels(secrets: RegistrySecrets, log: Log): RegistryChannels {
  return new RegistryChannels((path, entry) => {
    try {
      return secrets.open(path, entry)
    } catch (err) {
      log.error({ err }, 'a channel is secret and can not be read; it stays as it was')
      return null
    }
  })
}

function makeSchema(table: readonly Behaviour[], { clock }: World, log: Log) {
  const types = table.flatMap(({ nodeTypes }) => nodeTypes)
  const schema = new LiveSchema(types)
  return { schema, custom: new RegistrySchema({ schema, types, clock, log }) }
}

/** The drivers of a cluster are loaded where they are used: one process alone starts without. */
async function makeFoundation(options: FoundationOptions): Promise<Foundation> {
  if (options.settings.storageDriver === 'embedded') return embeddedFoundation(options)
  const { clusteredFoundation } = await import('./clustered.ts')
  return clusteredFoundation(options)
}

function makeAccess(
  options: NodeOptions,
  { member, storeSecret }: { readonly member: Member; readonly storeSecret: string },
  world: World,
): Access {
  const { settings, log, tell, isTerminal, attributesOf } = options
  return createAccess({
    ...(attributesOf === undefined ? null : { attributesOf }),
    actorSystem: member,
    world,
    dataDir: settings.dataDir,
    bootstrapSecret: settings.bootstrapSecret,
    accessTokenMs: settings.accessTokenMs,
    refreshTokenMs: settings.refreshTokenMs,
    baseUrl: settings.http.baseUrl,
    storeSecret,
    hasPeers: settings.storageDriver === 'cluster',
    rates: settings.rates,
    external: settings.oidc && {
      settings: settings.oidc,
      fetch: (url, init) => fetch(url, init),
      onFault: (why) => log.warn({ why }, 'a sign-in by the external provider failed'),
    },
    tell,
    isTerminal,
    tidies: () => member.serves(SYSTEM_SHARD),
    onError: (error) => log.error({ err: error }, 'sessions could not be tidied up'),
    onPushedOut: (identity, sessions) =>
      log.warn({ identity, sessions }, 'too many sessions of this identity: its oldest were ended'),
    ready: () => member.knowsConfiguration || member.learnConfiguration(),
  })
}

function sampleCheck(ready: boolean): Check {
  if (ready) return { name: 'sample', ok: true }
  return { name: 'sample', ok: false, reason: 'the sample orders are being loaded' }
}

async function fillSample(member: Member, { settings, log, tell }: NodeOptions): Promise<boolean> {
  const outcome = await loadSample({
    actorSystem: member,
    readText: readSampleFile,
    marker: fileMarker(settings.dataDir),
    by: 'sample',
    delay: (ms) => new Promise((resolve) => void setTimeout(resolve, ms)),
  })
  if (outcome.outcome === 'loaded') {
    tell(`Loaded ${outcome.orders} sample orders (KONTOR_SAMPLE=false leaves them out).`)
  } else if (outcome.outcome === 'failed') {
    log.error({ why: outcome.reason }, 'the sample orders could not be loaded')
  }
  return outcome.outcome !== 'failed'
}

interface Running {
  readonly server: HttpServer
  readonly metricsServer: HttpServer | null
  readonly access: Pick<Access, 'stop'>
  readonly live: Pick<Live, 'stop'>
  readonly foundation: Foundation
  readonly settings: Settings
  readonly log: Log
  readonly phase: Phase
}

/** Balancers are told, requests end, what they left is written, drivers go (CONTRACT 0). */
function stopper(running: Running): () => Promise<void> {
  let stopping: Promise<void> | null = null
  return () => (stopping ??= stopAll(running))
}

async function stopAll({
  server,
  metricsServer,
  access,
  live,
  foundation,
  settings,
  log,
  phase,
}: Running): Promise<void> {
  const began = performance.now()
  const leftMs = (): number => Math.max(100, settings.shutdownMs - (performance.now() - began))
  phase.isLeaving = true
  const noticeMs = Math.min(settings.shutdownNoticeMs, leftMs() * 0.5)
  if (noticeMs > 0) await new Promise<void>((resolve) => void setTimeout(resolve, noticeMs))
  await server.close(leftMs() * 0.6)
  await live.stop()
  access.stop()
  await foundation.stop(leftMs)
  await metricsServer?.close(0)
  log.info({ ms: Math.round(performance.now() - began) }, 'stopped')
}
