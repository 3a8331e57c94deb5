// The heading "Errors": each code of the table that a caller can reach on one node, met once over
// HTTP, with its status and a message that helps. Source: specification "Errors", CONTRACT 0
// "Errors", 1.13.

import t from 'tap'
import { ERRORS } from '../../protocol/errors.ts'
import type { ErrorCode } from '../../protocol/errors.ts'
import { refused } from '../harness/answers.ts'
import { signedIn } from '../harness/identities.ts'
import { startNode } from '../harness/node-process.ts'
import type { Answer } from '../harness/node-process.ts'
import { apply, create, query, smallOrder } from '../harness/orders.ts'
import { RawClient } from '../../node/http/testing/raw-client.ts'

const node = await startNode(t)
const order = await smallOrder(node)
const narrow = await node.token('graph/order:query actors/order:query')
const id = '0190c7a0-0000-7000-8000-000000000001'
const person = await signedIn(node, {
  id,
  email: 'ada@shop.example',
  roles: ['system:portal:full'],
})
const newPassword = (currentPassword: string, newPassword: string): Promise<Answer> => {
  const body = { currentPassword, newPassword }
  return node.ask('/resources/me/password', { body, token: person.token })
}

const graph = (body: unknown, token?: string): Promise<Answer> =>
  node.ask('/resources/graph', { body, ...(token !== undefined && { token }) })
const registry = (key: string, ask = {}): Promise<Answer> =>
  node.ask(`/resources/registry/${key}`, ask)
const keyed = (...messages: unknown[]): Promise<Answer> =>
  node.order(order.orderId, messages, { 'Idempotency-Key': 'mismatch' })

