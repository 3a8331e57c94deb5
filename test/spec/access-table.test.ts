// Every operation of the route table against every kind of caller, over HTTP on a real node: who is
// let in, and what a refusal says; and the sockets, which ask by a frame. The table is the node's
// own, so what comes to it is in here. Source: specification "Authentication"; CONTRACT 0
// "Refused", 1.4.1, 1.10, 1.14; RFC 6750 3.

import t from 'tap'
import type { Test } from 'tap'
import type { TSchema } from '@sinclair/typebox'
import { describedOperations } from '../../tools/generate/contract.ts'
import type { Operation } from '../../node/http/operation.ts'
import { clusterSettings } from '../harness/driver.ts'
import { NodeProcess } from '../harness/node-process.ts'
import type { Answer } from '../harness/node-process.ts'
import { register, signedIn } from '../harness/identities.ts'
import { create } from '../harness/orders.ts'
import { until } from '../harness/patience.ts'
import { connect } from '../harness/socket-client.ts'
import { Subjects } from './access-subjects.ts'
import type { Subject } from './access-subjects.ts'

const UUID = '0198c0de-7000-7abc-8def-0123456789ab'
const REALM = 'Bearer realm="kontor"'
const OWNER = 'system:owner'
const GRAPHQL_WS = 'graphql-transport-ws'
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
/** What clients may never do, with the reason; a person with the same roles does it. */
const NOT_OF_CLIENTS: Readonly<Record<string, string>> = {
  'POST /me/pat': 'personal access tokens are of principals',
  'POST /resources/me/password': 'only people have passwords',
}

/** What nothing can be done with here, with the reason. */
const NEVER_DONE: Readonly<Record<string, string>> = {
  'POST /resources/actors/{type}/{typeKey}/{ref}': 'no type of actors has keys of its own path',
  'POST /resources/cluster/poisoned/{actorId}/{messageId}': 'nothing was given up',
}

