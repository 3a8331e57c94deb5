// The identity resources over HTTP on a real node: people, clients, roles. Source: specification
// "Identity resources", "Personal access tokens and IAM"; CONTRACT 1.8.

import t from 'tap'
import { refused } from '../harness/answers.ts'
import { startNode } from '../harness/node-process.ts'
import type { Answer } from '../harness/node-process.ts'
import { administration, IAM, UNKNOWN } from './administration.ts'
import type { Made, Registered } from './administration.ts'

const node = await startNode(t)
const { post, put, get, remove, person, caller, signIn, role } = administration(node)

t.test('a principal is made, read, changed under its ETag, and deleted', async (t) => {
  const properties = { name: 'Åsa', email: 'Asa@Example.com', phone: '+46 1', dynamic: { team: 1 } }
  const answer = await post(`${IAM}/principals`, {
    properties,
    accessAttributes: { region: ['SE'] },
  })
  t.equal(answer.status, 201, answer.text)
  const made = answer.json<Made & { createdAt: string }>()
  const path = `${IAM}/principals/${made.id}`
  t.equal(answer.headers['location'], path)
  t.match(made.id, /^[0-9a-f]{8}-[0-9a-f]{4}-7/)
  const { id, createdAt, eTag } = made
  const expected = {
    ...{ id, type: 'principal', properties, roles: [], accessAttributes: { region: ['SE'] } },
    ...{ createdAt, suspendedAt: null, lastActiveAt: null, logins: [], eTag },
    ...{ passwordLogin: false, passwordExpiresAt: null },
  }
  t.strictSame(made, expected)
  const read = await get(path)
  t.equal(read.headers['etag'], eTag)
  t.strictSame(read.json(), { ...expected, acl: { entries: [] } })
  const byMail = await get(`${IAM}/principals/${encodeURIComponent('asa@example.COM')}`)
  t.equal(byMail.json<Made>().id, id, 'by e-mail, in letters of any case')

  const changed = await put(
    path,
    { properties: { ...properties, name: 'Eva' } },
    { 'If-Match': eTag },
  )
  t.equal(changed.status, 200, changed.text)
  t.equal(changed.json<Made>().properties['name'], 'Eva')
  t.not(changed.headers['etag'], eTag)
  refused(t, await put(path, { properties }, { 'If-Match': eTag }), 'CONFLICT', /has changed/)
  refused(t, await put(path, { properties, eTag }), 'CONFLICT', /has changed/)
  refused(t, await put(path, { properties }), 'CONFLICT', /send its ETag/)
  const body = { properties, eTag: changed.headers['etag'] }
  t.equal((await put(path, body)).status, 200, 'eTag in the body')
  t.equal((await put(path, { properties }, { 'If-Match': '*' })).status, 200)
  refused(t, await remove(path, { 'If-Match': eTag }), 'CONFLICT', /has changed/)
  t.equal((await remove(path)).status, 204)
  refused(t, await get(path), 'NOT_FOUND', /no principal/)
  refused(t, await put(path, { properties }), 'CONFLICT', /was deleted/)
})

t.test('e-mail addresses: unique without case, ASCII, and real ones', async (t) => {
  const email = 'only@example.com'
  const make = (address: unknown): Promise<Answer> =>
    post(`${IAM}/principals`, { properties: { name: 'x', email: address } })
  t.equal((await make(email)).status, 201)
  refused(t, await make('ONLY@example.COM'), 'ALREADY_EXISTS', /e-mail/)
  const other = await person()
  const steal = { properties: { name: 'x', email }, eTag: other.eTag }
  refused(t, await put(`${IAM}/principals/${other.id}`, steal), 'ALREADY_EXISTS', /e-mail/)
  const wrong = ['', 'x', 'a@b', 'a b@example.com', 'а@example.com', 'a@exämple.com', ' a@b.se']
  for (const one of [...wrong, 'a@b.se\n', `${'a'.repeat(250)}@b.se`, null, 7, {}]) {
    refused(t, await make(one), 'MALFORMED_REQUEST', /email/)
  }
})

