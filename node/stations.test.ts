// The stations of access, registry and actors on the real runtime (over the journal in memory):
// what their own tests assume of the actor system holds, over a restart too.

import t from 'tap'
import type { Test } from 'tap'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startMember } from '../cluster/testing/harness.ts'
import type { World } from '../cluster/testing/harness.ts'
import { LIMITS } from '../config/limits.ts'
import { RequestError } from '../protocol/errors.ts'
import { SYSTEM_SHARD } from '../protocol/ids.ts'
import { createAccess } from './access/access.ts'
import type { Access } from './access/access.ts'
import { actorOperations } from './actors/routes.ts'
import { behaviours } from './behaviours.ts'
import type { Operation, OperationRequest } from './http/operation.ts'
import { RegistryChannels } from './registry/channels.ts'
import { registryOperations } from './registry/routes.ts'

interface Node {
  readonly world: World
  readonly access: Access
  token(): Promise<string>
  call(path: string, options?: Call): Promise<Answer>
}

interface Call {
  readonly method?: string
  readonly token?: string
  readonly params?: Record<string, string>
  readonly body?: unknown
  readonly headers?: Record<string, string>
}

interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Record<string, unknown> & { errors?: { code: string }[] }
}

let seeds = 0

async function node(t: Pick<Test, 'teardown' | 'fail'>, before?: World): Promise<Node> {
  const channels = new RegistryChannels()
  const table = behaviours(channels)
  const world = before
    ? await before.restart()
    : await startMember({ behaviours: table, seed: ++seeds })
  const { member, clock } = world
  channels.follow(member.system)
  const dir = mkdtempSync(join(tmpdir(), 'kontor-stations-'))
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  let seed = ++seeds
  const chance = {
    clock,
    random: (bytes: Uint8Array) => {
      for (let i = 0; i < bytes.length; i++) bytes[i] = (seed = (seed * 69069 + 1) >>> 0) >>> 24
    },
  }
  const consistency = {
    encode: (at: readonly { shard: number; offset: number }[]) =>
      at.map((p) => `${p.shard}:${p.offset}`).join(),
  }
  const access = createAccess({
    actorSystem: member,
    world: chance,
    dataDir: dir,
    bootstrapSecret: 's3cret',
    accessTokenMs: 3_600_000,
    refreshTokenMs: 30 * 24 * 3_600_000,
    baseUrl: 'http://localhost',
    storeSecret: 'store',
    tell: () => t.fail('nothing to tell'),
    isTerminal: false,
    tidies: () => member.serves(SYSTEM_SHARD),
    onError: (error) => t.fail(String(error)),
    onPushedOut: (identity) => t.fail(identity),
    ready: () => member.knowsConfiguration || member.learnConfiguration(),
  })
  await access.start()
  t.teardown(() => access.stop())
  const operations: readonly Operation[] = [
    ...access.operations,
    ...actorOperations({ actorSystem: member, consistency, world: chance }),
    ...registryOperations({
      actorSystem: member,
      consistency,
      graph: {
        fault: () => null,
        refusalToDefine: () => null,
        valuesOf: () => null,
        sharedValues: () => [],
      },
    }),
  ]
  const call = async (path: string, options: Call = {}): Promise<Answer> => {
    const { method = 'POST', token = '', params = {}, body, headers = {} } = options
    const operation = operations.find((one) => one.method === method && one.path === path)!
    const identity =
      operation.access === 'none' ? null : await access.authenticate(`Bearer ${token}`)
    if (identity instanceof RequestError) return refused(identity)
    const request = {
      identity,
      params,
      query: new URLSearchParams(),
      header: (name: string) => headers[name] ?? '',
      body,
      bodyFault: null,
      bodyBytes: Buffer.from(JSON.stringify(body) ?? ''),
      requestId: 'r',
      address: '192.0.2.1',
      budgetMs: 5_000,
    } as unknown as OperationRequest
    try {
      const { status, headers: sent = {}, body: value, raw } = await operation.handle(request)
      const parsed = raw === undefined ? value : JSON.parse(raw as string)
      return { status, headers: sent, body: (parsed ?? {}) as Answer['body'] }
    } catch (error) {
      if (error instanceof RequestError) return refused(error)
      throw error
    }
  }
  const token = async (): Promise<string> => {
    const form = { grant_type: 'client_credentials', client_id: 'bootstrap' }
    const body = new URLSearchParams({ ...form, client_secret: 's3cret' })
    return (await call('/oauth/token', { body })).body['access_token'] as string
  }
  return { world, access, call, token }
}

function refused(error: RequestError): Answer {
  return { status: error.status, headers: {}, body: { errors: [...error.errors] } }
}

const KEY = '/resources/registry/{**key}'
const ORDER = '/resources/actors/{type}/{id}'

