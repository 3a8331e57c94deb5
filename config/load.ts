// Reads the settings of a process. Environment over settings file over `--default`. Every mistake
// is named at once, with what was given and what would be right. Source: CONTRACT 0, Settings.

import { RequestError } from '../protocol/errors.ts'
import { parseJson } from '../protocol/json/json.ts'
import { suggestion } from '../protocol/near-names.ts'
import { readArguments, type Arguments } from './arguments.ts'
import { checkEngines, clusterSettings, ENGINE_PAIRS, type Reading } from './load-cluster.ts'
import { checkOidc, oidcSettings } from './load-oidc.ts'
import type { Settings } from './settings.ts'
import { SETTING_NAMES, TABLE, type SettingName, type SettingValues } from './table.ts'

/** Exit code of a process whose settings are wrong: EX_CONFIG of sysexits. */
export const EXIT_CONFIG = 78

export type LoadedSettings = { readonly ok: Settings } | { readonly problems: readonly string[] }

/**
 * The settings out of `env` (its `KONTOR_` variables; an empty one counts as not set) and `argv`
 * (without program and script).
 *
 * @param readFile reads a text file; what it throws becomes a problem
 * @returns the settings, or every mistake as a line for people; the caller then exits with 78
 */
export function loadSettings(
  env: Readonly<Record<string, string | undefined>>,
  argv: readonly string[],
  readFile: (path: string) => string,
): LoadedSettings {
  const problems: string[] = []
  const given = readArguments(argv, problems)
  const texts = new Map<SettingName, Given>()
  for (const { name, text } of given.defaults) texts.set(name, { text, from: `--default ${name}` })
  const reading = { readFile, texts, problems }
  if (given.configFile !== null) readSettingsFile(given.configFile, reading)
  readEnvironment(env, reading)

  const values = valuesOf(texts, problems)
  checkPairs(values, problems)
  checkProxy(values, problems)
  checkPorts(values, problems)
  checkOidc(values, texts, problems)
  if (values.KONTOR_SECRETS_KEY === null && values.KONTOR_SECRETS_KEYS_OLD.length > 0) {
    problems.push('KONTOR_SECRETS_KEY: not set, but KONTOR_SECRETS_KEYS_OLD is')
  }
  if (values.KONTOR_STORAGE_DRIVER === 'cluster') checkCluster(texts, problems)
  for (const name of SETTING_NAMES.filter(isPem)) checkPem(name, values[name], reading)
  checkEngines(values, reading)
  checkAcceptedLoss(given, values.KONTOR_SHARDS, problems)
  return problems.length > 0 ? { problems } : { ok: settingsOf(values, given, reading) }
}

/** What was given for a setting, and where: the start of a message about it. */
interface Given {
  readonly text: string
  readonly from: string
}

interface Texts extends Reading {
  readonly texts: Map<SettingName, Given>
}

function readEnvironment(env: Readonly<Record<string, string | undefined>>, reading: Texts): void {
  const { texts, problems } = reading
  for (const [name, text] of Object.entries(env)) {
    if (!name.startsWith('KONTOR_') || text === undefined) continue
    if (name in TABLE) {
      if (text.trim() !== '') texts.set(name as SettingName, { text, from: name })
      continue
    }
    const secret = SETTING_NAMES.find((one) => isSecret(one) && name === `${one}_FILE`)
    if (secret !== undefined) {
      if (text.trim() === '') continue
      if ((env[secret] ?? '').trim() !== '') problems.push(`${name}: not with ${secret}; give one`)
      else readSecret(secret, { path: text.trim(), from: name }, reading)
    } else if (!isServiceLink(name, text)) {
      problems.push(`${name}: there is no such setting${suggestion(name, SETTING_NAMES)}`)
    }
  }
}

function isSecret(name: SettingName): boolean {
  return 'secret' in TABLE[name]
}

/** A secret out of a file, as containers are given theirs; the line end behind it is none of it. */
function readSecret(
  name: SettingName,
  { path, from }: { readonly path: string; readonly from: string },
  { readFile, texts, problems }: Texts,
): void {
  try {
    const text = readFile(path).trim()
    if (text === '') problems.push(`${from}: ${path} is empty; must hold ${TABLE[name].kind.rule}`)
    else texts.set(name, { text, from: `${from}: ${path}` })
  } catch (error) {
    problems.push(`${from}: ${path} can't be read: ${(error as Error).message}`)
  }
}

/** Kubernetes and Docker links set these for a service called kontor; they are not settings. */
function isServiceLink(name: string, text: string): boolean {
  if (/_SERVICE_(HOST|PORT(_\w+)?)$/.test(name)) return true
  if (/_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?$/.test(name)) return true
  return name.endsWith('_PORT') && /^(tcp|udp|sctp):\/\//.test(text)
}