t.test('lists: pages, role prefixes, and what people look for', async (t) => {
  await role('list:one')
  const made: Made[] = []
  for (let i = 0; i < 7; i++)
    made.push(await person(i % 2 ? ['list:one'] : ['list:two'], `Zoë ${i}`))
  interface List {
    readonly principals: readonly Made[]
    readonly totalCount: number
    readonly firstCursor: string | null
    readonly lastCursor: string | null
  }
  const list = async (query: string): Promise<List> => {
    const answer = await get(`${IAM}/principals?${query}`)
    if (answer.status !== 200) throw new Error(answer.text)
    return answer.json<List>()
  }
  const ids = ({ principals }: List): string[] => principals.map(({ id }) => id)
  const all = made.map(({ id }) => id)
  const odd = all.filter((_, i) => i % 2)
  t.strictSame(ids(await list('rolePrefix=list:')), all)
  t.strictSame(ids(await list('rolePrefix=list:one')), odd)
  t.strictSame(await list('rolePrefix=none:'), {
    ...{ principals: [], totalCount: 0, firstCursor: null, lastCursor: null },
  })
  const first = await list('rolePrefix=list:&limit=3')
  t.strictSame([ids(first), first.totalCount], [all.slice(0, 3), 7])
  const second = await list(`rolePrefix=list:&limit=3&after=${first.lastCursor}`)
  t.strictSame(ids(second), all.slice(3, 6))
  const third = await list(`rolePrefix=list:&limit=3&after=${second.lastCursor}`)
  t.strictSame(ids(third), all.slice(6))
  const back = await list(`rolePrefix=list:&limit=2&before=${second.firstCursor}`)
  t.strictSame(ids(back), all.slice(1, 3))
  await remove(`${IAM}/principals/${all[2]}`)
  t.strictSame(
    ids(await list(`rolePrefix=list:&limit=2&after=${first.lastCursor}`)),
    all.slice(3, 5),
  )
  t.strictSame(ids(await list(`search=${encodeURIComponent('zOË 4')}`)), [all[4]])
  t.equal((await list('limit=1')).principals.length, 1)
  for (const query of [
    'limit=0',
    'limit=101',
    'limit=x',
    'after=!',
    'after=',
    'after=YQ&before=YQ',
  ]) {
    refused(t, await get(`${IAM}/principals?${query}`), 'INVALID_PARAMETERS', /limit|after|page/)
  }
})

t.test('roles are assigned, whole, and known by their form', async (t) => {
  const ada = await person(['a:b'])
  const path = `${IAM}/principals/${ada.id}/roles`
  const answer = await put(path, { roles: ['system:portal:full', 'c:d'] })
  t.strictSame(answer.json<Made>().roles, ['system:portal:full', 'c:d'])
  refused(t, await put(path, { roles: [] }, { 'If-Match': ada.eTag }), 'CONFLICT', /has changed/)
  refused(t, await put(path, { roles: ['system:else'] }), 'INVALID_PARAMETERS', /system:owner/)
  for (const roles of [undefined, 'a:b', ['plain'], ['a:b', 'a:b'], ['a: b'], [7]]) {
    refused(t, await put(path, { roles }), 'MALFORMED_REQUEST', /roles/)
  }
  refused(t, await put(`${IAM}/principals/${UNKNOWN}/roles`, { roles: [] }), 'NOT_FOUND', /./)
})

t.test('suspended, reset, and let in again', async (t) => {
  const ada = await person()
  const path = `${IAM}/principals/${ada.id}`
  const suspended = await node.ask(`${path}/suspend`, { method: 'PUT' })
  t.equal(suspended.status, 200, suspended.text)
  t.match(suspended.json<Made>().suspendedAt, /^\d{4}-/)
  const twice = await node.ask(`${path}/suspend`, { method: 'PUT' })
  t.strictSame(twice.json(), suspended.json(), 'twice is once')
  t.equal((await remove(`${path}/suspend`)).json<Made>().suspendedAt, null)
  const reset = await post(`${path}/password/reset`)
  t.equal(reset.status, 200, reset.text)
  t.match(reset.headers['cache-control'], /no-store/)
  const { temporaryPassword, expiresAt } = reset.json<Record<string, string>>()
  t.match(temporaryPassword, /^(\w{5}-){3}\w{5}$/)
  const read = await get(path)
  t.match(read.json(), { passwordLogin: true, passwordExpiresAt: expiresAt })
  t.notMatch(read.text, /argon2|hash/)
  t.not(
    (await post(`${path}/password/reset`)).json<Record<string, string>>()['temporaryPassword'],
    temporaryPassword,
  )
})