t.test('a token is good at once, over a restart, and until it is revoked', async (t) => {
  const first = await node(t)
  const token = await first.token()
  const params = { key: 'a' }
  t.equal((await first.call(KEY, { token, params, body: 1 })).status, 200)
  const second = await node(t, first.world)
  t.equal((await second.call(KEY, { method: 'GET', token, params })).status, 200)
  t.equal(second.world.member.system.size('client'), 1)
  await second.call('/oauth/revoke', { body: new URLSearchParams({ token }) })
  t.equal((await second.call(KEY, { method: 'GET', token, params })).status, 401)
  const third = await node(t, second.world)
  t.equal((await third.call(KEY, { method: 'GET', token, params })).status, 401)
})

t.test('sessions are in no map; revocations leave it', async (t) => {
  const one = await node(t)
  const { system } = one.world.member
  for (let i = 0; i < 5; i++) {
    const token = await one.token()
    await one.call('/oauth/revoke', { body: new URLSearchParams({ token }) })
  }
  t.equal(system.size('auth-session'), 0)
  t.equal(system.size('revocation'), 5)
  await one.world.clock.advance(LIMITS.access.revocationKeptMs + LIMITS.access.tidyingMs)
  t.equal(system.size('revocation'), 0)
})

t.test('registry: what was written is read, deleted, written again, over restarts', async (t) => {
  let one = await node(t)
  const token = await one.token()
  const params = { key: 'a/b' }
  const tag = (answer: Answer): string => answer.headers['ETag']!
  const first = await one.call(KEY, { token, params, body: { n: 1 } })
  t.ok(first.headers['X-Consistency'])
  one = await node(t, one.world)
  t.same((await one.call(KEY, { method: 'GET', token, params })).body, {
    key: 'a/b',
    value: { n: 1 },
  })
  t.equal((await one.call(KEY, { method: 'DELETE', token, params })).status, 200)
  t.equal((await one.call(KEY, { method: 'GET', token, params })).status, 404)
  t.equal((await one.call(KEY, { method: 'DELETE', token, params })).status, 200)
  one = await node(t, one.world)
  t.equal((await one.call(KEY, { method: 'GET', token, params })).status, 404)
  const again = await one.call(KEY, { token, params, body: { n: 2 } })
  t.equal(again.status, 200)
  t.not(tag(again), tag(first), 'the ETag of a life before never fits')
  const headers = { 'if-match': tag(first) }
  t.equal((await one.call(KEY, { token, params, body: { n: 3 }, headers })).status, 409)
  t.same((await one.call(KEY, { method: 'GET', token, params })).body['value'], { n: 2 })
  t.equal((await one.call(KEY, { token, params: { key: 'new' }, body: 1 })).status, 200)
  t.equal((await one.call(KEY, { token, params: { key: 'new' }, body: 2 })).status, 200)
  const uuid = '0198c0de-7000-7abc-8def-0123456789ab'
  t.equal((await one.call(KEY, { token, params: { key: uuid }, body: 2 })).status, 200)
})

t.test('orders: create, repeat by key, several messages, channels', async (t) => {
  const one = await node(t)
  const token = await one.token()
  const send = (id: string, body: unknown, key = ''): Promise<Answer> =>
    one.call(ORDER, {
      token,
      params: { type: 'order', id },
      body,
      headers: { 'idempotency-key': key },
    })
  const create = (orderNumber: string, channelKey?: string): object => ({
    type: 'create',
    body: {
      orderNumber,
      currencyCode: 'EUR',
      taxIncluded: true,
      ...(channelKey && { channelKey }),
    },
  })
  const made = await send('new', [create('A')], 'k')
  t.equal(made.status, 200)
  const { orderId } = made.body['data'] as { orderId: string }
  t.same(made.body['paths'], [`/resources/actors/order/${orderId}`, '/resources/actors/order/A'])
  const again = await send('new', [create('A')], 'k')
  t.same(again.body, made.body)
  t.equal((await send('new', [create('A'), create('A')], 'k')).status, 422)
  t.equal((await send('new', [create('A')], 'other')).status, 409)

  const commands = [{ type: 'setCustomerNumber', value: '17' }]
  const some = await send('A', [
    { type: 'applyCommands', body: { commands } },
    { type: 'applyCommands', body: { commands: [{ type: 'nonsense' }] } },
    { type: 'getCheckpoints' },
  ])
  t.equal(some.status, 200)
  t.same(
    some.body.errors!.map((error) => error.code),
    ['INVALID_COMMAND'],
  )
  t.equal((some.body['data'] as unknown[]).length, 2, 'two checkpoints')

  t.equal((await send('new', [create('B', 'web')])).status, 200, 'no channel is configured')
  const channel = { currencyCode: 'EUR', taxIncluded: true }
  await one.call(KEY, { token, params: { key: 'channels/shop' }, body: channel })
  t.equal((await send('new', [create('C', 'web')])).status, 422)
  t.equal((await send('new', [create('C', 'shop')])).status, 200)
})
