// Which sessions share a compiled set, and that all of them together have a bound.

import t from 'tap'
import { overrideLimits } from '../../config/testing/override-limits.ts'
import type { Acl } from '../../protocol/ace.ts'
import type { Attributes } from '../../protocol/attributes.ts'
import { ActorSystemTwin } from '../testing/actor-system-twin.ts'
import { accessBehaviours } from './access.ts'
import type { Client } from './client.ts'
import { CompiledAcls } from './compiled-acls.ts'
import type { Principal } from './principal.ts'

const CLIENT: Client = {
  properties: { name: 'x', redirectUris: [], grantTypes: [] },
  ...{ roles: [], secrets: [], isSystem: false, createdAt: '', suspendedAt: null },
}

const PERSON: Principal = {
  properties: { name: 'Ada', email: 'ada@shop.example' },
  ...{ roles: ['shop:clerk'], accessAttributes: {}, password: null, sessionEpoch: 0 },
  ...{ createdAt: '', suspendedAt: null },
}

function scene() {
  const system = new ActorSystemTwin(accessBehaviours())
  const role = (key: string, resources: readonly string[]): void => {
    const entries = resources.map((resource) => ({ resource, permission: 'read' }))
    system.put('role', key, { description: '', acl: { entries } })
  }
  role('shop:clerk', ['registry'])
  const dropped = { times: 0 }
  const acls = new CompiledAcls(system.system, () => void dropped.times++)
  const ofClient = (scope: string | null, client: Partial<Client> = {}, is: Attributes = {}): Acl =>
    acls.of(scope, { client: { ...CLIENT, ...client }, principal: null }, is)
  const ofPerson = (principal: Partial<Principal>, scopes?: string[]): Acl => {
    const properties = { ...CLIENT.properties, ...(scopes && { scopes }) }
    const standing = { client: { ...CLIENT, properties }, principal: { ...PERSON, ...principal } }
    return acls.of(null, standing, {})
  }
  return { acls, dropped, role, ofClient, ofPerson }
}

t.test('who may do the same shares one set, whoever it is', (t) => {
  const { ofPerson, ofClient } = scene()
  const one = ofPerson({})
  t.ok(one.covers('registry/a', 'read') && one.covers('me', 'write'))
  t.equal(ofPerson({ properties: { name: 'Bea', email: 'bea@shop.example' } }), one)
  t.equal(
    ofClient('registry/a:read', { roles: ['shop:clerk'] }).covers('registry/b', 'read'),
    false,
  )
  t.end()
})

t.test('another role, attribute, scope or client, and it is another set', (t) => {
  const { ofPerson, ofClient } = scene()
  const clerk = { roles: ['shop:clerk'] }
  const sets = [
    ofPerson({}),
    ofPerson({ roles: [] }),
    ofPerson({ roles: ['system:owner'] }),
    ofPerson({ accessAttributes: { region: ['north'] } }),
    ofPerson({}, ['registry/a:read']),
    ofPerson({}, []),
    ofClient(null, clerk),
    ofClient(null),
    ofClient(null, clerk, { region: ['north'] }),
    ofClient(null, { ...clerk, properties: { ...CLIENT.properties, scopes: [] } }),
    ofClient('registry/a:read', clerk),
    ofClient('registry/b:read', clerk),
    ofClient('', clerk),
  ]
  t.equal(new Set(sets).size, sets.length)
  t.same(
    sets.map((acl) => acl.covers('registry/a', 'read')),
    [true, false, true, true, true, false, true, false, true, false, true, false, false],
  )
  t.end()
})

t.test('a scope that can’t be read opens nothing', (t) => {
  const { ofClient } = scene()
  const owner = { roles: ['system:owner'] }
  t.ok(ofClient(null, owner).covers('registry/a', 'read'))
  for (const scope of ['registry', 'registry:read :', '%', 'a:b:c:d:e']) {
    t.notOk(ofClient(scope, owner).covers('registry/a', 'read'), scope)
  }
  t.end()
})

t.test('a role that changed counts once they are dropped', (t) => {
  const { acls, role, ofPerson } = scene()
  t.equal(ofPerson({}).covers('registry/a', 'read'), true)
  role('shop:clerk', ['graph'])
  acls.drop()
  t.equal(ofPerson({}).covers('registry/a', 'read'), false)
  t.end()
})

t.test('sets of many entries are few', (t) => {
  t.teardown(overrideLimits({ 'access.aclScopesCharsMax': 10_000 }))
  const { acls, dropped, role, ofPerson } = scene()
  const long = Array.from({ length: 100 }, (_, i) => `registry/a${i}`)
  for (let i = 0; i < 20; i++) {
    role(`shop:r${i}`, long)
    t.equal(ofPerson({ roles: [`shop:r${i}`] }).covers('registry/a99', 'read'), true)
    t.ok(acls.size <= 4, `${acls.size} at hand`)
  }
  t.equal(dropped.times, 4, 'who holds them is told to let go')
  t.end()
})

t.test('what sets remember is bounded together, and room comes back', (t) => {
  t.teardown(overrideLimits({ 'access.aclAnswersMax': 100 }))
  const { dropped, ofClient } = scene()
  const sets = Array.from({ length: 10 }, (_, i) => ofClient(`registry/a${i}:read`, { roles: [] }))
  const remembered = (): number => sets.reduce((sum, acl) => sum + acl.remembered, 0)
  for (const acl of sets) {
    for (let i = 0; i < 50; i++) t.equal(acl.covers(`registry/x/${i}`, 'read'), false)
  }
  t.equal(remembered(), 100)
  t.equal(dropped.times, 0)
  const fresh = ofClient('registry/a0:read', { roles: [] })
  t.equal(dropped.times, 1)
  fresh.covers('registry/x/1', 'read')
  t.equal(fresh.remembered, 1)
  t.end()
})
