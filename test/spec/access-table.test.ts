// Every operation of the route table against every kind of caller, over HTTP on a real node: who is
// let in, and what a refusal says. The table is the node's own, so what comes to it is in here.
// Source: specification "Authentication"; CONTRACT 0 "Refused", 1.14; RFC 6750 3.

import t from 'tap'
import type { Test } from 'tap'
import type { TSchema } from '@sinclair/typebox'
import { describedOperations } from '../../tools/generate/contract.ts'
import type { Operation } from '../../node/http/operation.ts'
import { clusterSettings } from '../harness/driver.ts'
import { NodeProcess } from '../harness/node-process.ts'
import type { Answer } from '../harness/node-process.ts'
import { create } from '../harness/orders.ts'
import { until } from '../harness/patience.ts'

const UUID = '0198c0de-7000-7abc-8def-0123456789ab'
const REALM = 'Bearer realm="kontor"'
const INVALID = `${REALM}, error="invalid_token"`

/** What stands in a path, where `x` would not do. */
const PARAMS: Readonly<Record<string, string>> = {
  ...{ type: 'order', node: 'order', field: 'orderState', name: 'colours' },
  ...{ key: 'access-table', actorId: UUID, file: 'page.js' },
}
/** What one operation has otherwise. */
const OF_ONE: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'POST /resources/actors/{type}/{id}': { id: 'new' },
  'POST /resources/actors/{type}/{typeKey}/{ref}': { type: 'ticket', typeKey: 'claim' },
}
/** Bodies that get as far as the question who may; else one that fits the shape. */
const BODIES: Readonly<Record<string, unknown>> = {
  'POST /resources/actors/{type}/{id}': [create()],
  'POST /resources/actors/{type}/{typeKey}/{ref}': [create()],
  'POST /resources/graph': [{ edge: 'orders', node: { fields: ['orderNumber'] } }],
  'POST /graphql': { query: '{ orders { orderNumber } }' },
}
const LINE = `${JSON.stringify({ id: 'new', messages: [create()] })}\n`
const QUERIES: Readonly<Record<string, string>> = {
  'GET /resources/graph': `?q=${encodeURIComponent('[{"edge":"orders","node":{"fields":["orderNumber"]}}]')}`,
  'GET /graphql': `?query=${encodeURIComponent('{ orders { orderNumber } }')}`,
}
/** What the client that asks here may never do, with the reason. */
const NOT_OF_CLIENTS: Readonly<Record<string, string>> = {
  'POST /me/pat': 'personal access tokens are of principals',
  'POST /resources/me/password': 'only people have passwords',
}

interface Row {
  readonly name: string
  readonly operation: Operation
  /** Asks as whoever has this token; null: nobody. */
  readonly ask: (token: string | null) => Promise<Answer>
  /** Entries that open it, as a scope; '' where any token does. */
  readonly scope: string
}

/** A node, and a token that was good on its store for a second. */
async function start(): Promise<{ node: NodeProcess; expired: string }> {
  const cluster = await clusterSettings()
  const of = (memberId: string) =>
    cluster === null ? {} : { ...cluster, KONTOR_MEMBER_ID: memberId }
  const first = new NodeProcess({ ...of('peer'), KONTOR_ACCESS_TOKEN_MS: '1000' })
  t.teardown(() => first.clear())
  await first.start()
  const expired = await first.token()
  if (cluster === null) await first.stop()
  const node = new NodeProcess(of('asked'), cluster === null ? first.dir : undefined)
  t.teardown(() => node.clear())
  await node.start()
  await until('the short-lived token has ended', async () => {
    return (await node.ask('/resources/graph/meta', { token: expired })).status === 401
  })
  return { node, expired }
}

function fill(name: string, text: string): string {
  const of = { ...PARAMS, ...OF_ONE[name] }
  return text.replaceAll(/\{(?:\*\*)?(\w+)\}/g, (_, param: string) => of[param] ?? 'x')
}

/** Something that fits a shape: what is needed, and nothing more. */
function sample(schema: TSchema | undefined): unknown {
  if (schema === undefined) return {}
  const [example] = (schema['examples'] ?? []) as unknown[]
  if (example !== undefined) return example
  if ('const' in schema) return schema['const']
  const {
    anyOf,
    type,
    properties = {},
    required = [],
  } = schema as {
    readonly anyOf?: readonly TSchema[]
    readonly type?: string
    readonly properties?: Readonly<Record<string, TSchema>>
    readonly required?: readonly string[]
  }
  if (anyOf !== undefined) return sample(anyOf[0])
  if (type === 'object') {
    return Object.fromEntries(required.map((name) => [name, sample(properties[name])]))
  }
  if (type === 'array') return []
  if (type === 'string') return 'x'.repeat(Number(schema['minLength'] ?? 1))
  return type === 'boolean' ? false : 1
}

function scopeOf(name: string, { permissions = [] }: Operation): string {
  const scopes = permissions.map((permission) => {
    const [path = '', ...may] = fill(name, permission).split(':')
    const above = path.replace(/\/?<.*$/, '')
    return `${above}:${may[0]!.startsWith('<') ? '*' : may[0]}`
  })
  return scopes.join(' ')
}

function rowOf(node: NodeProcess, operation: Operation): Row {
  const { method, body } = operation
  const name = `${method} ${operation.path}`.replace('/resources/reference/', '/resources/')
  const path = fill(name, operation.path) + (QUERIES[name] ?? '')
  const type = { json: 'application/json', ndjson: 'application/x-ndjson' } as const
  const ask = (token: string | null): Promise<Answer> => {
    const headers = token === null ? {} : { Authorization: `Bearer ${token}` }
    if (body === undefined) return node.send(path, { method, headers })
    if (body.type === 'form') return node.form(path, {})
    const raw = body.type === 'ndjson' ? LINE : JSON.stringify(BODIES[name] ?? sample(body.schema))
    return node.send(path, {
      method,
      raw,
      headers: { ...headers, 'Content-Type': type[body.type] },
    })
  }
  return { name, operation, ask, scope: scopeOf(name, operation) }
}

