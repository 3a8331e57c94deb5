// Every setting once: its name in the environment, its key in the settings file, what it means,
// what may be given and what holds when nothing is. load.ts reads by it, and the printed reference
// is made of it. Source: CONTRACT 0.

import {
  BOOLEAN,
  HOST,
  integer,
  KEY_256,
  matching,
  NETWORKS,
  oneOf,
  ORIGINS,
  PATH,
  powerOfTwo,
  several,
  plainText,
  url,
} from './kinds.ts'
import { CLUSTER_TABLE } from './cluster-table.ts'
import { LIMITS } from './limits.ts'
import { OIDC_TABLE } from './oidc-table.ts'
import { row, type SettingRow } from './setting-row.ts'

export const TABLE = {
  KONTOR_HTTP_HOST: row({
    key: 'http.host',
    what: 'Address to listen on; 0.0.0.0 for every IPv4 address of the machine.',
    kind: HOST,
    initial: '127.0.0.1',
  }),
  KONTOR_HTTP_PORT: row({
    key: 'http.port',
    what: 'Port to listen on; 0 for one that is free.',
    kind: integer(0, 65_535, 'a port number'),
    initial: 8080,
  }),
  KONTOR_BASE_URL: row<string | null>({
    key: 'http.baseUrl',
    what: 'Public address of the service, used in links.',
    kind: url('http', 'https'),
    initial: null,
    initially: 'made of host and port',
  }),
  KONTOR_HTTP_TLS_KEY_FILE: row<string | null>({
    key: 'http.tlsKeyFile',
    what: 'PEM file of the private key; with it and the certificate the node speaks HTTPS.',
    kind: PATH,
    initial: null,
  }),
  KONTOR_HTTP_TLS_CERT_FILE: row<string | null>({
    key: 'http.tlsCertFile',
    what: 'PEM file of the certificate and its chain.',
    kind: PATH,
    initial: null,
  }),
  KONTOR_HTTP_CONNECTIONS_MAX: row({
    key: 'http.connectionsMax',
    what: 'Connections at once; further ones are closed (no more than the process may open files).',
    kind: integer(1, 1_000_000, 'a number of connections'),
    initial: 10_000,
  }),
  KONTOR_HTTP_PROXY_FROM: row<readonly string[]>({
    key: 'http.proxyFrom',
    what:
      'Proxies whose PROXY preamble (version 2) says where a caller is; they must speak HTTP, ' +
      'not pass on bytes. A preamble from anywhere else is refused.',
    kind: NETWORKS,
    initial: [],
  }),
  KONTOR_HTTP_FORWARDED_FROM: row<readonly string[]>({
    key: 'http.forwardedFrom',
    what:
      'Proxies whose X-Forwarded-For says where a caller is: the last address there that is none ' +
      'of them. From anywhere else the header counts for nothing.',
    kind: NETWORKS,
    initial: [],
  }),
  KONTOR_HTTP_CORS_ORIGINS: row<readonly string[]>({
    key: 'http.corsOrigins',
    what: 'Origins whose pages may read answers and open sockets in a browser, each exactly.',
    kind: ORIGINS,
    initial: [],
  }),
  KONTOR_RATE_CLIENT: row({
    key: 'rates.client',
    what: 'Requests with a token, of one client or principal in a minute; 0: any number.',
    kind: integer(0, 1_000_000_000, 'requests'),
    initial: 0,
  }),
  KONTOR_RATE_SIGN_IN_ADDRESS: row({
    key: 'rates.signInAddress',
    what: 'Sign-ins and token requests from one address in a minute; 0: any number.',
    kind: integer(0, 1_000_000_000, 'requests'),
    initial: 600,
  }),
  KONTOR_RATE_SIGN_IN_CLIENT: row({
    key: 'rates.signInClient',
    what: 'Token requests of one client that shows who it is, in a minute; 0: any number.',
    kind: integer(0, 1_000_000_000, 'requests'),
    initial: 150,
  }),
  KONTOR_WRONG_SIGN_INS: row({
    key: 'rates.wrongSignIns',
    what: 'Wrong secrets or passwords for one account from one address before each has to wait.',
    kind: integer(1, 1_000, 'wrong sign-ins'),
    initial: LIMITS.access.signInWrongMax,
  }),
  KONTOR_WRONG_SIGN_INS_MS: row({
    key: 'rates.wrongSignInsMs',
    what: 'How long it takes until so many wrong ones are forgotten.',
    kind: integer(1_000, 24 * 3_600_000, 'milliseconds'),
    initial: LIMITS.access.signInWrongMs,
  }),
  KONTOR_METRICS_PORT: row<number | null>({
    key: 'metrics.port',
    what:
      'Port for the metrics alone, all of them, for whoever reaches it; /metrics is not served ' +
      'on the other one then.',
    kind: integer(0, 65_535, 'a port number'),
    initial: null,
    initially: 'not set: /metrics is on the port of HTTP, whole with the ACE cluster:read',
  }),
  KONTOR_METRICS_HOST: row({
    key: 'metrics.host',
    what: 'Address on which that port listens.',
    kind: HOST,
    initial: '127.0.0.1',
  }),
  KONTOR_DATA_DIR: row({
    key: 'dataDir',
    what: 'Folder of the embedded store; made when it is missing.',
    kind: PATH,
    initial: './data',
  }),
  KONTOR_STORAGE_DRIVER: row<'embedded' | 'cluster'>({
    key: 'storageDriver',
    what: 'Where state is kept: embedded in the data folder, or in the engines of a cluster.',
    kind: oneOf('embedded', 'cluster'),
    initial: 'embedded',
  }),
  KONTOR_SHARDS: row<number | null>({
    key: 'shards',
    what: 'Number of shards of a new store; a store that is there refuses another number.',
    kind: powerOfTwo(1_024),
    initial: null,
    initially: 'as the store says, 32 for a new one',
  }),
  KONTOR_MEMBER_ID: row({
    key: 'memberId',
    what: 'Name of this process in the cluster.',
    kind: matching(
      '1 to 64 letters, digits, dots, hyphens or underscores, beginning with a letter or digit',
      /^[a-z0-9][a-z0-9._-]{0,63}$/i,
    ),
    initial: 'local',
  }),
  KONTOR_SAMPLE: row({
    key: 'sample',
    what: 'Load the sample orders into an empty embedded store (npm start does, unless told).',
    kind: BOOLEAN,
    initial: false,
  }),
  KONTOR_BOOTSTRAP_SECRET: row<string | null>({
    key: 'bootstrapSecret',
    what: 'Secret of the first client, `bootstrap`, in a store without identities.',
    kind: plainText(1_000, LIMITS.access.secretCharsMin),
    initial: null,
    initially: 'random, written to bootstrap.json in the data folder',
    secret: true,
  }),
  KONTOR_SECRETS_KEY: row<string | null>({
    key: 'secrets.key',
    what:
      'Encrypts secret values of the registry where they are kept: openssl rand -base64 32. The ' +
      'same for all members; without it the store can not be started on any more.',
    kind: KEY_256,
    initial: null,
    initially: 'not set: they are kept in clear text',
    secret: true,
  }),
  KONTOR_SECRETS_KEYS_OLD: row<readonly string[]>({
    key: 'secrets.keysOld',
    what: 'Further keys that such values may have been encrypted with.',
    kind: several(KEY_256),
    initial: [],
    secret: true,
  }),
  KONTOR_GRAPH_FILTER_FIELDS: row<'any' | 'granted'>({
    key: 'graphFilterFields',
    what:
      'Fields that graph filters and counts may look at: any of a node that the caller may query ' +
      '(they can find out hidden values by trying), or only those granted.',
    kind: oneOf('any', 'granted'),
    initial: 'any',
  }),
  KONTOR_GRAPH_READERS: row<number | null>({
    key: 'graphReaders',
    what: 'Threads that read the embedded graph index; heavy queries have all but one.',
    kind: integer(2, LIMITS.graph.readersMax, 'a number of threads'),
    initial: null,
    initially: `one a core, at least 2 and at most ${LIMITS.graph.readersDefaultMax}`,
  }),
  KONTOR_ORDER_COMPLETION: row<'manual' | 'automatic'>({
    key: 'orderCompletion',
    what:
      'Orders are completed by command, or by themselves once all is delivered and invoiced; the ' +
      'same on all members.',
    kind: oneOf('manual', 'automatic'),
    initial: 'manual',
  }),
  KONTOR_LOG_LEVEL: row<'trace' | 'debug' | 'info' | 'warn' | 'error' | 'silent'>({
    key: 'logLevel',
    what: 'The least level that is logged.',
    kind: oneOf('trace', 'debug', 'info', 'warn', 'error', 'silent'),
    initial: 'info',
  }),
  KONTOR_LOG_FORMAT: row<'auto' | 'text' | 'json'>({
    key: 'logFormat',
    what: 'Sentences or JSON lines; auto: sentences at a terminal, JSON elsewhere.',
    kind: oneOf('auto', 'text', 'json'),
    initial: 'auto',
  }),
  KONTOR_SHUTDOWN_MS: row({
    key: 'shutdownMs',
    what: 'Longest time from SIGTERM to the end, draining included.',
    kind: integer(0, 600_000, 'milliseconds'),
    initial: LIMITS.node.shutdownMs,
  }),
  KONTOR_SHUTDOWN_NOTICE_MS: row({
    key: 'shutdownNoticeMs',
    what: 'How long /health/ready says 503 on SIGTERM, all else going on, before draining begins.',
    kind: integer(0, 600_000, 'milliseconds'),
    initial: LIMITS.node.shutdownNoticeMs,
  }),
  KONTOR_ACCESS_TOKEN_MS: row({
    key: 'accessTokenMs',
    what: 'Lifetime of an access token.',
    kind: integer(1_000, 30 * 24 * 3_600_000, 'milliseconds'),
    initial: 3_600_000,
  }),
  KONTOR_REFRESH_TOKEN_MS: row({
    key: 'refreshTokenMs',
    what: 'Lifetime of a refresh token; each use of one gives another.',
    kind: integer(1_000, 366 * 24 * 3_600_000, 'milliseconds'),
    initial: 30 * 24 * 3_600_000,
  }),
  KONTOR_SMTP_URL: row<string | null>({
    key: 'smtpUrl',
    what: 'Mail server of the sendings.',
    kind: url('smtp', 'smtps'),
    initial: null,
    secret: true,
  }),
  ...OIDC_TABLE,
  ...CLUSTER_TABLE,
} as const

export type SettingName = keyof typeof TABLE

/** The checked value of every setting, by its name. */
export type SettingValues = {
  readonly [Name in SettingName]: (typeof TABLE)[Name] extends SettingRow<infer T> ? T : never
}

export const SETTING_NAMES = Object.keys(TABLE) as SettingName[]
