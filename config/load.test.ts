// Settings from the environment, the file and the command line, and what is said of mistakes.

import fc from 'fast-check'
import t from 'tap'
import { keyAndCertificate } from '../test/harness/self-signed.ts'
import { EXIT_CONFIG, loadSettings } from './load.ts'
import { settingsReference } from './reference.ts'
import type { Settings } from './settings.ts'
import { SETTING_NAMES, TABLE } from './table.ts'

const PEM = '-----BEGIN CERTIFICATE-----\n'

/** A reader of these files and no others. */
function files(contents: Record<string, string> = {}) {
  return (path: string) => {
    const content = contents[path]
    if (content === undefined) throw new Error(`no such file: ${path}`)
    return content
  }
}

function load(env: Record<string, string>, argv: string[] = [], read = files()): Settings {
  const loaded = loadSettings(env, argv, read)
  if ('problems' in loaded) throw new Error(loaded.problems.join('\n'))
  return loaded.ok
}

function problems(env: Record<string, string>, argv: string[] = [], read = files()) {
  const loaded = loadSettings(env, argv, read)
  return 'problems' in loaded ? loaded.problems : []
}

t.test('without anything given the defaults hold', async (t) => {
  const settings = load({ PATH: '/bin' })
  t.match(settings, {
    http: { host: '127.0.0.1', port: 8080, baseUrl: 'http://127.0.0.1:8080', tlsKeyFile: null },
    dataDir: './data',
    storageDriver: 'embedded',
    shards: null,
    sample: false,
    bootstrapSecret: null,
    graphFilterFields: 'any',
    graphReaders: null,
    orderCompletion: 'manual',
    logLevel: 'info',
    logFormat: 'auto',
    shutdownMs: 30_000,
    accessTokenMs: 3_600_000,
    refreshTokenMs: 2_592_000_000,
    acceptLoss: [],
  })
  t.equal(EXIT_CONFIG, 78)
})

t.test('the environment counts before the file, the file before --default', async (t) => {
  const argv = [
    '--config',
    's.json',
    '--default',
    'KONTOR_SAMPLE=true',
    '--default=KONTOR_SHARDS=4',
  ]
  const read = files({ 's.json': '{"shards": 8, "http": {"port": 9000, "host": "::1"}}' })
  const settings = load({ KONTOR_HTTP_PORT: '9001' }, argv, read)
  t.equal(settings.http.port, 9001, 'environment')
  t.equal(settings.shards, 8, 'file')
  t.equal(settings.sample, true, '--default')
  t.equal(settings.http.baseUrl, 'http://[::1]:9001')
  t.equal(load({ KONTOR_SAMPLE: 'false' }, argv, read).sample, false)
})

t.test('an empty variable counts as not set', async (t) => {
  t.equal(load({ KONTOR_BOOTSTRAP_SECRET: '', KONTOR_HTTP_PORT: ' ' }).http.port, 8080)
})

t.test('the public address is made of host, port and scheme', async (t) => {
  const of = (env: Record<string, string>) => load(env, [], files({ k: PEM, c: PEM })).http.baseUrl
  const tls = { KONTOR_HTTP_TLS_KEY_FILE: 'k', KONTOR_HTTP_TLS_CERT_FILE: 'c' }
  t.equal(of({ KONTOR_HTTP_HOST: '0.0.0.0', KONTOR_HTTP_PORT: '80' }), 'http://localhost')
  t.equal(of({ ...tls, KONTOR_HTTP_HOST: '::', KONTOR_HTTP_PORT: '443' }), 'https://localhost')
  t.equal(of({ ...tls, KONTOR_HTTP_PORT: '80' }), 'https://127.0.0.1:80')
  t.equal(of({ KONTOR_BASE_URL: 'https://shop.example/api/' }), 'https://shop.example/api')
  t.equal(of({ KONTOR_BASE_URL: 'HTTPS://shop.example' }), 'https://shop.example', 'so TLS is seen')
  for (const wrong of ['https:shop.example', 'https://shop.example/ a']) {
    t.match(problems({ KONTOR_BASE_URL: wrong }), [/^KONTOR_BASE_URL/], wrong)
  }
})

