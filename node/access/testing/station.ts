// Access on a twin of the actor system, with a clock that stands still, and calls of its
// operations.

import type { Test } from 'tap'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { World } from '../../../cluster/clock.ts'
import { RequestError } from '../../../protocol/errors.ts'
import type { OperationRequest, OperationResponse } from '../../http/operation.ts'
import { ActorSystemTwin } from '../../testing/actor-system-twin.ts'
import { accessBehaviours, createAccess } from '../access.ts'
import type { Access } from '../access.ts'
import type { Ready } from '../authenticate.ts'
import type { Client } from '../client.ts'
import type { Identity } from '../identity.ts'
import type { ExternalOptions } from '../oauth/external-sign-in.ts'

export const SECRET = 'correct horse'

interface Setup {
  readonly access: Access
  readonly system: ActorSystemTwin
  readonly dir: string
  readonly printed: string[]
  readonly clock: { nowMs: number; timers: { at: number; run: () => void }[] }
}

let stations = 0

/** An access station on an empty (or the given) system, with a clock that stands still. */
export async function station(
  t: Pick<Test, 'teardown' | 'fail'>,
  options: {
    system?: ActorSystemTwin
    secret?: string | null
    dir?: string
    isTerminal?: boolean
    external?: ExternalOptions
    /** In a minute; 0, the default here: any number. */
    tokensOfClient?: number
    /** The same of introspections, of a client, and of an address that shows none. */
    introspections?: { readonly client: number; readonly signInAddress: number }
    ready?: Ready
  } = {},
): Promise<Setup> {
  const system = options.system ?? new ActorSystemTwin(accessBehaviours())
  const dir = options.dir ?? mkdtempSync(join(tmpdir(), 'kontor-access-'))
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  // The owner of the sessions has the same clock.
  Object.defineProperty(system, 'nowMs', { get: () => clock.nowMs, configurable: true })
  const clock: Setup['clock'] = { nowMs: Date.parse('2026-03-01T12:00:00Z'), timers: [] }
  let seed = ++stations
  const world: World = {
    clock: {
      nowMs: () => clock.nowMs,
      monotonicMs: () => clock.nowMs,
      after(ms, run) {
        const timer = { at: clock.nowMs + ms, run }
        clock.timers.push(timer)
        return () => void clock.timers.splice(clock.timers.indexOf(timer), 1)
      },
      defer: (run) => run(),
    },
    random(bytes) {
      for (let i = 0; i < bytes.length; i++) bytes[i] = (seed = (seed * 69069 + 1) >>> 0) >>> 24
    },
  }
  const printed: string[] = []
  const access = createAccess({
    actorSystem: system,
    world,
    dataDir: join(dir, 'data'),
    bootstrapSecret: options.secret === undefined ? SECRET : options.secret,
    accessTokenMs: 60 * 60_000,
    refreshTokenMs: 30 * 24 * 3_600_000,
    baseUrl: 'http://127.0.0.1:8080',
    storeSecret: 'store',
    ...(options.external && { external: options.external }),
    rates: {
      ...{ signInClient: options.tokensOfClient ?? 0, wrongSignIns: 10, wrongSignInsMs: 900_000 },
      ...options.introspections,
    },
    tell: (text) => printed.push(text),
    isTerminal: options.isTerminal ?? false,
    tidies: () => true,
    onError: (error) => t.fail(String(error)),
    onPushedOut: (identity) => t.fail(identity),
    ready: options.ready ?? (() => true),
  })
  await access.start()
  t.teardown(() => access.stop())
  return { access, system, dir, printed, clock }
}

export type Body = Record<string, string>

export function call(
  { access }: Setup,
  path: string,
  form: Body | URLSearchParams = {},
  headers: Body = {},
): Promise<OperationResponse> {
  const operation = access.operations.find((one) => one.path === path)!
  const body = form instanceof URLSearchParams ? form : new URLSearchParams(form)
  const request = {
    body,
    bodyFault: null,
    bodyBytes: Buffer.from(body.toString()),
    header: (name: string) => headers[name] ?? '',
    requestId: 'r1',
    address: headers['address'] ?? '192.0.2.1',
  } as unknown as OperationRequest
  return Promise.resolve(operation.handle(request))
}

export const credentials = { client_id: 'bootstrap', client_secret: SECRET }
export const asked = (scope?: string): Body => ({
  grant_type: 'client_credentials',
  ...credentials,
  ...(scope !== undefined && { scope }),
})

export async function token(setup: Setup, scope?: string, form: Body = {}): Promise<string> {
  const answer = await call(setup, '/oauth/token', { ...asked(scope), ...form })
  const body = answer.body as { access_token?: string }
  if (body.access_token === undefined) throw new Error(JSON.stringify(answer.body))
  return body.access_token
}

export async function who(setup: Setup, accessToken: string): Promise<Identity | string> {
  const answer = await setup.access.authenticate(`Bearer ${accessToken}`)
  return answer instanceof RequestError ? answer.errors[0]!.code : answer
}

/** Adds a client with that secret's hash taken from `bootstrap`. */
export function addClient(setup: Setup, id: string, change: (client: Client) => Client): void {
  const first = setup.system.system.get<Client>('client', 'bootstrap')!.value
  setup.system.put('client', id, change({ ...first, roles: [] }))
}
