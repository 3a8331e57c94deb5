// Elasticsearch over TLS with a login: what is sent, and which setting is named when it is refused.
// The server here answers as Elasticsearch does to who may not, and to who may.

import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import type { Test } from 'tap'
import { keyAndCertificate } from '../../test/harness/self-signed.ts'
import { ElasticClient, type ElasticClientOptions } from './client.ts'
import { EngineAway } from './engine.ts'

const server = keyAndCertificate()
const tls = { ca: server.cert, cert: null, key: null }
const BASIC = `Basic ${Buffer.from('kontor:p:w').toString('base64')}`

async function secured(t: Test, allowed: readonly string[]): Promise<number> {
  const https = createServer(server, (request, response) => {
    const isKnown = allowed.includes(request.headers.authorization ?? '')
    const refusal = { type: 'security_exception', reason: 'unable to authenticate user [kontor]' }
    response.writeHead(isKnown ? 200 : 401, {
      'content-type': 'application/json',
      'x-elastic-product': 'Elasticsearch',
    })
    response.end(JSON.stringify(isKnown ? {} : { status: 401, error: refusal }))
  })
  https.on('tlsClientError', () => undefined)
  await new Promise<void>((resolve) => https.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    https.closeAllConnections()
    https.close()
  })
  return (https.address() as AddressInfo).port
}

/** null: it answered. */
async function failure(t: Test, options: ElasticClientOptions): Promise<string | null> {
  const client = new ElasticClient(options)
  t.teardown(() => client.close())
  try {
    await client.indexes('kontor-', { timeoutMs: 20_000 })
    return null
  } catch (error) {
    // An engine that is away for now: its member goes on without the graph.
    t.ok(error instanceof EngineAway)
    return (error as Error).message
  }
}

t.test('a user, an API key, a user in the address', async (t) => {
  const port = await secured(t, [BASIC, 'ApiKey of-ours'])
  const urls = [`https://localhost:${port}`]
  const auth = { username: 'kontor', password: 'p:w' }
  t.equal(await failure(t, { urls, tls, auth }), null)
  t.equal(await failure(t, { urls, tls, auth: { apiKey: 'of-ours' } }), null)
  t.equal(await failure(t, { urls: [`https://kontor:p%3Aw@localhost:${port}`], tls }), null)
})

t.test('what is wrong is named', async (t) => {
  const port = await secured(t, [BASIC])
  const urls = [`https://localhost:${port}`]
  const auth = { username: 'kontor', password: 'p:w' }
  for (const wrong of [
    {},
    { auth: { ...auth, password: 'secret' } },
    { auth: { apiKey: 'secret' } },
  ]) {
    const text = await failure(t, { urls, tls, ...wrong })
    t.match(
      text,
      /^Elasticsearch: 401 .*KONTOR_ELASTICSEARCH_PASSWORD, or KONTOR_ELASTICSEARCH_API_KEY/,
    )
    t.notMatch(text, /secret/)
  }
  const ca = keyAndCertificate().cert
  const untrusted = /^Elasticsearch: .*KONTOR_ELASTICSEARCH_TLS_CA_FILE/
  t.match(await failure(t, { urls, auth, tls: { ...tls, ca } }), untrusted)
  t.match(await failure(t, { urls, auth, tls: { ...tls, ca: null } }), untrusted)
  const byAddress = [`https://127.0.0.1:${port}`]
  t.match(await failure(t, { urls: byAddress, auth, tls }), /name than KONTOR_ELASTICSEARCH_URL/)
  const clear = [`http://localhost:${port}`]
  t.match(await failure(t, { urls: clear, auth }), /KONTOR_ELASTICSEARCH_URL: http:\/\/ or https/)
})
