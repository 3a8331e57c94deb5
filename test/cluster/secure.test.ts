// A member whose engines are all reached over TLS, Redis with a password: what the settings say
// reaches every connection, the one of the beat's thread too. TLS stands before real engines.

import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import t from 'tap'
import { engine, ownEngine } from '../harness/engines.ts'
import { NodeProcess } from '../harness/node-process.ts'
import { smallOrder } from '../harness/orders.ts'
import { until } from '../harness/patience.ts'
import { keyAndCertificate } from '../harness/self-signed.ts'
import { tlsProxyTo } from '../harness/tls-proxy.ts'

const PASSWORD = 'of Redis alone'

// Three engines and a member start here, on a machine that may be busy.
t.setTimeout(300_000)

const engines = {
  cassandra: await engine('cassandra'),
  elasticsearch: await engine('elasticsearch'),
  redis: await ownEngine(t, 'redis'),
}
const missing = Object.values(engines).find((one) => 'skipped' in one)
const skip = missing !== undefined && 'skipped' in missing ? missing.skipped : false

t.test('it joins, takes an order, and shows it in the graph', { skip }, async (t) => {
  const { cassandra, elasticsearch, redis } = engines
  if ('skipped' in cassandra || 'skipped' in elasticsearch || 'skipped' in redis) return
  const admin = new Redis({ host: redis.host, port: redis.port })
  await admin.config('SET', 'requirepass', PASSWORD)
  admin.disconnect()
  const { key, cert } = keyAndCertificate()
  const dir = t.testdir({ 'ca.pem': cert, password: PASSWORD })
  const at = async (server: { host: string; port: number }): Promise<string> =>
    `localhost:${(await tlsProxyTo(t, server, { key, cert })).port}`
  const ca = join(dir, 'ca.pem')
  const name = `secure_${randomBytes(6).toString('hex')}`
  const settings = {
    KONTOR_STORAGE_DRIVER: 'cluster',
    KONTOR_MEMBER_ID: 'secure',
    KONTOR_SHARDS: '4',
    KONTOR_CASSANDRA_CONTACT_POINTS: await at(cassandra),
    KONTOR_CASSANDRA_DATACENTER: 'datacenter1',
    KONTOR_CASSANDRA_KEYSPACE: name,
    KONTOR_CASSANDRA_TLS: 'true',
    KONTOR_CASSANDRA_TLS_CA_FILE: ca,
    KONTOR_ELASTICSEARCH_URL: `https://${await at(elasticsearch)}`,
    KONTOR_ELASTICSEARCH_PREFIX: `${name}-`,
    KONTOR_ELASTICSEARCH_TLS_CA_FILE: ca,
    KONTOR_REDIS_URL: `rediss://${await at(redis)}`,
    KONTOR_REDIS_PASSWORD_FILE: join(dir, 'password'),
    KONTOR_REDIS_TLS_CA_FILE: ca,
  }
  const node = new NodeProcess(settings)
  t.teardown(() => node.clear())
  await node.start()
  await smallOrder(node)
  await until('the graph shows it', async () => {
    const { orders } = await node.graph<{ orders: number }>([{ edge: 'orders', count: true }])
    return orders === 1
  })
  const { text } = await node.send('/metrics')
  t.match(text, /^kontor_wire_up 1$/m)
  t.match(text, /^kontor_lease_held 1$/m)
  t.notMatch(node.output, PASSWORD)
  t.equal(await node.stop(), 0)

  writeFileSync(ca, keyAndCertificate().cert)
  const wrong = new NodeProcess(settings)
  t.teardown(() => wrong.clear())
  wrong.launch([])
  await until('it says what is wrong', () => wrong.output.includes('Cassandra can not be used yet'))
  t.match(wrong.output, 'KONTOR_CASSANDRA_TLS_CA_FILE')
  t.ok(wrong.isUp, 'and waits')
})
