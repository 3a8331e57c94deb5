// Which driver the specification's suite runs on: embedded by default, with SPEC_DRIVER=cluster the
// real engines, where the node that is asked is one of two members, so that about half of what it
// is asked goes over the wire.

import { randomBytes } from 'node:crypto'
import { engine } from './engines.ts'
import type { EngineAddress } from './engines.ts'

type Env = Record<string, string>

/** True when the suite is to run on the drivers of a cluster. */
export const onCluster = process.env['SPEC_DRIVER'] === 'cluster'

/**
 * Settings of members on a store of their own; null: the embedded driver. Rejects without engines.
 */
export async function clusterSettings(): Promise<Env | null> {
  if (!onCluster) return null
  const cassandra = await address('cassandra')
  const elasticsearch = await address('elasticsearch')
  const redis = await address('redis')
  const name = `spec_${randomBytes(6).toString('hex')}`
  return {
    KONTOR_STORAGE_DRIVER: 'cluster',
    KONTOR_CASSANDRA_CONTACT_POINTS: `${cassandra.host}:${cassandra.port}`,
    KONTOR_CASSANDRA_DATACENTER: 'datacenter1',
    KONTOR_CASSANDRA_KEYSPACE: name,
    KONTOR_ELASTICSEARCH_URL: `http://${elasticsearch.host}:${elasticsearch.port}`,
    KONTOR_ELASTICSEARCH_PREFIX: `${name}-`,
    KONTOR_REDIS_URL: `redis://${redis.host}:${redis.port}`,
    KONTOR_SHARDS: '8',
  }
}

async function address(name: 'cassandra' | 'elasticsearch' | 'redis'): Promise<EngineAddress> {
  const found = await engine(name)
  if ('skipped' in found) throw new Error(found.skipped)
  return found
}