t.test('all mistakes are listed at once, each with what would be right', async (t) => {
  const found = problems(
    {
      KONTOR_HTTP_PORT: '99999',
      KONTOR_HTPP_HOST: 'x',
      KONTOR_SHARDS: '12',
      KONTOR_SAMPLE: 'yes',
      KONTOR_HTTP_TLS_KEY_FILE: 'gone.pem',
    },
    ['--config', 's.json', '--confg', '--accept-loss', '3', '--default', 'KONTOR_X'],
    files({ 's.json': '{"http": {"prt": 1, "port": true}, "dataDir": {}, "logLevel": "loud"}' }),
  )
  const expected = [
    /^--confg: there is no such option; did you mean --config\?$/,
    /^--accept-loss 3: must be SHARD:OFFSET, such as 3:1200$/,
    /^--default KONTOR_X: must be NAME=VALUE with the name of a setting/,
    /^s\.json: http\.prt: there is no such setting; did you mean .*http\.port/,
    /^s\.json: dataDir: is an object; must be a path/,
    /^KONTOR_HTPP_HOST: there is no such setting; did you mean KONTOR_HTTP_HOST/,
    /^KONTOR_HTTP_PORT: "99999" is not valid; must be a port number from 0 to 65535$/,
    /^KONTOR_SHARDS: "12" is not valid; must be a power of two from 1 to 1024$/,
    /^KONTOR_SAMPLE: "yes" is not valid; must be true or false$/,
    /^s\.json: logLevel: "loud" is not valid; must be trace, .* or silent$/,
    /^KONTOR_HTTP_TLS_CERT_FILE: not set, but KONTOR_HTTP_TLS_KEY_FILE is/,
    /^KONTOR_HTTP_TLS_KEY_FILE: gone\.pem can't be read: no such file/,
  ]
  for (const pattern of expected)
    t.ok(
      found.some((line) => pattern.test(line)),
      `${pattern}`,
    )
  t.equal(found.length, expected.length, found.join('\n'))
})

t.test('the settings file: unreadable, not JSON, not an object', async (t) => {
  const of = (content: string) => problems({}, ['--config=s.json'], files({ 's.json': content }))[0]
  t.match(problems({}, ['--config', 'none.json'])[0], /^--config none\.json: no such file/)
  t.match(of('{"http":'), /^--config s\.json: .*JSON/)
  t.match(of('{"http":'), /line 1, column 9 there is the end of the text/)
  const secret = '{\n  "bootstrapSecret": hunter2hunter2hunter2\n}'
  t.match(of(secret), /line 2, column 22/)
  t.notMatch(of(secret), 'hunter2', 'the text around is not repeated')
  t.match(of('[]'), /must hold one JSON object/)
  t.match(problems({}, ['--config'])[0], /^--config: must be followed by FILE$/)
  const twice = problems({}, ['--config=s', '--config=s'], files({ s: '{}' }))
  t.match(twice[0], /given twice/)
})

t.test('a member of the file that is null counts as not set', async (t) => {
  t.equal(load({}, ['--config=s'], files({ s: '{"shards": null, "smtpUrl": null}' })).shards, null)
})

t.test('a bootstrap secret has at least 16 characters', async (t) => {
  const [found] = problems({ KONTOR_BOOTSTRAP_SECRET: 'fifteen-letters' })
  t.match(found, /16 to 1000 characters/)
  const secret = 'sixteen-letters.'
  t.equal(load({ KONTOR_BOOTSTRAP_SECRET: secret }).bootstrapSecret, secret)
})

t.test('proxies are addresses and networks, and not before TLS', async (t) => {
  const of = (text: string) => load({ KONTOR_HTTP_PROXY_FROM: text }).http.proxyFrom
  t.strictSame(of('10.0.0.5, 10.0.0.0/8,2001:db8::/32, ::1'), [
    '10.0.0.5',
    '10.0.0.0/8',
    '2001:db8::/32',
    '::1',
  ])
  for (const text of [
    'on',
    'proxy:80',
    '10.0.0.0/33',
    '::/129',
    '10.0.0.1,',
    '10.0.0.0/',
    '1/2/3',
  ]) {
    t.match(problems({ KONTOR_HTTP_PROXY_FROM: text })[0], /must be an IP address or a network/)
  }
  const pem = { KONTOR_HTTP_TLS_KEY_FILE: 'k', KONTOR_HTTP_TLS_CERT_FILE: 'c' }
  const both = problems({ ...pem, KONTOR_HTTP_PROXY_FROM: '::1' }, [], files({ k: PEM, c: PEM }))
  t.match(both, [/^KONTOR_HTTP_PROXY_FROM: not with KONTOR_HTTP_TLS_KEY_FILE/])
})

