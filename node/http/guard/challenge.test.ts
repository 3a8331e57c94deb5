// What a refusal says of the token that would do. Source: RFC 6750 3.

import t from 'tap'
import { insufficientScope } from './challenge.ts'

const NONE = {}

function scopeOf(
  permissions: readonly string[],
  params: Record<string, string>,
  errors: readonly object[] = [{ code: 'UNAUTHORIZED_MESSAGE' }],
): string | null {
  const told = insufficientScope({ permissions }, params, { body: { errors } })
  return told === null ? null : (/scope="([^"]*)"/.exec(told)?.[1] ?? '')
}

t.test('RFC 6750 3: the entries that the errors name, each once', (t) => {
  const errors = [
    { code: 'UNAUTHORIZED_MESSAGE', details: { needs: 'actors/order:create' } },
    { code: 'UNAUTHORIZED_MESSAGE', details: { needs: 'actors/order:create' } },
    { extensions: { code: 'FORBIDDEN_NODE', details: { needs: 'graph/order:query' } } },
  ]
  t.equal(
    insufficientScope({ permissions: ['cluster:read'] }, NONE, { body: { errors } }),
    'Bearer realm="kontor", error="insufficient_scope", scope="actors/order:create graph/order:query"',
  )
  const raw = JSON.stringify({ errors: errors.slice(2) })
  t.match(insufficientScope(undefined, NONE, { raw }), 'scope="graph/order:query"')
  t.equal(insufficientScope(undefined, NONE, { raw: raw.padEnd(70_000) }), null)
  t.end()
})

t.test('without them those of the operation, for the path that was asked for', (t) => {
  t.equal(scopeOf(['cluster:read'], NONE), 'cluster:read')
  t.equal(scopeOf(['registry/{key}:write'], { key: 'a/b' }), 'registry/a/b:write')
  t.equal(scopeOf(['actors/{type}/<uuid>:<message type>'], { type: 'order' }), 'actors/order:*')
  t.equal(
    scopeOf(['graph/<node>:query', 'graph/<node>:field:<field>'], NONE),
    'graph:query graph:field',
  )
  t.equal(scopeOf([], NONE), '')
  t.end()
})

t.test('what no header may hold is covered from above', (t) => {
  for (const key of ['a/é/b', 'a/"/b', 'a/\\/b', 'a/x y/b', 'a/\r\nX/b']) {
    t.equal(scopeOf(['registry/{key}:read'], { key }), 'registry/a:read', key)
  }
  const long = Array.from({ length: 40 }, (_, i) => ({
    ...{ code: 'FORBIDDEN', details: { needs: `registry/${'x'.repeat(400)}${i}:read` } },
  }))
  t.equal(scopeOf([], NONE, long), '', 'nor more than a header has room for')
  t.end()
})

t.test('no other token would pass what has other reasons', (t) => {
  for (const code of ['SYSTEM_ROLE', 'SYSTEM_CLIENT', 'AUTH_FAILED', 'FORBIDDEN']) {
    t.equal(scopeOf(['iam/roles:write'], NONE, [{ code }]), null, code)
  }
  t.equal(insufficientScope(undefined, NONE, {}), null)
  t.end()
})
