// How the code of a sign-in comes back to a command: to a port of this machine that only it listens
// on (RFC 8252 7.3), or as an address that a person pastes.

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { EXIT, Failure } from './failure.ts'
import type { World } from './world.ts'

export const CALLBACK = '/callback'
/** A person has so long to sign in. */
const SIGN_IN_MS = 10 * 60_000

const SHOWN = `<!doctype html><meta charset="utf-8"><title>Kontor</title>
<body style="font: 1rem system-ui; margin: 3rem">You may close this page and go back to the terminal.`

export interface Loopback {
  readonly redirectUri: string
  /** The first address with an answer that came; rejects when none came in time. */
  readonly back: Promise<URL>
  close(): void
}

export async function listen(): Promise<Loopback> {
  const { promise: back, resolve, reject } = Promise.withResolvers<URL>()
  // Whoever listens no longer may be told all the same.
  back.catch(() => undefined)
  const server = createServer((request, response) => {
    const url = URL.parse(request.url ?? '', 'http://127.0.0.1')
    const isAnswer = url?.searchParams.has('code') || url?.searchParams.has('error')
    if (request.method !== 'GET' || url?.pathname !== CALLBACK || !isAnswer) {
      response.writeHead(404).end()
      return
    }
    const headers = { 'Content-Type': 'text/html; charset=utf-8', Connection: 'close' }
    response.writeHead(200, headers).end(SHOWN)
    resolve(url)
  })
  const late = setTimeout(() => {
    reject(new Failure('nobody has signed in within ten minutes', EXIT.notSignedIn))
  }, SIGN_IN_MS)
  await new Promise<void>((listening, failed) => {
    server.once('error', failed)
    server.listen(0, '127.0.0.1', listening)
  })
  const { port } = server.address() as AddressInfo
  return {
    redirectUri: `http://127.0.0.1:${port}${CALLBACK}`,
    back,
    close() {
      clearTimeout(late)
      server.close()
      server.closeAllConnections()
    },
  }
}

/** Without a browser on this machine. */
export async function paste(world: World, address: string): Promise<URL> {
  world.say(`Open this address in a browser, on any machine, and sign in:\n\n  ${address}\n\n`)
  world.say('The browser then goes to an address that it cannot open; that is all right.\n')
  const pasted = await world.ask('Paste that address here: ', false)
  const url = URL.parse(pasted.trim())
  if (url !== null) return url
  throw new Failure('that is no address; it begins with http://127.0.0.1', EXIT.wrongArguments)
}