t.test('a client is registered with the members of RFC 7591, its secret shown once', async (t) => {
  const asked = {
    name: 'Shop',
    redirect_uris: ['https://shop.example/back', 'http://127.0.0.1/cb', 'com.example.app:/back'],
    grant_types: ['authorization_code', 'refresh_token', 'client_credentials'],
    scope: 'graph:query registry:read',
    unknown_member: 'is passed over',
  }
  const answer = await post('/iam/clients', asked)
  t.equal(answer.status, 201, answer.text)
  const made = answer.json<Registered & Record<string, unknown>>()
  t.match(made, {
    clientId: made.client_id,
    ...{ client_name: 'Shop', name: 'Shop', redirect_uris: asked.redirect_uris },
    ...{ grant_types: asked.grant_types, token_endpoint_auth_method: 'client_secret_basic' },
    ...{ client_secret_expires_at: 0, scope: asked.scope, response_types: ['code'] },
  })
  t.equal((await signIn(made)).status, 200)
  const path = `${IAM}/clients/${made.clientId}`
  const read = await get(path)
  const record = read.json<{ secrets: { secretId: string }[] }>()
  t.match(record, {
    ...{ id: made.clientId, type: 'client', clientId: made.clientId, isSystem: false, roles: [] },
    properties: { name: 'Shop', redirectUris: asked.redirect_uris, scopes: asked.scope.split(' ') },
    suspendedAt: null,
  })
  t.equal(record.secrets.length, 1)
  t.notMatch(read.text, made.client_secret)
  t.notMatch(read.text, /scrypt|hash/)
  t.ok(
    (await get(`${IAM}/clients?search=shop`))
      .json<{ clients: Made[] }>()
      .clients.some(({ id }) => id === made.clientId),
  )
})

t.test('registrations that can not be', async (t) => {
  const make = (more: object): Promise<Answer> => post('/iam/clients', { name: 'x', ...more })
  refused(t, await post('/iam/clients', {}), 'MALFORMED_REQUEST', /name/)
  refused(t, await make({ grant_types: ['password'] }), 'MALFORMED_REQUEST', /grant_types/)
  refused(t, await make({ scope: 'nonsense' }), 'INVALID_PARAMETERS', /scope/)
  const none = { token_endpoint_auth_method: 'none', grant_types: ['client_credentials'] }
  refused(t, await make(none), 'INVALID_PARAMETERS', /client_credentials/)
  refused(
    t,
    await make({ token_endpoint_auth_method: 'private_key_jwt' }),
    'INVALID_PARAMETERS',
    /jwks/,
  )
  const wrong = [
    'javascript:alert(1)',
    'data:text/html,x',
    '/back',
    'https://a.example/#x',
    'app:/x',
  ]
  for (const uri of [...wrong, 'https://a.example\\@b.example/', 'https://u:p@a.example/', '']) {
    refused(t, await make({ redirect_uris: [uri] }), 'INVALID_PARAMETERS', /redirectUris\.0/)
  }
  const open = await make({ token_endpoint_auth_method: 'none', redirect_uris: ['https://a.se/'] })
  t.equal(open.status, 201, open.text)
  t.notOk('client_secret' in open.json())
  const { clientId } = open.json<Registered>()
  refused(t, await post(`${IAM}/clients/${clientId}/secrets`, {}), 'INVALID_STATE', /without a sec/)
})