interface Row {
  readonly name: string
  readonly operation: Operation
  /** Asks as whoever has this token (null: nobody), about something that is there. */
  readonly ask: (token: string | null, about?: Subject) => Promise<Answer>
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

function fill(name: string, text: string, about: Subject = {}): string {
  const of = { ...PARAMS, ...OF_ONE[name], ...about.params }
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
  const type = { json: 'application/json', ndjson: 'application/x-ndjson' } as const
  const ask = (token: string | null, about: Subject = {}): Promise<Answer> => {
    const path = fill(name, operation.path, about) + (QUERIES[name] ?? '')
    const who = token === null ? {} : { Authorization: `Bearer ${token}` }
    const headers = { ...who, ...about.headers }
    if (body === undefined) return node.send(path, { method, headers })
    if (body.type === 'form') {
      const form = { ...headers, 'Content-Type': 'application/x-www-form-urlencoded' }
      return node.send(path, { method, raw: '', headers: form })
    }
    const json = about.body ?? BODIES[name] ?? sample(body.schema)
    const raw = body.type === 'ndjson' ? LINE : JSON.stringify(json)
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
  t.equal(answer.headers['www-authenticate'], undefined, who)
}

/** Refused with 401 and this challenge; never a word of what is there. */
function unknown(t: Test, answer: Answer, challenge: string, who: string): void {
  t.equal(answer.status, 401, `${who}: ${answer.text.slice(0, 200)}`)
  t.equal(answer.headers['www-authenticate'], challenge, who)
  t.match(answer.json(), { errors: [{ code: 'UNAUTHENTICATED' }] }, who)
}

/** An owner that is a client, with a token that is none any more as it is suspended. */
async function suspendedClient(): Promise<string> {
  const grant_types = ['client_credentials']
  const { id, secret } = await register(node, { grant_types }, ['system:owner'])
  const shown = { client_id: id, client_secret: secret! }
  const answer = await node.form('/oauth/token', { grant_type: 'client_credentials', ...shown })
  const { access_token: token } = answer.json<{ access_token: string }>()
  await suspend(`clients/${id}`, token)
  const again = await node.form('/oauth/token', { grant_type: 'client_credentials', ...shown })
  if (again.status !== 401) throw new Error(`${again.status} ${again.text}`)
  return token
}

/** A person who is an owner, and another one who is suspended. */
async function people(): Promise<{ person: string; password: string; suspended: string }> {
  const [one, other] = ['0198c0de-7000-7abc-8def-000000000001', UUID]
  const of = (id: string, name: string) => ({ id, email: `${name}@shop.example`, roles: [OWNER] })
  const { token: person, password } = await signedIn(node, of(one, 'ada'))
  const { token: suspended } = await signedIn(node, of(other, 'eve'))
  await suspend(`principals/${other}`, suspended)
  return { person, password, suspended }
}

async function suspend(identity: string, token: string): Promise<void> {
  const status = async () => (await node.ask('/resources/graph/meta', { token })).status
  await until('its roles are known', async () => (await status()) === 200)
  const answer = await node.ask(`/resources/iam/${identity}/suspend`, { method: 'PUT' })
  if (answer.status >= 300) throw new Error(answer.text)
  await until('it is suspended', async () => (await status()) === 401)
}

const { node, expired } = await start()
const owner = await node.token()
const revoked = await node.token()
await node.form('/oauth/revoke', { token: revoked })
await until('the token is revoked', async () => {
  return (await node.ask('/resources/graph/meta', { token: revoked })).status === 401
})
const { person, password, suspended } = await people()
/** Tokens that are no good, each for another reason. */
const bad = {
  ...{ expired, revoked, nonsense: 'nonsense' },
  'of nobody': Buffer.alloc(48).toString('base64url'),
  'of another secret': `${owner.slice(0, 32)}${'A'.repeat(32)}`,
  'of a client that is suspended': await suspendedClient(),
  'of a person who is suspended': suspended,
}
const rows = describedOperations().map((operation) => rowOf(node, operation))
const guarded = rows.filter(({ operation: { access } }) => access !== 'none')
const open = rows.filter(({ operation: { access } }) => access === 'none')

t.test('RFC 6750 3: without a token, and with one that is no good', async (t) => {
  t.ok(guarded.length > 30, `${guarded.length} operations`)
  for (const { name, operation, ask } of guarded) {
    if (operation.access === 'token') unknown(t, await ask(null), REALM, name)
    else letIn(t, await ask(null), name)
    for (const [what, token] of Object.entries(bad)) {
      unknown(t, await ask(token), INVALID, `${name}, ${what}`)
    }
  }
})

t.test('what is open to all looks at no token: one more or less changes nothing', async (t) => {
  t.ok(open.length > 10, `${open.length} operations`)
  for (const { name, ask } of open) {
    const { status, headers } = await ask(null)
    t.notOk(status === 401 || status === 403, `${name}: ${status}`)
    t.equal(headers['www-authenticate'], undefined, name)
    for (const [what, token] of Object.entries({ ...bad, owner, person })) {
      const answer = await ask(token)
      t.equal(answer.status, status, `${name}, ${what}`)
      t.equal(answer.headers['www-authenticate'], undefined, `${name}, ${what}`)
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

t.test('a token of the entries that the operation names, and the owners’', async (t) => {
  for (const { name, ask, scope } of guarded) {
    letIn(t, await ask(await node.token(scope === '' ? 'signals:read' : scope)), `${name} ${scope}`)
    letIn(t, await ask(owner), `${name}, the owner`)
    const answer = await ask(person)
    t.not(statusOf(answer), 403, `${name}, a person who is an owner: ${answer.text.slice(0, 200)}`)
    letIn(t, answer, `${name}, a person who is an owner`)
  }
})

/** How a socket takes what says who is there: `in`, or the code that it is closed with. */
async function socketOf(path: '/ws' | '/graphql', token: string | null): Promise<string> {
  const socket = path === '/ws' ? await connect(node) : await connect(node, path, [GRAPHQL_WS])
  if (path === '/ws') socket.send({ type: 'auth', ...(token !== null && { token }) })
  else {
    const payload = token === null ? {} : { authorization: `Bearer ${token}` }
    socket.send({ type: 'connection_init', payload })
  }
  await until('it is answered', () => socket.end !== null || socket.frames.length > 0)
  const [first] = socket.frames
  if (first?.type === 'authenticated' || first?.type === 'connection_ack') {
    socket.close()
    return 'in'
  }
  return String((await socket.ended()).code)
}

t.test('sockets: who is nobody goes, who is known asks by frames', async (t) => {
  const known = { owner, person, 'of another scope': await node.token('signals:read') }
  for (const [path, code] of [
    ['/ws', '4401'],
    ['/graphql', '4403'],
  ] as const) {
    t.equal(await socketOf(path, null), code, `${path} without a token`)
    for (const [what, token] of Object.entries(bad)) {
      t.equal(await socketOf(path, token), code, `${path}, ${what}`)
    }
    for (const [what, token] of Object.entries(known)) {
      t.equal(await socketOf(path, token), 'in', `${path}, ${what}`)
    }
  }
  const plain = await node.ask('/ws', { token: owner })
  t.equal(plain.status, 426, 'without an upgrade there is nothing')
})

t.test('RFC 6750 3.1: with what it is about, each is done', async (t) => {
  const done = (answer: Answer, who: string): void => {
    const { status, text } = answer
    t.ok(status >= 200 && status < 300, `${who}: ${status} ${text.slice(0, 200)}`)
    t.equal(statusOf(answer), status, `${who}: ${text.slice(0, 200)}`)
  }
  const subjects = new Subjects(node, { person, password, client: owner })
  for (const { name, ask, scope } of guarded) {
    if (Object.hasOwn(NEVER_DONE, name)) continue
    const isOfPeople = /\/me\/(pat|password)/.test(name)
    done(await ask(isOfPeople ? person : owner, await subjects.of(name)), name)
    if (isOfPeople) continue
    const token = await node.token(scope === '' ? 'signals:read' : scope)
    done(await ask(token, await subjects.of(name)), `${name} with ${scope}`)
  }
})
