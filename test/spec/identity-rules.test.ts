// Who may change identities, that one owner stays, and where changes show: the graph, the audit. On
// a real node. Source: specification "Identity resources", "Scopes and ACEs"; CONTRACT 1.8.

import t from 'tap'
import { refused } from '../harness/answers.ts'
import { startNode } from '../harness/node-process.ts'
import type { Answer, RuntimeCall } from '../harness/node-process.ts'
import { Patience, tick } from '../harness/patience.ts'
import { administration, IAM, UNKNOWN } from './administration.ts'
import type { Made, Registered } from './administration.ts'

const node = await startNode(t)
const { post, put, get, remove, person, caller, signIn, role } = administration(node)

t.test('nobody gives more than they hold', async (t) => {
  await role('give:admin', 'iam/principals:*', 'iam/clients:*', 'iam/roles:*')
  await role('give:clerk', 'graph/order:query')
  const admin = await caller('give:admin', 'give:clerk')
  const { token } = admin
  const more = { token }
  const no = async (asked: Promise<Answer>, what: string): Promise<void> => {
    const answer = await asked
    t.equal(answer.status, 403, what)
    refused(t, answer, 'FORBIDDEN', /nobody gives more|you do not hold/)
  }
  const properties = { name: 'x', email: 'given@example.com' }
  await no(post(`${IAM}/principals`, { properties, roles: ['system:owner'] }, more), 'an owner')
  const made = await post(`${IAM}/principals`, { properties, roles: ['give:clerk'] }, more)
  t.equal(made.status, 201, made.text)
  const path = `${IAM}/principals/${made.json<Made>().id}`
  await no(put(`${path}/roles`, { roles: ['system:portal:full'] }, {}, more), 'a wider role')
  t.equal((await post(`${path}/password/reset`, undefined, more)).status, 200)
  const boss = await person(['system:owner'])
  const above = `${IAM}/principals/${boss.id}`
  await no(post(`${above}/password/reset`, undefined, more), 'a password of an owner')
  await no(post(`${IAM}/clients/bootstrap/secrets`, {}, more), 'a secret of an owner')
  const mine = { acl: { entries: ['graph:*'] } }
  await no(put(`${IAM}/roles/give:clerk`, mine, { 'If-Match': '*' }, more), 'its own role')
  await no(
    put(`${IAM}/clients/${admin.clientId}/roles`, { roles: ['system:owner'] }, {}, more),
    'itself',
  )
  await no(post('/iam/clients', { name: 'x', scope: 'registry:read' }, more), 'scopes')
  const narrow = { token: await node.token('iam/principals:write') }
  await no(put(`${path}/roles`, { roles: ['system:owner'] }, {}, narrow), "an owner's narrow token")
})

t.test('what people sign in with is led elsewhere by who holds what it carries', async (t) => {
  await role('carry:clerk', 'iam/clients:*', 'registry:*')
  const { token } = await caller('carry:clerk')
  const more = { token }
  const back = ['https://shop.example/back']
  const shop = { name: 'Shop', redirect_uris: back }
  const owners = (await post('/iam/clients', shop)).json<Registered>()
  const path = `${IAM}/clients/${owners.clientId}`
  const to = (properties: object): Promise<Answer> =>
    put(path, { properties }, { 'If-Match': '*' }, more)
  const grantTypes = ['authorization_code']
  const elsewhere = { name: 'Shop', redirectUris: ['https://elsewhere.example/back'], grantTypes }
  refused(t, await to(elsewhere), 'FORBIDDEN', /carries all that they have/)
  const narrower = { ...elsewhere, scopes: ['registry:read'] }
  refused(t, await to(narrower), 'FORBIDDEN', /carries all that they have/)
  refused(t, await post(`${path}/secrets`, {}, more), 'FORBIDDEN', /who decides who gets/)
  t.equal((await to({ name: 'Another', redirectUris: back, grantTypes })).status, 200, 'its name')
  refused(t, await post('/iam/clients', shop, more), 'FORBIDDEN', /name scopes that you hold/)
  const wide = { ...shop, scope: 'registry:read graph:query' }
  refused(t, await post('/iam/clients', wide, more), 'FORBIDDEN', /the scope graph:query/)
  const own = await post('/iam/clients', { ...shop, scope: 'registry:read' }, more)
  t.equal(own.status, 201, own.text)
  const secrets = `${IAM}/clients/${own.json<Registered>().clientId}/secrets`
  t.equal((await post(secrets, {}, more)).status, 200, 'what carries no more than one holds')
})