t.test('secrets: made, used, ended, deleted', async (t) => {
  const made = await caller()
  const path = `${IAM}/clients/${made.clientId}/secrets`
  const answer = await post(path, { description: 'the second' })
  t.equal(answer.status, 200, answer.text)
  const second = answer.json<{ secretId: string; clientSecret: string; expiresAt: null }>()
  t.equal(second.expiresAt, null)
  const again = { ...made, client_secret: second.clientSecret }
  t.equal((await signIn(again)).status, 200)
  t.equal((await signIn(made)).status, 200, 'the first one, too')
  t.equal((await remove(`${path}/${second.secretId}`)).status, 204)
  t.equal((await signIn(again)).status, 401)
  refused(t, await remove(`${path}/${second.secretId}`), 'NOT_FOUND', /no secret/)
  refused(t, await post(path, { expiresAt: '2020-01-01T00:00:00Z' }), 'INVALID_PARAMETERS', /past/)
  const third = await post(path)
  t.equal(third.status, 200, 'without a body')
  for (let i = 0; i < 8; i++) t.equal((await post(path, {})).status, 200)
  refused(t, await post(path, {}), 'INVALID_STATE', /at most 10 secrets/)
})

t.test(
  'a client that is suspended or deleted ends at once, and what it had stays over',
  async (t) => {
    const made = await caller('system:portal:full')
    const path = `${IAM}/clients/${made.clientId}`
    t.equal((await get('/resources/registry', made.token)).status, 200)
    t.equal((await node.ask(`${path}/suspend`, { method: 'PUT' })).status, 200)
    t.equal((await get('/resources/registry', made.token)).status, 401)
    t.equal((await signIn(made)).status, 401)
    t.equal((await remove(`${path}/suspend`)).status, 200)
    t.equal((await signIn(made)).status, 200)
    t.equal((await remove(path)).status, 204)
    t.equal((await signIn(made)).status, 401)
    refused(t, await get(path), 'NOT_FOUND', /no client/)
  },
)

t.test('roles: written in either form, guarded, and in force within a second', async (t) => {
  const path = `${IAM}/roles/spec:reader`
  const entries = [
    'registry/spec:read',
    { resource: 'customerNumber@graph/order', permission: 'query' },
  ]
  const written = await put(path, { description: 'Reads', acl: { entries } })
  t.equal(written.status, 201, written.text)
  const body = {
    key: 'spec:reader',
    description: 'Reads',
    acl: {
      entries: [
        { resource: 'registry/spec', permission: 'read' },
        { resource: 'customerNumber@graph/order', permission: 'query' },
      ],
    },
    isSystem: false,
  }
  t.match(written.json(), body)
  t.match((await get(`${IAM}/roles/spec%3Areader`)).json(), body, 'its key encoded')
  await post('/resources/registry/spec', 1)
  const made = await caller('spec:reader')
  t.equal((await get('/resources/registry/spec', made.token)).status, 200)
  refused(t, await put(path, { acl: { entries: [] } }), 'CONFLICT', /send its ETag/)
  const headers = { 'If-Match': String(written.headers['etag']) }
  const emptied = await put(path, { acl: { entries: [] } }, headers)
  t.equal(emptied.status, 200, emptied.text)
  t.equal(
    (await get('/resources/registry/spec', made.token)).status,
    403,
    'of a session that lives',
  )
  refused(t, await put(path, { acl: { entries: ['x'] } }), 'INVALID_PARAMETERS', /acl\.entries\.0/)
  refused(
    t,
    await put(`${IAM}/roles/system:mine`, { acl: { entries: [] } }),
    'SYSTEM_ROLE',
    /system/,
  )
  refused(t, await remove(`${IAM}/roles/system:owner`), 'SYSTEM_ROLE', /system/)
  refused(t, await put(`${IAM}/roles/plain`, { acl: { entries: [] } }), 'INVALID_PARAMETERS', /key/)
  refused(t, await get(`${IAM}/roles/no:body`), 'NOT_FOUND', /no role/)
  t.equal((await remove(path)).status, 204)
  refused(t, await get(path), 'NOT_FOUND', /no role/)
  const list = (await get(`${IAM}/roles`)).json<{ roles: { key: string; isSystem: boolean }[] }>()
  const system = list.roles.filter(({ isSystem }) => isSystem).map(({ key }) => key)
  t.strictSame(system, ['system:owner', 'system:portal:full'])
  t.match((await get(`${IAM}/roles/system:owner`)).json(), { isSystem: true })
})
