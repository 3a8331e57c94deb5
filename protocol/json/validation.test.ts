// Messages of shape checks: what is wrong, where, and what would be right.

import { Type } from '@sinclair/typebox'
import t from 'tap'
import { compileShape } from './validation.ts'

const strict = { additionalProperties: false }
const check = compileShape(
  Type.Object(
    { node: Type.Optional(Type.Object({ fields: Type.Optional(Type.Any()) }, strict)) },
    strict,
  ),
)

void t.test('a member that is not known comes with those that are', (t) => {
  t.same(check({ node: { edges: 1 } }), {
    member: 'node.edges',
    message: 'is not known here; known are fields',
  })
  t.same(check({ nodes: {} }), { member: 'nodes', message: 'is not known here; known are node' })
  t.equal(check({ node: { fields: 1 } }), null)
  t.end()
})

void t.test('very many are not told', (t) => {
  const members = Array.from({ length: 25 }, (_, i) => [`m${i}`, Type.Optional(Type.Any())])
  const wide = compileShape(Type.Object(Object.fromEntries(members), strict))
  t.same(wide({ other: 1 }), { member: 'other', message: 'is not known here' })
  const none = compileShape(Type.Object({}, strict))
  t.same(none({ other: 1 }), { member: 'other', message: 'is not known here' })
  t.end()
})