t.test('the key for secrets is 32 bytes of base64, and older ones come with it', async (t) => {
  const keyOf = (byte: number): string => Buffer.alloc(32, byte).toString('base64')
  const [key, old] = [keyOf(7), keyOf(8)]
  const env = { KONTOR_SECRETS_KEY: key, KONTOR_SECRETS_KEYS_OLD: `${old}, ${key}` }
  t.strictSame(load(env).secrets, { key, oldKeys: [old, key] })
  t.strictSame(load({}).secrets, { key: null, oldKeys: [] })
  t.match(problems({ KONTOR_SECRETS_KEYS_OLD: old }), [/^KONTOR_SECRETS_KEY: not set, but/])
  for (const wrong of [key.slice(4), `${key}AAAA`, 'secret', `*${key.slice(1)}`]) {
    const found = problems({ KONTOR_SECRETS_KEY: wrong })
    t.match(found, [/^KONTOR_SECRETS_KEY: this value is not valid; must be base64 of 32 bytes/])
  }
})

t.test('secrets are never shown', async (t) => {
  const secret = 'hunter2\u0001'
  const found = problems({
    KONTOR_BOOTSTRAP_SECRET: secret,
    KONTOR_SMTP_URL: 'ftp://user:hunter2@mail',
    KONTOR_REDIS_URL: 'redis://:hunter2@a?x=1',
  })
  t.equal(found.length, 3)
  t.notMatch(found.join('\n'), /hunter2/)
})

t.test('the metrics may have a port of their own, and not the one of HTTP', async (t) => {
  t.strictSame(load({}).metrics, { host: '127.0.0.1', port: null })
  const env = { KONTOR_METRICS_PORT: '9100', KONTOR_METRICS_HOST: '0.0.0.0' }
  t.strictSame(load(env).metrics, { host: '0.0.0.0', port: 9100 })
  t.match(problems({ KONTOR_METRICS_PORT: '8080' }), [/^KONTOR_METRICS_PORT: 8080 is the port of/])
  t.equal(load({ ...env, KONTOR_METRICS_PORT: '8080' }).metrics.port, 8080, 'another address')
})

t.test("variables that a service named kontor brings along are nobody's mistake", async (t) => {
  const env = {
    KONTOR_SERVICE_HOST: '10.0.0.1',
    KONTOR_SERVICE_PORT: '8080',
    KONTOR_SERVICE_PORT_HTTP: '8080',
    KONTOR_PORT: 'tcp://10.0.0.1:8080',
    KONTOR_PORT_8080_TCP: 'tcp://10.0.0.1:8080',
    KONTOR_PORT_8080_TCP_ADDR: '10.0.0.1',
  }
  t.strictSame(problems(env), [])
  t.equal(problems({ KONTOR_PORT: '8080' }).length, 1, 'a mistyped KONTOR_HTTP_PORT is')
})

t.test('--accept-loss', async (t) => {
  const argv = ['--accept-loss', '3:1200', '--accept-loss=0:0']
  const expected = [
    { shard: 3, offset: 1200 },
    { shard: 0, offset: 0 },
  ]
  t.strictSame(load({}, argv).acceptLoss, expected)
  t.match(problems({ KONTOR_SHARDS: '2' }, argv), [/^--accept-loss 3:1200: there are 2 shards/])
})

