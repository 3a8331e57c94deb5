// A Redis that wants TLS and a password: with both right the wire carries. With one wrong it waits,
// as for a Redis that is away, and its log names the setting.

import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import t from 'tap'
import { freePort } from '../../../tools/engines/server-process.mjs'
import type { Test } from 'tap'
import { ownEngine } from '../../harness/engines.ts'
import { keyAndCertificate } from '../../harness/self-signed.ts'
import { systemClock } from '../../../cluster/clock.ts'
import {
  ask,
  eventually,
  parcelOf,
  RecordingInbox,
} from '../../../cluster/testing/wire-conformance.ts'
import type { RedisAddress } from '../../../cluster/redis/connection.ts'
import { redisWire } from '../../../cluster/redis/wire.ts'

const PASSWORD = 'p:@ss/ %word'
const MEMBER = { username: 'member', password: 'of the member' }

// A server starts here, on a machine that may be busy.
t.setTimeout(120_000)

const own = await ownEngine(t, 'redis')
const skip = 'skipped' in own ? own.skipped : false
const secure = { port: 0, ca: '', own: keyAndCertificate(), dir: t.testdir({}) }

t.before(async () => {
  if ('skipped' in own) return
  const { key, cert } = keyAndCertificate()
  secure.ca = cert
  secure.port = await freePort()
  for (const [name, text] of Object.entries({ key, cert, ca: secure.own.cert })) {
    writeFileSync(join(secure.dir, name), text)
  }
  const admin = new Redis({ host: own.host, port: own.port })
  const tls = {
    'tls-cert-file': join(secure.dir, 'cert'),
    'tls-key-file': join(secure.dir, 'key'),
    'tls-ca-cert-file': join(secure.dir, 'ca'),
    'tls-auth-clients': 'optional',
    'tls-port': String(secure.port),
  }
  await admin.config('SET', ...(Object.entries(tls).flat() as [string, string]))
  await admin.acl('SETUSER', MEMBER.username, 'on', `>${MEMBER.password}`, '~*', '&*', '+@all')
  await admin.config('SET', 'requirepass', PASSWORD)
  admin.disconnect()
})

/** A wire there; what it tells, with the error's own text. */
function wireTo(t: Test, address: RedisAddress) {
  const told: string[] = []
  const tell = (fields: object, text: string): void => {
    const { err } = fields as { err?: Error }
    told.push(err === undefined ? text : `${text}: ${err.message}`)
  }
  const log = { debug: tell, info: tell, warn: tell, error: tell }
  const wire = redisWire({ ...address, clock: systemClock(), secret: 'of the store', log })
  t.teardown(() => wire.stop())
  return { wire, told }
}

async function carries(t: Test, address: RedisAddress): Promise<void> {
  const [a, b] = [wireTo(t, address), wireTo(t, address)]
  const names = { a: randomUUID(), b: randomUUID() }
  await a.wire.serve(names.a, new RecordingInbox())
  await b.wire.serve(names.b, new RecordingInbox())
  t.ok(await eventually(() => a.wire.isUp && b.wire.isUp, 30_000), a.told.join())
  const reply = await ask(a.wire, names.b, parcelOf(names.a), 30_000)
  t.equal(reply?.outcome, 'answered')
}

/** What the log says of a wire that can't be up. */
async function complaint(t: Test, address: RedisAddress): Promise<string> {
  const { wire, told } = wireTo(t, address)
  t.ok(await eventually(() => told.length > 0, 30_000), 'it is told')
  t.notOk(wire.isUp)
  t.notMatch(told.join(), PASSWORD)
  return told[0]!
}

t.test('TLS with the right authority, and a password from the settings', { skip }, async (t) => {
  const tls = { ca: secure.ca, cert: null, key: null }
  const urls = [`rediss://localhost:${secure.port}`]
  await carries(t, { urls, tls, credentials: { username: null, password: PASSWORD } })
  await carries(t, { urls, tls, credentials: MEMBER })
  const inAddress = `rediss://:${encodeURIComponent(PASSWORD)}@localhost:${secure.port}`
  await carries(t, { urls: [inAddress], tls: { ...tls, ...secure.own } })
})

t.test('what is wrong is named', { skip }, async (t) => {
  const urls = [`rediss://localhost:${secure.port}`]
  const tls = { ca: secure.ca, cert: null, key: null }
  const credentials = { username: null, password: PASSWORD }
  const login = /KONTOR_REDIS_USERNAME and KONTOR_REDIS_PASSWORD/
  t.match(await complaint(t, { urls, tls, credentials: { ...MEMBER, password: 'x' } }), login)
  t.match(await complaint(t, { urls, tls }), login)
  const ca = keyAndCertificate().cert
  const untrusted = /^Redis can not be used .*KONTOR_REDIS_TLS_CA_FILE/
  t.match(await complaint(t, { urls, credentials, tls: { ...tls, ca } }), untrusted)
  t.match(await complaint(t, { urls, credentials }), untrusted, 'nobody knows this one')
  const byAddress = [`rediss://127.0.0.1:${secure.port}`]
  t.match(await complaint(t, { urls: byAddress, tls, credentials }), /name.*KONTOR_REDIS_URL/)
  const clear = [`redis://localhost:${secure.port}`]
  t.match(await complaint(t, { urls: clear, credentials }), /KONTOR_REDIS_URL: redis:\/\/ or/)
  const { port } = own as { port: number }
  const veiled = [`rediss://localhost:${port}`]
  t.match(await complaint(t, { urls: veiled, tls, credentials }), /KONTOR_REDIS_URL: redis:\/\/ or/)
})
