// The settings of a cluster's store for commands that open it without being a member. From the
// environment and settings file that members are started with.

import { randomFillSync } from 'node:crypto'
import { loadSettings } from '../config/load.ts'
import type { Log } from '../protocol/log.ts'
import type { CassandraOptions } from '../storage/cassandra/store.ts'

export type LoadedOptions =
  | { readonly options: CassandraOptions }
  | { readonly problems: readonly string[] }

/** What a member needs and such a command doesn't: it may be left out. */
const UNUSED = [
  '--default=KONTOR_MEMBER_ID=tool',
  '--default=KONTOR_REDIS_URL=redis://127.0.0.1',
  '--default=KONTOR_ELASTICSEARCH_URL=http://127.0.0.1',
]

/** The store that members with these settings would open, or every mistake as a line for people. */
export function cassandraOptions(
  env: Readonly<Record<string, string | undefined>>,
  config: string | undefined,
  readFile: (path: string) => string,
): LoadedOptions {
  const argv = config === undefined ? UNUSED : [...UNUSED, '--config', config]
  const all = { ...env, KONTOR_STORAGE_DRIVER: 'cluster' }
  const loaded = loadSettings(all, argv, readFile)
  if ('problems' in loaded) return loaded
  const { shards, cluster } = loaded.ok
  const { datacenter, ...cassandra } = cluster.cassandra
  return {
    options: {
      ...cassandra,
      // config/load.ts asks for it.
      datacenter: datacenter!,
      shards,
      log: STANDARD_ERROR,
      random: (bytes) => void randomFillSync(bytes),
      clock: Date.now,
      now: () => performance.now(),
    },
  }
}

/** The store of a node, or every mistake in its settings as a line for people. */
export type StoreOf =
  | { readonly isCluster: boolean; readonly dataDir: string }
  | { readonly problems: readonly string[] }

/**
 * Which store a node with these settings has. A file that names Cassandra is a member's, also where
 * only the environment of the members says that they are a cluster.
 */
export function storeOf(
  env: Readonly<Record<string, string | undefined>>,
  config: string | undefined,
  readFile: (path: string) => string,
): StoreOf {
  if (config === undefined) {
    const isCluster = env['KONTOR_STORAGE_DRIVER'] === 'cluster'
    return { isCluster, dataDir: env['KONTOR_DATA_DIR'] || './data' }
  }
  const loaded = loadSettings(env, [...UNUSED, '--config', config], readFile)
  if ('problems' in loaded) return loaded
  const { storageDriver, dataDir, cluster } = loaded.ok
  const namesCassandra = cluster.cassandra.contactPoints.length > 0
  return { isCluster: storageDriver === 'cluster' || namesCassandra, dataDir }
}

/** Warnings go where a command's own output isn't. */
const STANDARD_ERROR: Log = {
  debug() {},
  info() {},
  warn: (fields, text) => console.error(text, fields),
  error: (fields, text) => console.error(text, fields),
}
