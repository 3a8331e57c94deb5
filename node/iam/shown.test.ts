// What answers leave out of identities: secrets always, last uses where they can't be told.

import t from 'tap'
import type { ShownActivity } from '../access/activity/last-activity.ts'
import type { Client } from '../access/client.ts'
import type { Principal } from '../access/principal.ts'
import { shownClient, shownPrincipal } from './shown.ts'

const DATES = { createdAt: '', suspendedAt: null }
const client: Client = {
  properties: { name: 'shop', redirectUris: [], grantTypes: [] },
  secrets: ['s1', 's2'].map((secretId) => ({
    ...{ secretId, hash: 'scrypt$', source: 'issued', createdAt: '', expiresAt: null },
  })),
  ...{ roles: [], isSystem: false, ...DATES },
}
const principal: Principal = {
  properties: { name: 'Ada', email: 'ada@example.com' },
  ...{ roles: [], accessAttributes: {}, password: null, sessionEpoch: 0, ...DATES },
}
const at = '2026-03-01T12:00:00.000Z'
const activity: ShownActivity = {
  lastActiveAt: at,
  secretUsedAt: (id) => (id === 's1' ? at : null),
}

t.test('never is null, and what is not known is left out', (t) => {
  const entry = { key: 'k', version: 1 }
  t.match(shownPrincipal({ ...entry, value: principal }, activity), { lastActiveAt: at })
  const shown = shownClient({ ...entry, value: client }, activity)
  t.match(shown, { lastActiveAt: at, secrets: [{ lastUsedAt: at }, { lastUsedAt: null }] })
  const unknown = [
    shownPrincipal({ ...entry, value: principal }, null),
    shownClient({ ...entry, value: client }, null),
  ]
  t.notMatch(JSON.stringify(unknown), /last\w+At/)
  t.notMatch(JSON.stringify([shown, ...unknown]), /hash|scrypt/)
  t.end()
})
