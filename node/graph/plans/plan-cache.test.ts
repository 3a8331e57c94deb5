// The cache of plans: bounded, by permissions, and blind to what depends on the time.

import t from 'tap'
import { Acl } from '../../../protocol/ace.ts'
import { PlanCache, type ReadyPlan } from './plan-cache.ts'

const plan = (json: string): ReadyPlan => ({ plan: { steps: [] }, json, usesHistory: false })

t.test('finds a plan by text and permissions', async (t) => {
  const cache = new PlanCache(10)
  const [one, other] = [new Acl([]), new Acl([])]
  t.equal(cache.find(one, 'a'), null)
  cache.keep(one, 'a', plan('1'))
  t.equal(cache.find(one, 'a')!.json, '1')
  t.equal(cache.find(other, 'a'), null)
  cache.keep(other, 'a', plan('2'))
  t.equal(cache.find(one, 'a')!.json, '1')
})

t.test('keeps the ones used last', async (t) => {
  const cache = new PlanCache(2)
  const acl = new Acl([])
  cache.keep(acl, 'a', plan('a'))
  cache.keep(acl, 'b', plan('b'))
  cache.find(acl, 'a')
  cache.keep(acl, 'c', plan('c'))
  t.equal(cache.find(acl, 'b'), null)
  t.equal(cache.find(acl, 'a')!.json, 'a')
})

t.test('keeps nothing that may mean now, and nothing long', async (t) => {
  const cache = new PlanCache(10)
  const acl = new Acl([])
  const long = `"${'x'.repeat(5_000)}"`
  const texts = ['createdAt > now - 7 days', String.raw`\tnow`, String.raw`n\u006fw`, long]
  for (const text of texts) {
    cache.keep(acl, text, plan('1'))
    t.equal(cache.find(acl, text), null)
  }
})