t.test('the cluster: its addresses are read, what is missing is named', async (t) => {
  const env = {
    KONTOR_REDIS_URL: 'redis-1, rediss://redis-2:7000',
    KONTOR_CASSANDRA_CONTACT_POINTS: 'c1,c2:9999,::1,[::2]:9998',
    KONTOR_CASSANDRA_DATACENTER: 'dc1',
    KONTOR_CASSANDRA_REPLICATION: '3',
    KONTOR_ELASTICSEARCH_URL: 'e1:9201',
  }
  t.strictSame(load(env).cluster, {
    redisUrls: ['redis://redis-1:6379', 'rediss://redis-2:7000'],
    redis: { credentials: null, tls: { ca: null, cert: null, key: null } },
    cassandra: {
      contactPoints: ['c1:9042', 'c2:9999', '[::1]:9042', '[::2]:9998'],
      keyspace: 'kontor',
      datacenter: 'dc1',
      replication: 3,
      serial: null,
      credentials: null,
      tls: null,
    },
    elasticsearch: { urls: ['http://e1:9201'], prefix: 'kontor-', auth: null, tls: null },
  })
  const access = {
    KONTOR_CASSANDRA_SERIAL: 'SERIAL',
    KONTOR_CASSANDRA_USERNAME: 'kontor',
    KONTOR_CASSANDRA_PASSWORD: 'a: b',
  }
  t.match(load({ ...env, ...access }).cluster.cassandra, {
    serial: 'SERIAL',
    credentials: { username: 'kontor', password: 'a: b' },
  })
  for (const [given, missing] of [
    ['USERNAME', 'PASSWORD'],
    ['PASSWORD', 'USERNAME'],
  ]) {
    const [line, ...more] = problems({ [`KONTOR_CASSANDRA_${given}`]: 'secret-of-ours' })
    t.match(line, new RegExp(`^KONTOR_CASSANDRA_${missing}: not set, but`))
    t.notMatch(line, 'secret-of-ours')
    t.strictSame(more, [])
  }
  const chosen = { KONTOR_STORAGE_DRIVER: 'cluster' }
  const whole = { ...env, ...chosen, KONTOR_MEMBER_ID: 'one' }
  t.equal(load(whole).storageDriver, 'cluster')
  t.equal(load(whole, ['--default', 'KONTOR_SAMPLE=true']).sample, false, 'no sample comes into it')
  const names = problems(chosen).map((line) => line.split(':')[0])
  t.strictSame(names, [
    'KONTOR_MEMBER_ID',
    'KONTOR_REDIS_URL',
    'KONTOR_CASSANDRA_CONTACT_POINTS',
    'KONTOR_CASSANDRA_DATACENTER',
    'KONTOR_ELASTICSEARCH_URL',
  ])
  for (const wrong of ['c1,,c2', 'c1:0', 'c1:65536', 'a b', '-x']) {
    t.equal(problems({ KONTOR_CASSANDRA_CONTACT_POINTS: wrong }).length, 1, wrong)
  }
})

t.test('a secret may be in a file, named in the environment or in the settings file', async (t) => {
  const read = files({
    secret: 'of 16 characters or more\n',
    empty: '\n',
    s: '{"cluster": {"redis": {"passwordFile": "secret"}}, "bootstrapSecretFile": "empty"}',
  })
  const env = { KONTOR_BOOTSTRAP_SECRET_FILE: 'secret', KONTOR_REDIS_PASSWORD_FILE: 'secret' }
  const settings = load(env, [], read)
  t.equal(settings.bootstrapSecret, 'of 16 characters or more')
  t.strictSame(settings.cluster.redis.credentials, {
    username: null,
    password: 'of 16 characters or more',
  })
  t.match(problems({}, ['--config=s'], read), [/^s: bootstrapSecretFile: empty is empty; must/])
  const both = { ...env, KONTOR_REDIS_PASSWORD: 'x', KONTOR_HTTP_PORT_FILE: 'secret' }
  t.match(problems({ ...both, KONTOR_SMTP_URL_FILE: 'gone' }, [], read), [
    /^KONTOR_REDIS_PASSWORD_FILE: not with KONTOR_REDIS_PASSWORD; give one$/,
    /^KONTOR_HTTP_PORT_FILE: there is no such setting/,
    /^KONTOR_SMTP_URL_FILE: gone can't be read: no such file/,
  ])
  const wrong = problems({ KONTOR_SMTP_URL_FILE: 'secret' }, [], read)
  t.match(wrong, [/^KONTOR_SMTP_URL_FILE: secret: this value is not valid; must be an address/])
  t.notMatch(wrong.join(), 'of 16')
})