t.test('each operation wants its own permission', async (t) => {
  const { id } = await person()
  const asks: [string, string, RuntimeCall][] = ['principals', 'clients'].flatMap((kind) => {
    const of = `${IAM}/${kind}/${kind === 'clients' ? 'bootstrap' : id}`
    const properties =
      kind === 'clients'
        ? { name: 'x', redirectUris: [], grantTypes: [] }
        : { name: 'x', email: 'x@y.se' }
    const wide: [string, string, RuntimeCall][] = [
      [`iam/${kind}:read`, `${IAM}/${kind}`, {}],
      [`iam/${kind}:read`, of, {}],
      [`iam/${kind}:write`, of, { method: 'PUT', body: { properties } }],
      [`iam/${kind}:delete`, of, { method: 'DELETE' }],
      [`iam/${kind}:write`, `${of}/roles`, { method: 'PUT', body: { roles: [] } }],
      [`iam/${kind}:write`, `${of}/suspend`, { method: 'PUT' }],
      [`iam/${kind}:write`, `${of}/suspend`, { method: 'DELETE' }],
    ]
    return wide
  })
  asks.push(
    ['iam/principals:write', `${IAM}/principals/${id}/password/reset`, { method: 'POST' }],
    ['iam/clients:write', `${IAM}/clients/bootstrap/secrets`, { method: 'POST', body: {} }],
    ['iam/clients:write', `${IAM}/clients/bootstrap/secrets/x`, { method: 'DELETE' }],
    ['iam/clients:write', '/iam/clients', { method: 'POST', body: { name: 'x' } }],
    ['iam/roles:read', `${IAM}/roles`, {}],
    ['iam/roles:read', `${IAM}/roles/a:b`, {}],
    ['iam/roles:write', `${IAM}/roles/a:b`, { method: 'PUT', body: { acl: { entries: [] } } }],
    ['iam/roles:delete', `${IAM}/roles/a:b`, { method: 'DELETE' }],
  )
  const permissions = ['principals', 'clients', 'roles'].flatMap((kind) =>
    ['read', 'write', 'delete'].map((permission) => `iam/${kind}:${permission}`),
  )
  const unknown = `${IAM}/principals/${UNKNOWN}`
  for (const [permission, path, ask] of asks) {
    const others = permissions.filter((one) => one !== permission).join(' ')
    const token = await node.token(others)
    const ace = `this needs the ACE ${permission.replace(':', '(/[^:]+)?:')}`
    refused(t, await node.ask(path, { ...ask, token }), 'FORBIDDEN', new RegExp(ace))
    t.equal((await node.send(path, ask)).status, 401)
  }
  const stranger = await node.token('graph:query')
  refused(t, await get(unknown, stranger), 'FORBIDDEN', /needs the ACE/)
  const there = encodeURIComponent(String((await person()).properties['email']))
  for (const name of [there, 'nobody@example.com']) {
    const wants = /needs the ACE iam\/principals:read$/
    refused(t, await get(`${IAM}/principals/${name}`, stranger), 'FORBIDDEN', wants)
  }
  const one = await node.token(`iam/principals/${id}:read`)
  t.equal((await get(`${IAM}/principals/${id}`, one)).status, 200, 'of one alone')
  refused(t, await get(`${IAM}/principals`, one), 'FORBIDDEN', /needs the ACE/)
})

t.test('a refusal does not tell who is there (CONTRACT 1.8)', async (t) => {
  const { id, properties } = await person()
  const stranger = await node.token('graph:query')
  const told = async (path: string): Promise<string> => {
    const { status, text, headers } = await get(`${IAM}/${path}`, stranger)
    const named = path.split('/')[1]!
    return `${status} ${text} ${String(headers['www-authenticate'])}`
      .replaceAll(named, '<id>')
      .replace(/"requestId":"[^"]*"/, '')
  }
  const email = String(properties['email'])
  t.equal(await told(`principals/${email}`), await told('principals/nobody@example.com'))
  t.equal(await told(`principals/${id}`), await told(`principals/${UNKNOWN}`))
  t.equal(await told('clients/bootstrap'), await told('clients/nobody'))
  const { clientId } = await caller()
  t.equal(await told(`clients/${clientId}`), await told(`clients/${UNKNOWN}`))
})

t.test('identities are in the graph, without secrets, and say who changed them last', async (t) => {
  const properties = { name: 'Graph', email: 'graph@example.com', dynamic: { team: 'a' } }
  const made = await post(`${IAM}/principals`, { properties, roles: ['graph:role'] })
  const { id } = made.json<Made>()
  await role('graph:role', 'graph:query')
  const read = (navigation: object, after: Answer): Promise<Record<string, unknown>> =>
    node.graph([navigation], after)
  const fields = ['principalId', 'name', 'email', 'roles', 'lastModifiedBy', 'lastModified']
  const found = await read(
    { edge: 'principals', filter: `dynamic->'team' == 'a'`, node: { fields } },
    made,
  )
  t.match(found, {
    principals: [
      { principalId: id, name: 'Graph', roles: ['graph:role'], lastModifiedBy: 'bootstrap' },
    ],
  })
  const client = await post('/iam/clients', { name: 'in the graph' })
  const byName = { filter: `name == 'in the graph'` }
  const clients = { edge: 'clients', ...byName, node: { fields: ['clientId', 'grantTypes'] } }
  t.strictSame(await read(clients, client), {
    clients: [{ clientId: client.json<Registered>().clientId, grantTypes: ['authorization_code'] }],
  })
  const roles = { edge: 'roles', filter: `roleKey == 'graph:role'`, node: { fields: ['entries'] } }
  t.strictSame(await read(roles, client), { roles: [{ entries: ['graph:query'] }] })
  const gone = await remove(`${IAM}/principals/${id}`)
  t.strictSame(await read({ edge: 'principals', filter: `name == 'Graph'`, count: true }, gone), {
    principals: 0,
  })
  const meta = await get('/resources/graph/meta')
  t.notMatch(meta.text, /"name":"(secrets|password|hash|jwks)"/)
})

