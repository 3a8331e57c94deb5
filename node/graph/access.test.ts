// Which nodes and fields entries open, through the real entries.

import t from 'tap'
import { Acl, OWNER_ACL, narrow, parseScope } from '../../protocol/ace.ts'
import { graphAccess } from './access.ts'

const ID = '019a0000-0000-7000-8000-000000000001'

function accessOf(scope: string) {
  const parsed = parseScope(scope)
  if (!parsed.ok) throw new Error(parsed.reason)
  return graphAccess(new Acl(parsed.aces), 'any')
}

t.test('node types by query', async (t) => {
  t.equal(graphAccess(OWNER_ACL, 'any').mayQuery('order'), true)
  t.equal(accessOf('graph:*').mayQuery('order'), true)
  t.equal(accessOf('graph/order:query').mayQuery('order'), true)
  t.strictSame(accessOf('graph/order:query').mayQuery('delivery'), [])
  t.strictSame(accessOf('graph/order:field').mayQuery('order'), [])
  t.strictSame(accessOf(`graph/order/${ID}:query`).mayQuery('order'), [ID])
  t.strictSame(accessOf(`graph/order/${ID}:query`).mayQuery('delivery'), [])
})

t.test('a narrowed set opens only what both sides name', async (t) => {
  const base = parseScope(`graph/order/${ID}:query`)
  const asked = parseScope(`graph/order/${ID}:query graph/order/other:query`)
  if (!base.ok || !asked.ok) throw new Error('unreadable')
  const access = graphAccess(narrow(new Acl(base.aces), asked.aces), 'any')
  t.strictSame(access.mayQuery('order'), [ID])
})

t.test('filters look at any field, or where it is set at granted ones only', async (t) => {
  const parsed = parseScope('graph/order:query graph/order:field:orderNumber')
  if (!parsed.ok) throw new Error(parsed.reason)
  const acl = new Acl(parsed.aces)
  t.equal(graphAccess(acl, 'any').mayFilter('order', ['customerNumber']), true)
  t.equal(graphAccess(acl, 'granted').mayFilter('order', ['customerNumber']), false)
  t.equal(graphAccess(acl, 'granted').mayFilter('order', ['orderNumber']), true)
})

t.test('fields, their members, and members that no entry can name', async (t) => {
  const one = accessOf('graph/order:field:dynamic:gift')
  t.equal(one.mayField('order', ['dynamic', 'gift']), true)
  t.equal(one.mayField('order', ['dynamic', 'other']), false)
  t.equal(one.mayField('order', ['dynamic']), false)
  t.equal(one.mayField('order', ['dynamic', 'gift:wrap']), false)
  t.equal(one.mayField('order', ['orderNumber']), false)
  const dynamic = accessOf('graph/order:field:dynamic')
  t.equal(dynamic.mayField('order', ['dynamic', 'gift:wrap']), true)
  t.equal(dynamic.mayField('delivery', ['dynamic']), false)
  t.equal(accessOf('graph:*').mayField('order', ['orderNumber']), true)
})
