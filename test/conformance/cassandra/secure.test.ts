// Cassandra over TLS: a certificate is trusted by its authority and its name, and what is wrong is
// named with its setting. The TLS is real; behind it is a real Cassandra, or a server that speaks
// as much of its protocol as a login takes.

import { createServer, type AddressInfo } from 'node:net'
import t from 'tap'
import type { Test } from 'tap'
import type { EngineTls } from '../../../config/settings.ts'
import type { EngineAddress } from '../../harness/engines.ts'
import { keyAndCertificate } from '../../harness/self-signed.ts'
import { tlsProxyTo } from '../../harness/tls-proxy.ts'
import { Session } from '../../../storage/cassandra/session/session.ts'
import { testCassandra } from '../../../storage/cassandra/testing/test-store.ts'

const server = keyAndCertificate()
const member = keyAndCertificate()
const TRUSTED: EngineTls = { ca: server.cert, cert: null, key: null }

t.setTimeout(120_000)

function sessionAt(contactPoint: string, tls: EngineTls | null, datacenter: string) {
  const quiet = (): void => undefined
  const log = { debug: quiet, info: quiet, warn: quiet, error: quiet }
  return Session.connect({ contactPoints: [contactPoint], datacenter, tls, log, now: () => 0 })
}

/** Why there is no session. */
async function refusal(contactPoint: string, tls: EngineTls | null): Promise<string> {
  const error = await sessionAt(contactPoint, tls, 'datacenter1').then(
    (session) => session.close(),
    (e: unknown) => e,
  )
  return (error as Error).message
}

/** Hears and says nothing: what is asserted here is over before a word is said. */
async function mute(t: Test): Promise<EngineAddress> {
  const mute = createServer((socket) => void socket.on('error', () => socket.destroy()).resume())
  await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve))
  t.teardown(() => void mute.close())
  return { host: '127.0.0.1', port: (mute.address() as AddressInfo).port }
}

t.test('a certificate that is not right, and one that is missing', async (t) => {
  const { port } = await tlsProxyTo(t, await mute(t), server)
  const unknown = { ...TRUSTED, ca: member.cert }
  for (const tls of [unknown, { ...TRUSTED, ca: null }]) {
    t.match(await refusal(`localhost:${port}`, tls), /KONTOR_CASSANDRA_TLS_CA_FILE/)
  }
  t.match(await refusal(`127.0.0.1:${port}`, TRUSTED), /name than KONTOR_CASSANDRA_CONTACT_POINTS/)
  const asking = { ...server, requestCert: true, ca: member.cert, maxVersion: 'TLSv1.2' as const }
  const strict = await tlsProxyTo(t, await mute(t), asking)
  t.match(await refusal(`localhost:${strict.port}`, TRUSTED), /KONTOR_CASSANDRA_TLS_CERT_FILE/)
})

const cassandra = await testCassandra()
const skip = 'skipped' in cassandra ? cassandra.skipped : false
t.test('with the right one statements go through, from every connection', { skip }, async (t) => {
  if ('skipped' in cassandra) return
  const { contactPoints, datacenter } = cassandra.options(t)
  const [host, port] = contactPoints[0]!.split(':')
  const engine = { host: host!, port: Number(port) }
  const asking = { ...server, requestCert: true, ca: member.cert }
  const proxy = await tlsProxyTo(t, engine, asking)
  const session = await sessionAt(`localhost:${proxy.port}`, { ...TRUSTED, ...member }, datacenter)
  t.teardown(() => session.close())
  const rows = await session.read('SELECT release_version FROM system.local', [])
  t.equal(rows.length, 1)
})