/** How each code is met, and what its message has to say. */
const MET: Readonly<Partial<Record<ErrorCode, [() => Promise<Answer>, RegExp]>>> = {
  MALFORMED_REQUEST: [
    () => registry('x', { raw: '{"a": 1,}' }),
    /line 1, column 9 there is '\}', expected a key/,
  ],
  INVALID_MESSAGE_BODY: [
    () => node.order('new', [create({ taxIncluded: 1 })]),
    /create: taxIncluded must be .*boolean/,
  ],
  INVALID_QUERY: [() => graph([{ edge: 'ordrs' }]), /no base set "ordrs"; did you mean orders/],
  INVALID_FILTER: [() => graph([{ edge: 'orders', filter: '1 +' }]), /wrong at position 3/],
  INVALID_PARAMETERS: [() => registry('x?searchType=y'), /searchType is "exact" or "prefix"/],
  DUPLICATE_ALIAS: [
    () => graph([{ edge: 'orders' }, { edge: 'orders' }]),
    /orders.*(alias|twice)|(alias|twice).*orders/,
  ],
  INVALID_REGISTRY_VALUE: [() => registry('channels/a', { body: {} }), /currencyCode is missing/],
  UNAUTHENTICATED: [() => node.send('/resources/graph/meta'), /Authorization: Bearer/],
  FORBIDDEN: [() => registry('x', { token: narrow }), /needs the ACE registry\/x:read/],
  UNAUTHORIZED_MESSAGE: [
    () => node.ask('/resources/actors/order/new', { token: narrow, body: [create()] }),
    /needs the ACE actors\/order:create/,
  ],
  FORBIDDEN_NODE: [() => graph([{ edge: 'deliveries' }], narrow), /graph\/delivery:query/],
  FORBIDDEN_FIELD: [
    () => graph([{ edge: 'orders', node: { fields: ['orderId'] } }], narrow),
    /graph\/order:field:orderId/,
  ],
  NOT_FOUND: [() => node.order('NOBODY', [query('orderId')]), /no order 'NOBODY'/],
  METHOD_NOT_ALLOWED: [
    () => node.ask('/resources/graph', { method: 'PUT', body: [] }),
    /PUT is not known here; allowed: GET, POST/,
  ],
  NOT_ACCEPTABLE: [
    () =>
      node.ask('/graphql', { body: { query: '{ __typename }' }, headers: { Accept: 'text/html' } }),
    /answered as application\/graphql-response\+json or application\/json/,
  ],
  CONFLICT: [
    () => registry('y', { body: 1, headers: { 'If-Match': '"7"' } }),
    /registry "y"|does not exist|If-Match/,
  ],
  ALREADY_EXISTS: [
    () => node.order('new', [create({ orderNumber: order.orderNumber })]),
    /order number .* is already used/,
  ],
  DUPLICATE_ID: [
    () =>
      node.order(order.orderId, [apply({ type: 'createDelivery', deliveryId: order.deliveryId })]),
    /deliveryId .* is already used in this order/,
  ],
  TOO_LARGE: [() => registry('x', { body: 'x'.repeat(2 ** 20) }), /at most 1048576 bytes/],
  UNSUPPORTED_MEDIA_TYPE: [
    () => registry('x', { raw: '<x/>', headers: { 'Content-Type': 'text/xml' } }),
    /'text\/xml'; this operation takes application\/json/,
  ],
  INVALID_COMMAND: [
    () => node.order(order.orderId, [apply({ type: 'addTag' })]),
    /commands\[0\] addTag: key is missing/,
  ],
  INVALID_STATE: [
    () => node.order(order.orderId, [apply({ type: 'setOrderState', orderState: 'completed' })]),
    /is pending and can't become completed: that takes one that is confirmed/,
  ],
  NOTHING_TO_INVOICE: [
    () => node.order(order.orderId, [apply({ type: 'invoice' })]),
    /use releaseOrderLineToInvoicing/,
  ],
  NOT_AVAILABLE: [
    () => node.ask('/resources/actors/sku/new', { body: [create()] }),
    /"sku" are not available yet/,
  ],
  IDEMPOTENCY_MISMATCH: [
    async () => {
      await keyed(apply({ type: 'addTag', key: 'a' }))
      return keyed(apply({ type: 'addTag', key: 'b' }))
    },
    /key/,
  ],
  INVALID_PASSWORD: [
    () => newPassword('not this one at all', 'eight slow boats sail'),
    /password.*not right|not.*password/,
  ],
  WEAK_PASSWORD: [() => newPassword(person.password, 'short'), /it needs 12/],
  SYSTEM_ROLE: [
    () => {
      const body = { description: '', acl: { entries: [] } }
      return node.ask('/resources/iam/roles/system:owner', { method: 'PUT', body })
    },
    /system:/,
  ],
  LAST_OWNER: [() => node.ask('/resources/iam/clients/bootstrap', { method: 'DELETE' }), /owner/],
  TOO_BUSY: [tooBusy, /this actor has 100 requests waiting; try again/],
}

/** Codes that one sound node never answers from outside, and why; other suites meet them. */
const NOT_REACHED: Readonly<Partial<Record<ErrorCode, string>>> = {
  AUTH_FAILED: 'in frames of /ws (test/spec/sockets.test.ts)',
  UPGRADE_REQUIRED: 'a path of sockets without an upgrade (test/spec/sockets.test.ts)',
  UNDEFINED_ACTOR_TYPE: 'told as UNDEFINED_TICKET_TYPE and the like',
  QUARANTINED: 'an actor whose records cannot be read',
  VOID: 'a message that comes more than a minute late',
  RATE_LIMITED: 'more in a minute than the settings allow (test/attacks/rates.test.ts)',
  SYSTEM_CLIENT: 'none is made yet',
  INTERNAL_ERROR: 'our own mistake',
  COMPONENT_ERROR: 'user code comes later',
  POISONED: 'our own mistake, in one message',
  UNAVAILABLE: 'a shard that is not served',
  INDEX_BEHIND: 'an index that hangs: test/embedded',
  OUTCOME_UNKNOWN: 'a commit without an answer',
  STORAGE_FULL: 'a full disk: test/embedded',
}