/** Status of an answer; of a stream, of its one line. */
function statusOf({ status, text, headers }: Answer): number {
  const isStream = String(headers['content-type']).startsWith('application/x-ndjson')
  if (!isStream || status !== 200) return status
  return /"code":"(UNAUTHORIZED_MESSAGE|FORBIDDEN)"/.test(text) ? 403 : 200
}

function letIn(t: Test, answer: Answer, who: string): void {
  const status = statusOf(answer)
  const reason = NOT_OF_CLIENTS[/^\S+ [^\s,]+/.exec(who)![0]]
  if (reason !== undefined && status === 403) {
    t.match(answer.text, reason, who)
    t.equal(answer.headers['www-authenticate'], undefined, 'no other token would do')
    return
  }
  // What is busy with the last one says so, to who may.
  const isBusy = status === 503 && !answer.text.includes('tokens')
  const isIn = status !== 401 && status !== 403 && (status < 500 || isBusy)
  t.ok(isIn, `${who}: ${status} ${answer.text.slice(0, 200)}`)
}

/** Refused with 401 and this challenge; never a word of what is there. */
function unknown(t: Test, answer: Answer, challenge: string, who: string): void {
  t.equal(answer.status, 401, `${who}: ${answer.text.slice(0, 200)}`)
  t.equal(answer.headers['www-authenticate'], challenge, who)
  t.match(answer.json(), { errors: [{ code: 'UNAUTHENTICATED' }] }, who)
}

const { node, expired } = await start()
const owner = await node.token()
const revoked = await node.token()
await node.form('/oauth/revoke', { token: revoked })
await until('the token is revoked', async () => {
  return (await node.ask('/resources/graph/meta', { token: revoked })).status === 401
})
const rows = describedOperations().map((operation) => rowOf(node, operation))
const closed = rows.filter(({ operation: { access } }) => access === 'token')

t.test('RFC 6750 3: without a token, and with one that is no good', async (t) => {
  t.ok(closed.length > 30, `${closed.length} operations`)
  const bad = {
    ...{
      expired,
      revoked,
      nonsense: 'nonsense',
      'of nobody': Buffer.alloc(48).toString('base64url'),
    },
    'of another secret': `${owner.slice(0, 32)}${'A'.repeat(32)}`,
  }
  for (const { name, operation, ask } of rows) {
    if (operation.access === 'token') unknown(t, await ask(null), REALM, name)
    else if (operation.access === 'either') letIn(t, await ask(null), name)
    else t.not((await ask(null)).headers['www-authenticate'], REALM, name)
    if (operation.access === 'none') continue
    for (const [what, token] of Object.entries(bad)) {
      unknown(t, await ask(token), INVALID, `${name}, ${what}`)
    }
  }
})

t.test('RFC 6750 3.1: a token that is not enough, and what would be', async (t) => {
  const other = await node.token('signals:read')
  for (const { name, ask, scope, operation } of rows) {
    if (operation.access === 'none') continue
    const answer = await ask(other)
    if (scope === '') {
      letIn(t, answer, name)
      continue
    }
    t.equal(statusOf(answer), 403, `${name}: ${answer.text.slice(0, 200)}`)
    if (operation.body?.type === 'ndjson') continue
    // Who follows what the answers say gets in.
    const scopes = new Set<string>()
    let last = answer
    for (let asked = 0; asked < 4 && last.status === 403; asked++) {
      const [, told] =
        /^Bearer realm="kontor", error="insufficient_scope", scope="([^"]+)"$/.exec(
          String(last.headers['www-authenticate']),
        ) ?? []
      if (told === undefined) break
      scopes.add(told)
      last = await ask(await node.token([...scopes].join(' ')))
    }
    letIn(t, last, `${name} with ${[...scopes].join(' ')}`)
  }
})

t.test('a token of the entries that the operation names, and the owner’s', async (t) => {
  for (const { name, ask, scope } of closed) {
    letIn(t, await ask(await node.token(scope === '' ? 'signals:read' : scope)), `${name} ${scope}`)
    letIn(t, await ask(owner), `${name}, the owner`)
  }
})

const canMakeClients = rows.some(({ name }) => name === 'POST /iam/clients')

t.test('of a client that is suspended', { skip: !canMakeClients }, async (t) => {
  const made = await node.ask('/iam/clients', {
    body: { name: 'suspended', redirect_uris: [], grant_types: ['client_credentials'] },
  })
  const { clientId, client_secret: secret } = made.json<{
    clientId: string
    client_secret: string
  }>()
  const path = `/resources/iam/clients/${clientId}`
  await node.ask(`${path}/roles`, { method: 'PUT', body: { roles: ['system:owner'] } })
  const token = async (): Promise<Answer> =>
    node.form('/oauth/token', {
      ...{ grant_type: 'client_credentials', client_id: clientId, client_secret: secret },
    })
  const answer = await token()
  t.equal(answer.status, 200, answer.text)
  const { access_token: suspended } = answer.json<{ access_token: string }>()
  const meta = async () => (await node.ask('/resources/graph/meta', { token: suspended })).status
  await until('its role is known', async () => (await meta()) === 200)
  t.equal((await node.ask(`${path}/suspend`, { method: 'PUT' })).status < 300, true)
  await until('that is known', async () => (await meta()) === 401)
  for (const { name, ask } of closed) unknown(t, await ask(suspended), INVALID, name)
  t.equal((await token()).status, 401)
})
