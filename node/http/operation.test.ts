// Each operation says who may call it: by entries that the grammar knows, or, by name and with the
// reason, without. Source: CONTRACT "Operations", 1.14.

import t from 'tap'
import { parseAce } from '../../protocol/ace.ts'
import { describedOperations } from '../../tools/generate/contract.ts'

/** Nobody has to say who they are. */
const PUBLIC: Readonly<Record<string, string>> = {
  'GET /': 'what runs here; more is told to who may know',
  'GET /health/live': 'for whoever starts the process again',
  'GET /health/ready': 'for load balancers',
  'GET /metrics': 'how the process is; the rest wants cluster:read',
  'GET /openapi.json': 'the description, which is the same everywhere',
  'GET /graphiql': 'a page; what it asks wants a token',
  'GET /graphiql/{file}': 'its files',
  'GET /live': 'a page; what it asks wants a token',
  'GET /live/{file}': 'its files',
  'GET /sign-in.mjs': 'a part of those pages',
  'GET /oauth/authorize': 'pages on which people say who they are',
  'POST /oauth/authorize': 'their forms, which are sealed',
  'GET /oauth/external/callback': 'where a provider sends people back; its state is sealed',
  'POST /oauth/introspect': 'the client says who it is in the request (RFC 7662 2.1)',
  'POST /oauth/token': 'the client says who it is in the request (RFC 6749 3.2)',
  'POST /oauth/revoke': 'who holds a token may end it (RFC 7009)',
  'GET /.well-known/oauth-authorization-server': 'metadata (RFC 8414)',
}

/** Any good token will do, and each sees its own. */
const ANY_TOKEN: Readonly<Record<string, string>> = {
  'GET /resources/registry': 'lists what the caller may read',
  'GET /resources/graph/meta': 'lists what the caller may query',
}

/** A second spelling of paths. */
const operations = describedOperations().map((operation) => ({
  ...operation,
  name: `${operation.method} ${operation.path}`.replace('/resources/reference/', '/resources/'),
}))

const EXAMPLES: Readonly<Record<string, string>> = {
  '<uuid>': '0198c0de-7000-7abc-8def-0123456789ab',
  '<message type>': 'create',
}
/** A permission as it is asked for, with something in each place that a request fills. */
const exampleOf = (permission: string): string =>
  permission
    .replace('{type}/{typeKey}', 'ticket/claim')
    .replaceAll(/<[^>]+>/g, (place) => EXAMPLES[place] ?? 'order')
    .replaceAll(/\{(?:\*\*)?\w+\}/g, 'order')

t.test('who may call it is said by entries, or by name with the reason', (t) => {
  t.ok(operations.length > 40, `${operations.length} operations`)
  for (const { name, access, permissions = [] } of operations) {
    const isNamed = permissions.length > 0
    if (access === 'token') t.ok(isNamed !== Object.hasOwn(ANY_TOKEN, name), `${name}: which ACE?`)
    else t.ok(Object.hasOwn(PUBLIC, name), `${name} is open: why?`)
    for (const permission of permissions) {
      const parsed = parseAce(exampleOf(permission))
      t.ok(parsed.ok, `${name}: ${permission} ${parsed.ok ? '' : parsed.reason}`)
    }
  }
  const known = new Set(operations.map(({ name }) => name))
  for (const name of [...Object.keys(PUBLIC), ...Object.keys(ANY_TOKEN)])
    t.ok(known.has(name), name)
  t.end()
})

t.test('a body that somebody unknown sends is counted, by their address', (t) => {
  for (const { name, method, access, rate } of operations) {
    if (access !== 'none' || method === 'GET') continue
    const isOwn = name === 'POST /oauth/introspect'
    t.equal(rate, isOwn ? 'own' : 'sign-in', name)
  }
  t.end()
})
