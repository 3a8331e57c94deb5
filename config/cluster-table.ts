// The settings of a cluster's engines: where they are, who the members are to them, and how they
// are known. Part of the table of settings. Source: CONTRACT 0.

import type { EngineName } from './engine-faults.ts'
import { addresses, BOOLEAN, integer, matching, oneOf, PATH, plainText, urls } from './kinds.ts'
import { row, type SettingRow } from './setting-row.ts'

type PathRow = SettingRow<string | null>

/** The PEM files of one engine; `when`: what makes them count. */
function tlsRows<E extends EngineName, K extends string>(engine: E, key: K, when: string) {
  const path = (name: string, what: string, initially?: string): PathRow => ({
    key: `${key}.${name}`,
    what: `${what} With ${when}.`,
    kind: PATH,
    initial: null,
    ...(initially === undefined ? {} : { initially }),
  })
  return {
    [`KONTOR_${engine}_TLS_CA_FILE`]: path(
      'tlsCaFile',
      'PEM file of the authorities that may have signed its certificate.',
      'those that Node.js knows of',
    ),
    [`KONTOR_${engine}_TLS_CERT_FILE`]: path(
      'tlsCertFile',
      'PEM file of the certificate that it asks a member for.',
    ),
    [`KONTOR_${engine}_TLS_KEY_FILE`]: path('tlsKeyFile', "PEM file of that certificate's key."),
  } as { readonly [Name in `KONTOR_${E}_TLS_${'CA' | 'CERT' | 'KEY'}_FILE`]: PathRow }
}

export const CLUSTER_TABLE = {
  KONTOR_REDIS_URL: row<readonly string[]>({
    key: 'cluster.redisUrl',
    what: 'Redis of the cluster.',
    kind: urls(6379, 'redis', 'rediss'),
    initial: [],
    secret: true,
  }),
  KONTOR_REDIS_USERNAME: row<string | null>({
    key: 'cluster.redis.username',
    what: 'Who the members are to Redis; its user `default` unless set. With the password.',
    kind: plainText(200),
    initial: null,
  }),
  KONTOR_REDIS_PASSWORD: row<string | null>({
    key: 'cluster.redis.password',
    what: 'Password for Redis, unless it is in the address.',
    kind: plainText(1_000),
    initial: null,
    secret: true,
  }),
  ...tlsRows('REDIS', 'cluster.redis', 'rediss:// addresses'),
  KONTOR_CASSANDRA_CONTACT_POINTS: row<readonly string[]>({
    key: 'cluster.cassandra.contactPoints',
    what: 'Cassandra nodes to begin with.',
    kind: addresses(9042),
    initial: [],
  }),
  KONTOR_CASSANDRA_KEYSPACE: row({
    key: 'cluster.cassandra.keyspace',
    what: 'Keyspace; made when it is missing.',
    kind: matching(
      '1 to 48 letters, digits or underscores, beginning with a letter',
      /^[a-z]\w{0,47}$/i,
    ),
    initial: 'kontor',
  }),
  KONTOR_CASSANDRA_DATACENTER: row<string | null>({
    key: 'cluster.cassandra.datacenter',
    what: 'Data centre of this node.',
    kind: plainText(100),
    initial: null,
  }),
  KONTOR_CASSANDRA_REPLICATION: row<number | null>({
    key: 'cluster.cassandra.replication',
    what: 'Copies of each row in a keyspace that is made.',
    kind: integer(1, 15, 'a number of copies'),
    initial: null,
    initially: '3, or the nodes of the data centre where there are fewer',
  }),
  KONTOR_CASSANDRA_SERIAL: row<'LOCAL_SERIAL' | 'SERIAL' | null>({
    key: 'cluster.cassandra.serial',
    what: 'Level of conditional writes; SERIAL where members are in several data centres.',
    kind: oneOf('LOCAL_SERIAL', 'SERIAL'),
    initial: null,
    initially: 'as the store says, LOCAL_SERIAL for a new one',
  }),
  KONTOR_CASSANDRA_USERNAME: row<string | null>({
    key: 'cluster.cassandra.username',
    what: 'Who the members are to Cassandra; with the password.',
    kind: plainText(200),
    initial: null,
  }),
  KONTOR_CASSANDRA_PASSWORD: row<string | null>({
    key: 'cluster.cassandra.password',
    what: 'Password of that user.',
    kind: plainText(1_000),
    initial: null,
    secret: true,
  }),
  KONTOR_CASSANDRA_TLS: row({
    key: 'cluster.cassandra.tls',
    what: 'Whether Cassandra is spoken to over TLS.',
    kind: BOOLEAN,
    initial: false,
  }),
  ...tlsRows('CASSANDRA', 'cluster.cassandra', 'KONTOR_CASSANDRA_TLS=true'),
  KONTOR_ELASTICSEARCH_URL: row<readonly string[]>({
    key: 'cluster.elasticsearch.url',
    what: 'Elasticsearch of the cluster.',
    kind: urls(9200, 'http', 'https'),
    initial: [],
    secret: true,
  }),
  KONTOR_ELASTICSEARCH_USERNAME: row<string | null>({
    key: 'cluster.elasticsearch.username',
    what: 'Who the members are to Elasticsearch; with the password.',
    kind: plainText(200),
    initial: null,
  }),
  KONTOR_ELASTICSEARCH_PASSWORD: row<string | null>({
    key: 'cluster.elasticsearch.password',
    what: 'Password of that user.',
    kind: plainText(1_000),
    initial: null,
    secret: true,
  }),
  KONTOR_ELASTICSEARCH_API_KEY: row<string | null>({
    key: 'cluster.elasticsearch.apiKey',
    what: 'API key for Elasticsearch, instead of a user and a password: as it encodes them.',
    kind: plainText(1_000),
    initial: null,
    secret: true,
  }),
  ...tlsRows('ELASTICSEARCH', 'cluster.elasticsearch', 'https:// addresses'),
  KONTOR_ELASTICSEARCH_PREFIX: row({
    key: 'cluster.elasticsearch.prefix',
    what: 'Put before the name of every index.',
    kind: matching(
      '1 to 50 lower-case letters, digits, hyphens or underscores, beginning with a letter',
      /^[a-z][a-z0-9_-]{0,49}$/,
    ),
    initial: 'kontor-',
  }),
} as const