t.test('every code of the table has its place', async (t) => {
  const places = [...Object.keys(MET), ...Object.keys(NOT_REACHED)]
  t.strictSame(places.sort(), Object.keys(ERRORS).sort())
})

for (const [code, [meet, words]] of Object.entries(MET)) {
  t.test(code, async (t) => {
    const answer = await meet()
    refused(t, answer, code as ErrorCode, words)
    t.match(answer.headers['content-type'], /^application\/json/)
    const retry = ERRORS[code as ErrorCode].advice === 'retry'
    t.equal('retry-after' in answer.headers, retry, 'Retry-After where trying again helps')
  })
}

/**
 * Hundreds of requests to one actor in one moment, more than it lets wait: they come while the
 * process is stopped, so that it finds all of them at once.
 */
async function tooBusy(): Promise<Answer> {
  const { orderId } = await smallOrder(node)
  const token = await node.token()
  // Each waits for the shard of its key, and those behind it wait for their turn.
  const bodies = Array.from({ length: 400 }, (_, i) =>
    JSON.stringify([apply({ type: 'setExternalReference', value: `busy-${1_000 + i}` })]),
  )
  const head = [
    `POST /resources/actors/order/${orderId} HTTP/1.1`,
    'Host: kontor',
    `Authorization: Bearer ${token}`,
    'Content-Type: application/json',
    `Content-Length: ${bodies[0]!.length}`,
  ].join('\r\n')
  const clients = bodies.map(() => new RawClient(node.port))
  for (const client of clients) client.send(`${head}\r\n\r\n`)
  await node.send('/health/live')
  process.kill(node.pid, 'SIGSTOP')
  const written = clients.map(
    ({ socket }, i) => new Promise<void>((sent) => void socket.write(bodies[i]!, () => sent())),
  )
  await Promise.all(written)
  process.kill(node.pid, 'SIGCONT')
  const answers = await Promise.all(clients.map((client) => client.response()))
  for (const client of clients) client.destroy()
  const good = answers.filter(({ status }) => status === 200)
  const busy = answers.filter(({ status }) => status === 429)
  if (good.length + busy.length !== clients.length) throw new Error('another status')
  const { data } = (await node.order(orderId, [{ type: 'getCheckpoints' }])).json<{ data: [] }>()
  if (data.length !== good.length + 1) throw new Error(`${data.length} for ${good.length} done`)
  const [first] = busy
  if (first === undefined) throw new Error('never too busy')
  const text = first.body.toString()
  return { ...first, text, json: <T>() => JSON.parse(text) as T }
}

t.test('the request id is the caller’s when it is a sane one', async (t) => {
  const sent = async (id: string): Promise<unknown> =>
    (await node.send('/health/live', { headers: { 'X-Request-Id': id } })).headers['x-request-id']
  t.equal(await sent('abc-1 2'), 'abc-1 2')
  t.equal(await sent('x'.repeat(128)), 'x'.repeat(128))
  t.not(await sent('x'.repeat(129)), 'x'.repeat(129))
  t.not(await sent('\u00fc'), '\u00fc')
  const answer = await node.send('/nowhere', { headers: { 'X-Request-Id': 'mine' } })
  t.match(answer.json(), { requestId: 'mine', errors: [{ code: 'NOT_FOUND' }] })
  const other = await node.send('/nowhere')
  t.match(other.headers['x-request-id'], /^[0-9a-f-]{36}$/)
})

t.test('OAuth endpoints keep the bodies of RFC 6749', async (t) => {
  for (const [path, ask, status] of [
    ['/oauth/token', { raw: 'x', headers: { 'Content-Type': 'application/json' } }, 415],
    ['/oauth/token', { method: 'POST' }, 400],
    ['/oauth/revoke', { method: 'POST' }, 400],
  ] as const) {
    const answer = await node.send(path, ask)
    t.equal(answer.status, status, answer.text)
    t.match(answer.json(), { error: 'invalid_request', error_description: /\w/ })
    t.notOk('errors' in answer.json())
  }
})