t.test('engines over TLS, and what is not right together', async (t) => {
  const { key, cert } = keyAndCertificate()
  const read = files({ ca: cert, cert, key, other: keyAndCertificate().key, none: 'x', junk: PEM })
  const env = {
    KONTOR_REDIS_URL: 'rediss://r',
    KONTOR_REDIS_TLS_CA_FILE: 'ca',
    KONTOR_CASSANDRA_TLS: 'true',
    KONTOR_CASSANDRA_TLS_CERT_FILE: 'cert',
    KONTOR_CASSANDRA_TLS_KEY_FILE: 'key',
    KONTOR_ELASTICSEARCH_URL: 'https://e',
    KONTOR_ELASTICSEARCH_API_KEY: 'k',
  }
  t.match(load(env, [], read).cluster, {
    redis: { tls: { ca: cert, cert: null, key: null } },
    cassandra: { tls: { ca: null, cert, key } },
    elasticsearch: { auth: { apiKey: 'k' }, tls: { ca: null, cert: null, key: null } },
  })
  const basic = { KONTOR_ELASTICSEARCH_USERNAME: 'u', KONTOR_ELASTICSEARCH_PASSWORD: 'p' }
  const { auth } = load(basic).cluster.elasticsearch
  t.strictSame(auth, { username: 'u', password: 'p' })
  const of = (more: Record<string, string>) => problems({ ...env, ...more }, [], read)
  t.match(of({ KONTOR_REDIS_URL: 'r' }), [/^KONTOR_REDIS_TLS_CA_FILE: is set, but no address in/])
  t.match(of({ KONTOR_CASSANDRA_TLS: 'false' }), [
    /_CERT_FILE: is set, but KONTOR_CASSANDRA_TLS is/,
  ])
  t.match(of({ KONTOR_REDIS_TLS_CA_FILE: 'none' }), [
    /none is not a PEM file/,
    /no certificate that/,
  ])
  t.match(of({ KONTOR_REDIS_TLS_CA_FILE: 'junk' }), [
    /^KONTOR_REDIS_TLS_CA_FILE: junk holds no cert/,
  ])
  t.match(of({ KONTOR_CASSANDRA_TLS_KEY_FILE: 'other' }), [
    /cert is not the certificate of the key/,
  ])
  t.match(of({ KONTOR_CASSANDRA_TLS_KEY_FILE: '' }), [
    /^KONTOR_CASSANDRA_TLS_KEY_FILE: not set, but/,
  ])
  t.match(of(basic), [/^KONTOR_ELASTICSEARCH_API_KEY: not with KONTOR_ELASTICSEARCH_PASSWORD/])
  t.match(of({ KONTOR_ELASTICSEARCH_URL: 'https://u:p@e' }), [
    /_API_KEY: KONTOR_ELASTICSEARCH_URL has/,
  ])
  const inAddress = { KONTOR_REDIS_URL: 'rediss://:hunter2@r', KONTOR_REDIS_PASSWORD: 'p' }
  t.match(of(inAddress), [/^KONTOR_REDIS_PASSWORD: KONTOR_REDIS_URL has one already/])
  t.match(of({ KONTOR_REDIS_USERNAME: 'u' }), [/^KONTOR_REDIS_PASSWORD: not set, but/])
})

t.test('every setting takes its own default, from the environment and from the file', async (t) => {
  for (const name of SETTING_NAMES) {
    const { initial, key, kind } = TABLE[name]
    if (initial === null || typeof initial === 'object') continue
    t.equal(kind.parse(String(initial)), initial, name)
    const nested = key
      .split('.')
      .reduceRight<unknown>((inner, part) => ({ [part]: inner }), initial)
    t.strictSame(problems({}, ['--config=s'], files({ s: JSON.stringify(nested) })), [], key)
  }
})

t.test('whatever is given, the answer is settings or problems that name it', async () => {
  fc.assert(
    fc.property(fc.constantFrom(...SETTING_NAMES), fc.string(), (name, text) => {
      const loaded = loadSettings({ [name]: text }, [], files())
      return 'ok' in loaded || loaded.problems.every((line) => line.includes('KONTOR_'))
    }),
  )
})

t.test('the reference names every setting and option in lines of at most 100', async (t) => {
  const reference = settingsReference()
  for (const name of SETTING_NAMES) t.match(reference, `  ${name}  (${TABLE[name].key})`)
  for (const option of ['--config FILE', '--accept-loss', '--default', '--help']) {
    t.match(reference, option)
  }
  t.ok(reference.split('\n').every((line) => line.length <= 100))
})
