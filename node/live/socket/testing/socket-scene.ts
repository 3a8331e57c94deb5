// The stage of tests of sockets: a client with a role and tokens on the twin of the actor system,
// sockets that are none, and an injected clock.

import type { Test } from 'tap'
import { TestClock } from '../../../../cluster/testing/harness.ts'
import { LIMITS } from '../../../../config/limits.ts'
import { NO_ATTRIBUTES } from '../../../../protocol/attributes.ts'
import { accessBehaviours } from '../../../access/access.ts'
import { Authenticator } from '../../../access/authenticate.ts'
import { Revocations } from '../../../access/sessions/revocation.ts'
import type { LiveSession } from '../../../access/sessions/session-state.ts'
import { openSession } from '../../../access/testing/sessions.ts'
import { makeToken } from '../../../access/token.ts'
import type { Socket, SocketHandler, SocketPath } from '../../../http/socket/sockets.ts'
import { Metrics } from '../../../metrics.ts'
import { ActorSystemTwin } from '../../../testing/actor-system-twin.ts'

export class FakeSocket implements Socket {
  readonly address: string
  readonly protocol: string
  bufferedBytes = 0
  owner = ''
  readonly sent: Record<string, unknown>[] = []
  code: number | null = null
  reason = ''
  handler!: SocketHandler

  constructor(address: string, protocol = '') {
    this.address = address
    this.protocol = protocol
  }

  belongTo(owner: string): void {
    this.owner = owner
  }

  send(text: string): boolean {
    if (this.code !== null) return false
    this.sent.push(JSON.parse(text) as Record<string, unknown>)
    return true
  }

  close(code: number, reason: string): void {
    if (this.code !== null) return
    this.code = code
    this.reason = reason
    this.handler.closed()
  }

  says(frame: object): void {
    this.handler.text(JSON.stringify(frame))
  }

  get last(): Record<string, unknown> | undefined {
    return this.sent.at(-1)
  }
}

const DATES = { createdAt: '', suspendedAt: null }
export const LIFE_MS = 3_600_000

/** A client `web` whose role may read the registry. */
export function accessScene(t: Test) {
  const clock = new TestClock()
  const system = new ActorSystemTwin(accessBehaviours())
  const known = { isKnown: true, ready: true as boolean | Promise<boolean> }
  const properties = { name: 'x', redirectUris: [], grantTypes: [] }
  const client = { properties, roles: ['r'], secrets: [], isSystem: false, ...DATES }
  const grant = (...granted: (readonly [resource: string, permission: string])[]): void => {
    const entries = granted.map(([resource, permission]) => ({ resource, permission }))
    system.put('role', 'r', { description: '', acl: { entries } })
  }
  const grantOn = (resource: string, ...permissions: string[]): void =>
    grant(...permissions.map((permission) => [resource, permission] as const))
  system.put('client', 'web', client)
  grantOn('registry', 'read')
  const sessions = new Map<string, LiveSession>()
  const revocations = new Revocations(system, clock)
  const authenticator = new Authenticator({
    ...{ system: system.system, revocations },
    nowMs: () => clock.nowMs(),
    monotonicMs: () => clock.monotonicMs(),
    ready: () => known.ready,
    attributesOf: () => NO_ATTRIBUTES,
    read: (sessionId) => Promise.resolve(sessions.get(sessionId) ?? null),
    used: () => undefined,
    active: () => undefined,
  })
  t.teardown(() => {
    authenticator.stop()
    revocations.stop()
  })
  let seed = 0
  const newToken = (): { readonly token: string; readonly sessionId: string } => {
    const { token, sessionId, hash } = makeToken((bytes) => void bytes.fill(++seed))
    const untilMs = clock.nowMs() + LIFE_MS
    const session = openSession(system.system, 'web', { hash, untilMs })
    sessions.set(sessionId, session)
    authenticator.remember(token, { sessionId, session, askedMs: clock.monotonicMs() })
    return { token, sessionId }
  }
  /** Addresses that tokens were looked at for. */
  const askedFrom: string[] = []
  const parts = {
    system: system.system,
    authenticate(authorization: string, addressOf?: () => string) {
      askedFrom.push(addressOf?.() ?? '')
      return authenticator.authenticate(authorization, addressOf)
    },
    isKnown: () => known.isKnown,
    clock,
    log: { debug() {}, info() {}, warn() {}, error() {} },
    metrics: new Metrics(),
    chance: () => 0.5,
  }
  return { clock, system, client, known, grant, grantOn, newToken, parts, askedFrom }
}

/** Sockets of a path, and time that passes for all of them. */
export function socketsOf(path: SocketPath, clock: TestClock, swept: SocketPath = path) {
  const sockets: FakeSocket[] = []
  const pass = async (ms: number): Promise<void> => {
    for (let left = ms; left > 0; left -= LIMITS.live.sweepMs) {
      await clock.advance(Math.min(left, LIMITS.live.sweepMs))
      swept.sweep()
      for (const socket of sockets) if (socket.code === null) socket.handler.sweep()
    }
  }
  const open = (address = '192.0.2.1', protocol = path.protocols[0] ?? ''): FakeSocket => {
    const socket = new FakeSocket(address, protocol)
    socket.handler = path.open(socket)
    sockets.push(socket)
    return socket
  }
  return { open, pass }
}