function readSettingsFile(path: string, reading: Texts): void {
  const { readFile, texts, problems } = reading
  let content: unknown
  try {
    content = parseJson(Buffer.from(readFile(path)))
  } catch (error) {
    problems.push(`--config ${path}: ${(error as Error).message}`)
    return
  }
  // Told by its place: the parser's own words repeat the text around it, which may be a secret.
  if (content instanceof RequestError) {
    problems.push(`--config ${path}: ${content.message}`)
    return
  }
  if (!isObject(content)) {
    problems.push(`--config ${path}: must hold one JSON object, such as {"http": {"port": 8080}}`)
    return
  }
  for (const [key, value] of leaves(content, '')) {
    const name = SETTING_NAMES.find((candidate) => TABLE[candidate].key === key)
    const secret = SETTING_NAMES.find((one) => isSecret(one) && `${TABLE[one].key}File` === key)
    if (secret !== undefined) {
      if (typeof value === 'string' && value !== '') {
        readSecret(secret, { path: value, from: `${path}: ${key}` }, reading)
      } else if (value !== null && value !== '') problems.push(`${path}: ${key}: must be a path`)
    } else if (name === undefined) {
      const keys = SETTING_NAMES.map((candidate) => TABLE[candidate].key)
      problems.push(`${path}: ${key}: there is no such setting${suggestion(key, keys)}`)
    } else if (isObject(value)) {
      problems.push(`${path}: ${key}: is an object; must be ${TABLE[name].kind.rule}`)
    } else if (value !== null && value !== '') {
      const text = typeof value === 'string' ? value : textOf(value)
      texts.set(name, { text, from: `${path}: ${key}` })
    }
  }
}

/** What the environment would hold for a value of the file: lists are divided by commas. */
function textOf(value: unknown): string {
  return Array.isArray(value) ? value.join(',') : JSON.stringify(value)
}

