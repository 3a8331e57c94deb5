// Who still stands behind a session: each way in which its identity or its client goes, alone.
// Source: CONTRACT 1.8 "Suspension", PROTOCOL 3.0 "Sessions".

import t from 'tap'
import type { ConfigurationView } from '../../../protocol/behaviour.ts'
import type { Client } from '../client.ts'
import type { Principal } from '../principal.ts'
import { erasOf, standingOf, stillStanding } from './standing.ts'

const AT = '2026-01-01T00:00:00.000Z'
const LATER = '2026-02-01T00:00:00.000Z'
const CLIENT: Client = {
  properties: { name: 'app', redirectUris: [], grantTypes: ['authorization_code'] },
  ...{ roles: [], secrets: [], isSystem: false, sessionEpoch: 1, createdAt: AT, suspendedAt: null },
}
const PRINCIPAL: Principal = {
  properties: { name: 'Ada', email: 'ada@shop.example' },
  ...{ roles: [], accessAttributes: {}, password: null },
  ...{ sessionEpoch: 1, createdAt: AT, suspendedAt: null },
}

interface Identities {
  readonly client: Client | null
  readonly principal: Principal | null
}

function viewOf(identities: Identities): ConfigurationView {
  const get = (type: keyof Identities, key: string): { value: unknown } | null => {
    const value = key === (type === 'client' ? 'app' : 'ada') ? identities[type] : null
    return value && { value }
  }
  return { get } as unknown as ConfigurationView
}

const ALL: Identities = { client: CLIENT, principal: PRINCIPAL }
const own = { kind: 'client', identity: 'app', clientId: 'app' } as const
const persons = { kind: 'principal', identity: 'ada', clientId: 'app' } as const

t.test('who is there stands, for a session of their own kind', (t) => {
  t.strictSame(standingOf(own, viewOf(ALL)), { client: CLIENT, principal: null })
  t.strictSame(standingOf(persons, viewOf(ALL)), { client: CLIENT, principal: PRINCIPAL })
  t.equal(standingOf({ ...own, identity: 'ada' }, viewOf(ALL)), null, 'a client as a person')
  t.equal(standingOf({ ...persons, identity: 'app' }, viewOf(ALL)), null, 'a person as a client')
  t.equal(standingOf({ ...own, identity: 'other', clientId: 'other' }, viewOf(ALL)), null)
  t.end()
})

/** What ends sessions, by itself; of those of a person, and of a client's own. */
const CHANGES: readonly (readonly [string, Partial<Identities>, ends: readonly string[]])[] = [
  ['the client is gone', { client: null }, ['own', 'persons']],
  ['it is suspended', { client: { ...CLIENT, suspendedAt: LATER } }, ['own', 'persons']],
  ['its epoch was raised', { client: { ...CLIENT, sessionEpoch: 2 } }, ['own', 'persons']],
  ['it was made anew', { client: { ...CLIENT, createdAt: LATER } }, ['own', 'persons']],
  ['the person is gone', { principal: null }, ['persons']],
  ['is suspended', { principal: { ...PRINCIPAL, suspendedAt: LATER } }, ['persons']],
  ['has another password', { principal: { ...PRINCIPAL, sessionEpoch: 2 } }, ['persons']],
  ['was made anew', { principal: { ...PRINCIPAL, createdAt: LATER } }, ['persons']],
  ['a role was given', { client: { ...CLIENT, roles: ['system:owner'] } }, []],
  ['nothing was changed', {}, []],
]

t.test('each change alone ends what it should end, and nothing else', (t) => {
  for (const [what, change, ends] of CHANGES) {
    const after = viewOf({ ...ALL, ...change })
    for (const [name, subject] of Object.entries({ own, persons })) {
      const session = { ...subject, eras: erasOf(standingOf(subject, viewOf(ALL))!) }
      t.equal(stillStanding(session, after) === null, ends.includes(name), `${what}: ${name}`)
    }
  }
  t.end()
})
