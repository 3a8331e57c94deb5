// The heading "Registry" of the specification, over HTTP on a real node. Source: specification
// "Registry entry", "Registry"; CONTRACT 0 (ETags, read your writes), 1.1.

import t from 'tap'
import { refused } from '../harness/answers.ts'
import { startNode } from '../harness/node-process.ts'
import type { Answer } from '../harness/node-process.ts'
import { create } from '../harness/orders.ts'

const node = await startNode(t)
const BASE = '/resources/registry'

const put = (key: string, body: unknown, headers = {}): Promise<Answer> =>
  node.ask(`${BASE}/${key}`, { method: 'POST', raw: JSON.stringify(body), headers })
const get = (path: string): Promise<Answer> => node.ask(`${BASE}${path}`)
const remove = (key: string, headers = {}): Promise<Answer> =>
  node.ask(`${BASE}/${key}`, { method: 'DELETE', headers })

t.test('any JSON value is kept as it came', async (t) => {
  const values = [
    'text',
    '',
    0,
    -1.5,
    true,
    null,
    [],
    [1, [2, 'x']],
    { a: { b: ['ü', '\u0000\n'], toString: 1 } },
    { '': 1, 'a.b': 2 },
  ]
  for (const [i, value] of values.entries()) {
    const written = await put(`values/v${i}`, value)
    t.equal(written.status, 200, written.text)
    t.equal(written.text, '', 'an empty body')
    t.match(written.headers['etag'], /^"/)
    t.type(written.headers['x-consistency'], 'string')
    t.strictSame((await get(`/values/v${i}`)).json(), { key: `values/v${i}`, value })
  }
})

t.test('POST creates and overwrites, DELETE deletes what may not be there', async (t) => {
  await put('a/b', 1)
  await put('a/b', 2)
  t.strictSame((await get('/a/b')).json(), { key: 'a/b', value: 2 })
  t.strictSame((await get('//a/b')).json(), { key: 'a/b', value: 2 }, 'one slash is no part of it')
  const gone = await remove('a/b')
  t.equal(gone.status, 200, gone.text)
  t.type(gone.headers['x-consistency'], 'string')
  t.equal((await remove('a/b')).status, 200, 'twice')
  refused(t, await get('/a/b'), 'NOT_FOUND', /no registry entry "a\/b"/)
  await put('a/b', 3)
  t.strictSame((await get('/a/b')).json(), { key: 'a/b', value: 3 }, 'and may be made again')
})

t.test('prefixes are plain text; lists are sorted', async (t) => {
  for (const key of ['p/b', 'p/a', 'p/ab/c', 'pq', 'p']) await put(key, key)
  const entry = (key: string): unknown => ({ key, value: key })
  const found = await get('/p?searchType=prefix')
  t.strictSame(found.json(), ['p', 'p/a', 'p/ab/c', 'p/b', 'pq'].map(entry))
  t.strictSame((await get('/p/a?searchType=prefix')).json(), ['p/a', 'p/ab/c'].map(entry))
  t.strictSame((await get('/p/a?searchType=prefix&index=true')).json(), ['p/a', 'p/ab/c'])
  t.strictSame((await get('/none?searchType=prefix')).json(), [])
  t.strictSame((await get('/p/a?index=true')).json(), ['p/a'], 'exact and index: one key')
  t.strictSame((await get('/nobody?index=true')).json(), [], 'or none')
  const all = (await get('')).json<{ key: string }[]>()
  const keys = (await get('?index=true')).json<string[]>()
  t.strictSame(
    all.map(({ key }) => key),
    keys,
  )
  t.strictSame(keys, [...keys].sort(), 'the list is sorted')
  t.ok(keys.includes('pq') && keys.includes('values/v0'))
})

t.test('parameters and keys that cannot be', async (t) => {
  const word = await get('/p?searchType=regexp')
  refused(t, word, 'INVALID_PARAMETERS', /searchType is "exact" or "prefix", not "regexp"/)
  refused(t, await get('/p?index=perhaps'), 'INVALID_PARAMETERS', /index is true or false/)
  refused(t, await put('a//b', 1), 'INVALID_PARAMETERS', /no empty segments/)
  refused(t, await put('a/../b', 1), 'INVALID_PARAMETERS', /no segments "\." or "\.\."/)
  refused(t, await put('a%00b', 1), 'INVALID_PARAMETERS', /no control characters/)
  refused(t, await put('k'.repeat(513), 1), 'INVALID_PARAMETERS', /at most 512 characters/)
  refused(
    t,
    await node.ask(`${BASE}/x`, { method: 'POST' }),
    'MALFORMED_REQUEST',
    /body is missing/,
  )
  const large = await put('large', 'x'.repeat(1024 * 1024))
  refused(t, large, 'TOO_LARGE', /at most 1048576 bytes/)
  refused(t, await get('/large'), 'NOT_FOUND', /large/)
})

t.test('ETags: a stale one is 409 and changes nothing', async (t) => {
  const first = String((await put('etag', 1)).headers['etag'])
  t.equal((await get('/etag')).headers['etag'], first)
  const second = String((await put('etag', 2, { 'If-Match': first })).headers['etag'])
  t.not(second, first)
  refused(t, await put('etag', 3, { 'If-Match': first }), 'CONFLICT', /etag/i)
  refused(t, await remove('etag', { 'If-Match': first }), 'CONFLICT', /etag/i)
  refused(t, await put('etag', 3, { 'If-None-Match': '*' }), 'CONFLICT', /exists/)
  t.strictSame((await get('/etag')).json(), { key: 'etag', value: 2 })
  t.equal((await put('etag', 4, { 'If-Match': '*' })).status, 200)
  t.equal((await put('etag-new', 1, { 'If-Match': '*' })).status, 200, '* upserts')
  t.equal((await put('etag-free', 1, { 'If-None-Match': '*' })).status, 200)
  const none = await remove('etag-nobody', { 'If-Match': '"1"' })
  refused(t, none, 'CONFLICT', /does not exist/)
})

t.test('secret values are not shown', async (t) => {
  await node.ask(`${BASE}/s/key?isSecret=true`, { body: 'hush' })
  const entry = { key: 's/key', value: null, isSecret: true }
  t.strictSame((await get('/s/key')).json(), entry)
  t.strictSame((await get('/s?searchType=prefix')).json(), [entry])
  await put('s/key', 'hush-2')
  const after = await get('/s/key')
  t.strictSame(after.json(), entry, 'an overwritten secret stays one')
  t.notMatch(after.text, /hush/)
})

t.test('well-known keys are checked where they are written', async (t) => {
  const good = { currencyCode: 'EUR', taxIncluded: true, label: 'Web', countries: { SE: {} } }
  t.equal((await put('channels/web', good)).status, 200)
  const wrong = await put('channels/web', { ...good, currencyCode: 'EURO' })
  const { details } = refused(t, wrong, 'INVALID_REGISTRY_VALUE', /currencyCode/)
  t.match(details, { member: 'currencyCode' })
  refused(t, await put('channels/Web-1', good), 'INVALID_REGISTRY_VALUE', /lower-case/)
  t.strictSame((await get('/channels/web')).json(), { key: 'channels/web', value: good })
  const field = { type: 'nonsense', source: "dynamic->'x'" }
  refused(t, await put('graph/order/fields/x', field), 'INVALID_REGISTRY_VALUE', /type/)
})

t.test('channels are seen by orders at once', async (t) => {
  await put('channels/store', { currencyCode: 'EUR', taxIncluded: true })
  const command = (value: string): unknown => [create({}, { type: 'setChannelKey', value })]
  t.equal((await node.order('new', command('store'))).status, 200)
  refused(t, await node.order('new', command('stall')), 'INVALID_COMMAND', /no channel stall/)
  for (const key of ['channels/store', 'channels/web']) await remove(key)
  t.equal((await node.order('new', command('stall'))).status, 200, 'without channels any will do')
})

t.test('permissions: named keys are 403, lists are silent', async (t) => {
  await put('own/a', 1)
  await put('other/a', 1)
  const token = await node.token('registry/own:read registry/own/deep:write')
  const as = (path: string, ask = {}): Promise<Answer> =>
    node.ask(`${BASE}${path}`, { token, ...ask })
  t.equal((await as('/own/a')).status, 200)
  refused(t, await as('/other/a'), 'FORBIDDEN', /registry\/other\/a:read/)
  t.strictSame((await as('?index=true')).json(), ['own/a'])
  t.strictSame((await as('/o?searchType=prefix&index')).json(), ['own/a'])
  refused(t, await as('/own/a', { body: 2 }), 'FORBIDDEN', /registry\/own\/a:write/)
  refused(t, await as('/own/a', { method: 'DELETE' }), 'FORBIDDEN', /registry\/own\/a:write/)
  t.equal((await as('/own/deep/x', { body: 2 })).status, 200)
  t.strictSame((await get('/own/a')).json(), { key: 'own/a', value: 1 })
})

t.test('entries survive a restart', async (t) => {
  const before = (await get('')).text
  const tag = (await get('/etag')).headers['etag']
  await node.kill()
  await node.start()
  t.equal((await get('')).text, before)
  t.equal((await get('/etag')).headers['etag'], tag)
})