t.test('bodies that are none', async (t) => {
  const tags = { acl: { entries: [] }, eTag: ','.repeat(200_000) }
  refused(t, await put(`${IAM}/roles/a:b`, tags), 'MALFORMED_REQUEST', /^eTag/)
  const ada = await person()
  for (const body of [null, [], 'x', { properties: null }, { properties: { name: '' } }]) {
    const asked = put(`${IAM}/principals/${ada.id}`, body, { 'If-Match': '*' })
    refused(t, await asked, 'MALFORMED_REQUEST', /./)
  }
  const dynamic = { text: 'x'.repeat(300_000) }
  const large = { properties: { name: 'x', email: 'large@example.com', dynamic } }
  refused(t, await post(`${IAM}/principals`, large), 'TOO_LARGE', /bytes/)
  const odd = { properties: { name: 'x', email: 'o@e.se', isOwner: true } }
  refused(t, await post(`${IAM}/principals`, odd), 'MALFORMED_REQUEST', /isOwner/)
})

t.test('who changed what, when: also of what was deleted', async (t) => {
  const ada = await person()
  const path = `${IAM}/principals/${ada.id}`
  await put(`${path}/roles`, { roles: ['a:b'] })
  await post(`${path}/password/reset`)
  const gone = await remove(path)
  t.equal(gone.status, 204)
  interface Changes {
    readonly changes: readonly { change: string; by: string; at: string; members: string[] }[]
    readonly lastCursor: string | null
  }
  const read = async (query = ''): Promise<Changes> => {
    const answer = await get(`${path}/changes${query}`)
    return answer.status === 404 ? { changes: [], lastCursor: null } : answer.json<Changes>()
  }
  const patience = new Patience(10_000)
  let all = await read()
  // They are read from what is written behind the log.
  while (all.changes.length < 4 && !patience.isOver()) {
    await tick()
    all = await read()
  }
  t.strictSame(
    all.changes.map(({ change, by, members }) => [change, by, members]),
    [
      ['deleted', 'bootstrap', []],
      ['changed', 'bootstrap', ['password', 'sessionEpoch']],
      ['changed', 'bootstrap', ['roles']],
      ['created', 'bootstrap', []],
    ],
  )
  t.equal(all.lastCursor, null)
  const first = await read('?limit=3')
  t.strictSame(first.changes, all.changes.slice(0, 3))
  const rest = await read(`?limit=3&after=${first.lastCursor}`)
  t.strictSame(rest, { changes: all.changes.slice(3), lastCursor: null })
  refused(t, await get(`${IAM}/principals/${UNKNOWN}/changes`), 'NOT_FOUND', /never was/)
  const other = await node.token('iam/roles:read')
  refused(t, await get(`${path}/changes`, other), 'FORBIDDEN', /needs the ACE/)
})

t.test('the client bootstrap: rotated, and suspended once another owner is there', async (t) => {
  const path = `${IAM}/clients/bootstrap`
  const other = await caller('system:owner')
  const { secrets } = (await get(path)).json<{ secrets: { secretId: string }[] }>()
  const made = await post(`${path}/secrets`, {})
  t.equal(made.status, 200, made.text)
  const rotated = {
    ...other,
    client_id: 'bootstrap',
    client_secret: made.json<{ clientSecret: string }>().clientSecret,
  }
  t.equal((await remove(`${path}/secrets/${secrets[0]!.secretId}`)).status, 204)
  t.equal((await signIn(rotated)).status, 200)
  t.equal((await node.ask(`${path}/suspend`, { method: 'PUT' })).status, 200)
  t.equal((await signIn(rotated)).status, 401)
  const { token } = other
  const own = `${IAM}/clients/${other.clientId}`
  refused(
    t,
    await node.ask(`${own}/suspend`, { method: 'PUT', token }),
    'LAST_OWNER',
    /last active/,
  )
  refused(t, await node.ask(own, { method: 'DELETE', token }), 'LAST_OWNER', /last active/)
  const back = await node.ask(`${path}/suspend`, { method: 'DELETE', token })
  t.equal(back.status, 200, back.text)
})
