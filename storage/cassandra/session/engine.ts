// What a Cassandra cluster must be like to be trusted with a journal, asked of every node before a
// store is opened. The operator is told the setting's name. Source: PROTOCOL 3.1 "Bounds",
// "Engine".

import { LIMITS } from '../../../config/limits.ts'
import type { Log } from '../../../protocol/log.ts'
import type { BatchBounds, Host, Session } from './session.ts'

/** Cassandra is not, or not configured as, what a journal needs. The message names the setting. */
export class EngineUnfit extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'EngineUnfit'
  }
}

const VERSION_MIN = [4, 1, 6] as const

type NodeSettings = ReadonlyMap<string, string | null>

const SETTINGS = [
  'max_mutation_size',
  'commitlog_segment_size',
  'commitlog_sync',
  'paxos_variant',
  'cas_contention_timeout',
  'write_request_timeout',
  'read_request_timeout',
  'range_request_timeout',
  'batch_size_warn_threshold',
  'unlogged_batch_across_partitions_warn_threshold',
]

/** What of a limit is used, for the engine weighs a little differently. */
const SHARE = 0.75

export interface EngineFit {
  /** How long a client has to wait so that the server is the one to give up. */
  readonly timeoutMs: number
  /** Requests within these don't make the engine warn. */
  readonly bounds: BatchBounds
}

/** Throws EngineUnfit when a node is too old or refuses what a group may weigh. */
export async function checkEngine(
  session: Pick<Session, 'hosts' | 'askHost'>,
  log: Log,
): Promise<EngineFit> {
  let serverMs = 0
  let bytes: number = LIMITS.cassandra.registerBatchBytesMax
  let partitions: number = LIMITS.cassandra.registerBatchRowsMax
  for (const host of session.hosts()) {
    checkVersion(host)
    const settings = await settingsOf(session, host)
    checkMutationSize(host, settings)
    warnAboutDurability(host, settings, log)
    serverMs = Math.max(serverMs, slowestMs(settings))
    bytes = Math.min(bytes, SHARE * (bytesOf(settings.get('batch_size_warn_threshold')) ?? bytes))
    const across = settings.get('unlogged_batch_across_partitions_warn_threshold')
    partitions = Math.min(partitions, Number(across ?? partitions))
  }
  const timeoutMs = Math.min(
    serverMs + LIMITS.cassandra.timeoutMarginMs,
    LIMITS.cassandra.timeoutMs,
  )
  return { timeoutMs, bounds: { bytes, partitions } }
}

function checkVersion(host: Host): void {
  const parts = host.cassandraVersion.split(/[.-]/, 3).map(Number)
  for (const [i, least] of VERSION_MIN.entries()) {
    const part = parts[i] ?? 0
    if (part > least) return
    if (part < least) {
      throw new EngineUnfit(
        `Cassandra at ${host.address} is ${host.cassandraVersion}: Kontor needs ` +
          `${VERSION_MIN.join('.')} or newer (5 is recommended)`,
      )
    }
  }
}

async function settingsOf(session: Pick<Session, 'askHost'>, host: Host): Promise<NodeSettings> {
  const names = SETTINGS.map((name) => `'${name}'`).join(', ')
  const query = `SELECT name, value FROM system_views.settings WHERE name IN (${names})`
  const rows = await session.askHost(host, query)
  return new Map(rows.map((row) => [row['name'] as string, row['value'] as string | null]))
}

function checkMutationSize(host: Host, settings: NodeSettings): void {
  const own = bytesOf(settings.get('max_mutation_size'))
  const segment = bytesOf(settings.get('commitlog_segment_size'))
  const limit = own ?? (segment === null ? null : segment / 2)
  if (limit === null || limit >= LIMITS.cassandra.mutationBytesMin) return
  throw new EngineUnfit(
    `Cassandra at ${host.address}: max_mutation_size is ${limit / 1_024} KiB (half of ` +
      `commitlog_segment_size unless it is set): Kontor needs ` +
      `${LIMITS.cassandra.mutationBytesMin / 1_024} KiB. Raise commitlog_segment_size in cassandra.yaml`,
  )
}

function warnAboutDurability(host: Host, settings: NodeSettings, log: Log): void {
  const node = host.address
  if (settings.get('commitlog_sync')?.startsWith('periodic') === true) {
    log.warn(
      { node, setting: 'commitlog_sync' },
      'commitlog_sync is periodic: an acknowledged write may not be on the disk yet; ' +
        'set it to group or batch',
    )
  }
  if (settings.get('paxos_variant')?.startsWith('v1') === true) {
    log.warn(
      { node, setting: 'paxos_variant' },
      'paxos_variant is v1: while nodes of Cassandra join or leave, conditional statements are ' +
        'not linearizable; set it to v2',
    )
  }
}

/** A conditional statement may wait for its turn and then for its write. */
function slowestMs(settings: NodeSettings): number {
  const ms = (name: string): number => msOf(settings.get(name)) ?? 0
  return Math.max(
    ms('cas_contention_timeout') + ms('write_request_timeout'),
    ms('read_request_timeout'),
    ms('range_request_timeout'),
  )
}

const BYTES: Readonly<Record<string, number>> = {
  B: 1,
  KiB: 1_024,
  MiB: 1_048_576,
  GiB: 1_073_741_824,
}

/** Bytes of `4096KiB`; null when it is not set. */
export function bytesOf(value: string | null | undefined): number | null {
  const [, number, unit] = /^(\d+)\s*(B|KiB|MiB|GiB)$/.exec(value ?? '') ?? []
  return number === undefined ? null : Number(number) * BYTES[unit!]!
}

const MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 }

/** Milliseconds of `10s`; null when it is not set. */
export function msOf(value: string | null | undefined): number | null {
  const [, number, unit] = /^(\d+)\s*(ms|s|m|h)$/.exec(value ?? '') ?? []
  return number === undefined ? null : Number(number) * MS[unit!]!
}