/** Members that are settings, and those inside members that are not. */
function* leaves(object: Record<string, unknown>, prefix: string): Generator<[string, unknown]> {
  for (const [member, value] of Object.entries(object)) {
    const key = `${prefix}${member}`
    const isGroup = SETTING_NAMES.some((name) => TABLE[name].key.startsWith(`${key}.`))
    if (isGroup && isObject(value)) yield* leaves(value, `${key}.`)
    else yield [key, value]
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The checked value of every setting; one that is wrong becomes a problem and its default. */
function valuesOf(texts: ReadonlyMap<SettingName, Given>, problems: string[]): SettingValues {
  const values: Partial<Record<SettingName, unknown>> = {}
  for (const name of SETTING_NAMES) {
    const { kind, initial } = TABLE[name]
    const given = texts.get(name)
    const value = given === undefined ? initial : kind.parse(given.text.trim())
    if (given !== undefined && value === undefined) {
      const shown = isSecret(name) ? 'this value' : JSON.stringify(given.text)
      problems.push(`${given.from}: ${shown} is not valid; must be ${kind.rule}`)
    }
    values[name] = value ?? initial
  }
  return values as SettingValues
}

/** Settings that are given together or not at all, with the reason. */
const PAIRS: readonly (readonly [SettingName, SettingName, reason: string])[] = [
  ['KONTOR_HTTP_TLS_KEY_FILE', 'KONTOR_HTTP_TLS_CERT_FILE', 'HTTPS needs both, HTTP neither'],
  [
    'KONTOR_CASSANDRA_USERNAME',
    'KONTOR_CASSANDRA_PASSWORD',
    'a user has both, without one neither is needed',
  ],
  ...ENGINE_PAIRS,
]

function checkPairs(values: SettingValues, problems: string[]): void {
  for (const [one, other, reason] of PAIRS) {
    if ((values[one] === null) === (values[other] === null)) continue
    const [there, missing] = values[one] === null ? [other, one] : [one, other]
    problems.push(`${missing}: not set, but ${there} is; ${reason}`)
  }
}

/** A preamble comes before TLS, and is read behind it. */
function checkProxy(values: SettingValues, problems: string[]): void {
  if (values.KONTOR_HTTP_PROXY_FROM.length === 0) return
  if (values.KONTOR_HTTP_TLS_KEY_FILE === null) return
  problems.push(
    'KONTOR_HTTP_PROXY_FROM: not with KONTOR_HTTP_TLS_KEY_FILE; a preamble is not read before ' +
      'TLS, so the proxy must be where TLS ends',
  )
}

function checkPorts(values: SettingValues, problems: string[]): void {
  const { KONTOR_METRICS_PORT: port, KONTOR_METRICS_HOST: host } = values
  if (port === null || port === 0 || port !== values.KONTOR_HTTP_PORT) return
  if (host !== values.KONTOR_HTTP_HOST) return
  problems.push(`KONTOR_METRICS_PORT: ${port} is the port of HTTP; must be another, or not be set`)
}

const NEEDED_BY_CLUSTER: readonly SettingName[] = [
  'KONTOR_MEMBER_ID',
  'KONTOR_REDIS_URL',
  'KONTOR_CASSANDRA_CONTACT_POINTS',
  'KONTOR_CASSANDRA_DATACENTER',
  'KONTOR_ELASTICSEARCH_URL',
]

function checkCluster(texts: ReadonlyMap<SettingName, Given>, problems: string[]): void {
  for (const name of NEEDED_BY_CLUSTER) {
    if (texts.has(name)) continue
    problems.push(`${name}: not set, but a cluster needs it; must be ${TABLE[name].kind.rule}`)
  }
}

type PemName = Extract<SettingName, `${string}_TLS_${string}_FILE`>

function isPem(name: SettingName): name is PemName {
  return /_TLS_\w+_FILE$/.test(name)
}

function checkPem(name: SettingName, path: string | null, { readFile, problems }: Reading): void {
  if (path === null) return
  try {
    if (!readFile(path).includes('-----BEGIN ')) {
      problems.push(`${name}: ${path} is not a PEM file; it must hold a line -----BEGIN ...-----`)
    }
  } catch (error) {
    problems.push(`${name}: ${path} can't be read: ${(error as Error).message}`)
  }
}

function checkAcceptedLoss(
  { acceptLoss }: Arguments,
  shards: number | null,
  problems: string[],
): void {
  for (const { shard, offset } of acceptLoss) {
    if (shards === null || shard < shards) continue
    problems.push(
      `--accept-loss ${shard}:${offset}: there are ${shards} shards; must be 0 to ${shards - 1}`,
    )
  }
}

function settingsOf(
  values: SettingValues,
  { acceptLoss }: Arguments,
  reading: Pick<Reading, 'readFile'>,
): Settings {
  return {
    http: {
      host: values.KONTOR_HTTP_HOST,
      port: values.KONTOR_HTTP_PORT,
      baseUrl: values.KONTOR_BASE_URL ?? baseUrlOf(values),
      tlsKeyFile: values.KONTOR_HTTP_TLS_KEY_FILE,
      tlsCertFile: values.KONTOR_HTTP_TLS_CERT_FILE,
      connectionsMax: values.KONTOR_HTTP_CONNECTIONS_MAX,
      proxyFrom: values.KONTOR_HTTP_PROXY_FROM,
      forwardedFrom: values.KONTOR_HTTP_FORWARDED_FROM,
      corsOrigins: values.KONTOR_HTTP_CORS_ORIGINS,
    },
    rates: {
      client: values.KONTOR_RATE_CLIENT,
      signInAddress: values.KONTOR_RATE_SIGN_IN_ADDRESS,
      signInClient: values.KONTOR_RATE_SIGN_IN_CLIENT,
      wrongSignIns: values.KONTOR_WRONG_SIGN_INS,
      wrongSignInsMs: values.KONTOR_WRONG_SIGN_INS_MS,
    },
    metrics: { host: values.KONTOR_METRICS_HOST, port: values.KONTOR_METRICS_PORT },
    dataDir: values.KONTOR_DATA_DIR,
    storageDriver: values.KONTOR_STORAGE_DRIVER,
    shards: values.KONTOR_SHARDS,
    memberId: values.KONTOR_MEMBER_ID,
    // `npm start` gives it as a default to members, too: what a cluster has is not for it to fill.
    sample: values.KONTOR_SAMPLE && values.KONTOR_STORAGE_DRIVER === 'embedded',
    bootstrapSecret: values.KONTOR_BOOTSTRAP_SECRET,
    graphFilterFields: values.KONTOR_GRAPH_FILTER_FIELDS,
    graphReaders: values.KONTOR_GRAPH_READERS,
    secrets: { key: values.KONTOR_SECRETS_KEY, oldKeys: values.KONTOR_SECRETS_KEYS_OLD },
    orderCompletion: values.KONTOR_ORDER_COMPLETION,
    logLevel: values.KONTOR_LOG_LEVEL,
    logFormat: values.KONTOR_LOG_FORMAT,
    shutdownMs: values.KONTOR_SHUTDOWN_MS,
    shutdownNoticeMs: values.KONTOR_SHUTDOWN_NOTICE_MS,
    accessTokenMs: values.KONTOR_ACCESS_TOKEN_MS,
    refreshTokenMs: values.KONTOR_REFRESH_TOKEN_MS,
    acceptLoss,
    smtpUrl: values.KONTOR_SMTP_URL,
    oidc: oidcSettings(values),
    cluster: clusterSettings(values, reading.readFile),
  }
}

/** A link to where the node listens; one that listens everywhere is reached as localhost. */
function baseUrlOf(values: SettingValues): string {
  const { KONTOR_HTTP_HOST: host, KONTOR_HTTP_PORT: port } = values
  const scheme = values.KONTOR_HTTP_TLS_KEY_FILE === null ? 'http' : 'https'
  const everywhere = host === '0.0.0.0' || host === '::'
  const name = everywhere ? 'localhost' : host.includes(':') ? `[${host}]` : host
  const usual = scheme === 'http' ? 80 : 443
  return port === usual ? `${scheme}://${name}` : `${scheme}://${name}:${port}`
}
