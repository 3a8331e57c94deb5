// The image's health check against servers that answer, refuse, speak TLS, or say nothing.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { keyAndCertificate } from '../harness/self-signed.ts'

async function codeOf(port: number | string, env: Record<string, string> = {}): Promise<number> {
  const child = spawn(process.execPath, [join(import.meta.dirname, '../../cli/is-alive.mjs')], {
    env: { KONTOR_HTTP_PORT: String(port), ...env },
  })
  const [code] = (await once(child, 'exit')) as [number]
  return code
}

async function listening(t: Test, server: Server): Promise<number> {
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

/** Alive, and not ready: as while an engine is away. */
const alive: RequestListener = ({ url }, res) => {
  res.writeHead(url === '/health/live' ? 200 : 503).end()
}

t.test('a node that is alive', async (t) => {
  const port = await listening(t, createServer(alive))
  t.equal(await codeOf(port), 0)
  t.equal(await codeOf(port, { KONTOR_HTTP_HOST: '0.0.0.0' }), 0)
  t.equal(await codeOf(port, { KONTOR_HTTP_TLS_KEY_FILE: 'key.pem' }), 1, 'it speaks no TLS')
})

t.test('one that speaks TLS with a certificate for another name', async (t) => {
  const port = await listening(t, createSecureServer(keyAndCertificate(), alive))
  t.equal(await codeOf(port, { KONTOR_HTTP_TLS_KEY_FILE: 'key.pem' }), 0)
  t.equal(await codeOf(port), 1)
})

t.test('one that fails, says nothing, or is not there', async (t) => {
  const ill = await listening(
    t,
    createServer((_req, res) => void res.writeHead(500).end()),
  )
  t.equal(await codeOf(ill), 1)
  const silent = await listening(
    t,
    createServer(() => undefined),
  )
  t.equal(await codeOf(silent), 1)
  t.equal(await codeOf(1), 1)
})
