// The settings of a cluster's engines: which of them belong together, and what the parts get.
// Source: CONTRACT 0.

import { createPrivateKey, X509Certificate } from 'node:crypto'
import type { EngineName } from './engine-faults.ts'
import type { ClusterSettings, EngineTls } from './settings.ts'
import type { SettingName, SettingValues } from './table.ts'

export interface Reading {
  readonly readFile: (path: string) => string
  readonly problems: string[]
}

/** Settings that are given together or not at all, with the reason. */
export const ENGINE_PAIRS: readonly (readonly [SettingName, SettingName, reason: string])[] = [
  [
    'KONTOR_ELASTICSEARCH_USERNAME',
    'KONTOR_ELASTICSEARCH_PASSWORD',
    'a user has both, without one neither is needed',
  ],
  ...(['REDIS', 'CASSANDRA', 'ELASTICSEARCH'] as const).map(
    (engine): [SettingName, SettingName, string] => [
      `KONTOR_${engine}_TLS_CERT_FILE`,
      `KONTOR_${engine}_TLS_KEY_FILE`,
      'a member shows both, or none',
    ],
  ),
]

/** Adds what can't be right together. */
export function checkEngines(values: SettingValues, { readFile, problems }: Reading): void {
  const { KONTOR_REDIS_URL: redis, KONTOR_ELASTICSEARCH_URL: elastic } = values
  if (values.KONTOR_REDIS_USERNAME !== null && values.KONTOR_REDIS_PASSWORD === null) {
    problems.push('KONTOR_REDIS_PASSWORD: not set, but KONTOR_REDIS_USERNAME is')
  }
  if (values.KONTOR_REDIS_PASSWORD !== null && redis.some(hasUser)) {
    problems.push('KONTOR_REDIS_PASSWORD: KONTOR_REDIS_URL has one already; give one of them')
  }
  const basic = values.KONTOR_ELASTICSEARCH_PASSWORD
  const key = values.KONTOR_ELASTICSEARCH_API_KEY
  if (basic !== null && key !== null) {
    problems.push(
      'KONTOR_ELASTICSEARCH_API_KEY: not with KONTOR_ELASTICSEARCH_PASSWORD; give one of them',
    )
  }
  if ((basic ?? key) !== null && elastic.some(hasUser)) {
    const name = `KONTOR_ELASTICSEARCH_${basic === null ? 'API_KEY' : 'PASSWORD'}`
    problems.push(`${name}: KONTOR_ELASTICSEARCH_URL has a user already; give one of them`)
  }
  const secure = {
    REDIS: redis.some(isSecure) ? null : 'no address in KONTOR_REDIS_URL is rediss://',
    CASSANDRA: values.KONTOR_CASSANDRA_TLS ? null : 'KONTOR_CASSANDRA_TLS is not true',
    ELASTICSEARCH: elastic.some(isSecure)
      ? null
      : 'no address in KONTOR_ELASTICSEARCH_URL is https://',
  }
  for (const [engine, lacks] of Object.entries(secure) as [EngineName, string | null][]) {
    checkTls(engine, lacks, values, { readFile, problems })
  }
}

function hasUser(url: string): boolean {
  const { username, password } = new URL(url)
  return username !== '' || password !== ''
}

function isSecure(url: string): boolean {
  return /^(rediss|https):/.test(url)
}

/** `lacks`: why the engine is spoken to in the clear; then no file of TLS is looked at. */
function checkTls(
  engine: EngineName,
  lacks: string | null,
  values: SettingValues,
  { readFile, problems }: Reading,
): void {
  const caName = `KONTOR_${engine}_TLS_CA_FILE` as const
  const certName = `KONTOR_${engine}_TLS_CERT_FILE` as const
  const [ca, cert, key] = [
    values[caName],
    values[certName],
    values[`KONTOR_${engine}_TLS_KEY_FILE`],
  ]
  if (lacks !== null) {
    const [name] = [ca === null ? null : caName, cert === null ? null : certName].filter(Boolean)
    if (name !== undefined) problems.push(`${name}: is set, but ${lacks}`)
    return
  }
  const text = (path: string | null): string | null => {
    try {
      return path === null ? null : readFile(path)
    } catch {
      // load.ts has said so of each.
      return null
    }
  }
  const [authority, own, secret] = [text(ca), text(cert), text(key)]
  try {
    if (authority !== null) void new X509Certificate(authority)
  } catch {
    problems.push(`${caName}: ${ca} holds no certificate that can be read`)
  }
  if (own === null || secret === null) return
  try {
    if (new X509Certificate(own).checkPrivateKey(createPrivateKey(secret))) return
    problems.push(`${certName}: ${cert} is not the certificate of the key in ${key}`)
  } catch {
    problems.push(`${certName}: ${cert} or ${key} can't be read as a certificate and its key`)
  }
}

/** The checked settings, with the files' contents. */
export function clusterSettings(
  values: SettingValues,
  readFile: Reading['readFile'],
): ClusterSettings {
  const { KONTOR_REDIS_PASSWORD: redisPassword, KONTOR_CASSANDRA_PASSWORD: password } = values
  const tls = (engine: EngineName): EngineTls => tlsOf(engine, values, readFile)
  const redisUrls = values.KONTOR_REDIS_URL
  const urls = values.KONTOR_ELASTICSEARCH_URL
  const username = values.KONTOR_CASSANDRA_USERNAME
  return {
    redisUrls,
    redis: {
      credentials:
        redisPassword === null
          ? null
          : { username: values.KONTOR_REDIS_USERNAME, password: redisPassword },
      tls: redisUrls.some(isSecure) ? tls('REDIS') : null,
    },
    cassandra: {
      contactPoints: values.KONTOR_CASSANDRA_CONTACT_POINTS,
      keyspace: values.KONTOR_CASSANDRA_KEYSPACE,
      datacenter: values.KONTOR_CASSANDRA_DATACENTER,
      replication: values.KONTOR_CASSANDRA_REPLICATION,
      serial: values.KONTOR_CASSANDRA_SERIAL,
      credentials: username === null || password === null ? null : { username, password },
      tls: values.KONTOR_CASSANDRA_TLS ? tls('CASSANDRA') : null,
    },
    elasticsearch: {
      urls,
      prefix: values.KONTOR_ELASTICSEARCH_PREFIX,
      auth: elasticAuth(values),
      tls: urls.some(isSecure) ? tls('ELASTICSEARCH') : null,
    },
  }
}

function elasticAuth(values: SettingValues): ClusterSettings['elasticsearch']['auth'] {
  const { KONTOR_ELASTICSEARCH_USERNAME: username, KONTOR_ELASTICSEARCH_API_KEY: apiKey } = values
  const { KONTOR_ELASTICSEARCH_PASSWORD: password } = values
  if (apiKey !== null) return { apiKey }
  return username === null || password === null ? null : { username, password }
}

function tlsOf(
  engine: EngineName,
  values: SettingValues,
  readFile: Reading['readFile'],
): EngineTls {
  const text = (path: string | null): string | null => (path === null ? null : readFile(path))
  return {
    ca: text(values[`KONTOR_${engine}_TLS_CA_FILE`]),
    cert: text(values[`KONTOR_${engine}_TLS_CERT_FILE`]),
    key: text(values[`KONTOR_${engine}_TLS_KEY_FILE`]),
  }
}
