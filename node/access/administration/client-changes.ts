// Clients as actors: who may change one, and how. Source: CONTRACT 0 "Bootstrap", 1.8, PROTOCOL 3.0
// "Who may change configuration".

import { LIMITS } from '../../../config/limits.ts'
import type { Acl } from '../../../protocol/ace.ts'
import { parseAce } from '../../../protocol/ace.ts'
import { errorItem } from '../../../protocol/errors.ts'
import type { ShapeError } from '../../../protocol/json/validation.ts'
import { systemActor } from '../../system-actor.ts'
import type { Change, PutBody } from '../../system-actor.ts'
import { endOfActivity } from '../activity/activity.ts'
import { faultOfKey } from '../client-keys.ts'
import { aclOfClient, authMethodOf, BOOTSTRAP_CLIENT, clientShape } from '../client.ts'
import type { Client } from '../client.ts'
import { refusalToCarry } from './carrying.ts'
import { unknownSystemRole } from './giving.ts'
import { identityChange, refusalOfChange } from './identity-changes.ts'
import type { IdentityChange, IdentityRules, Refusal } from './identity-changes.ts'
import { refusalOfLastClient } from './owners.ts'
import { clientNode } from './nodes.ts'

/** What is wrong with a client's value, or null. */
export function checkClient(value: unknown): ShapeError | null {
  return clientShape(value) ?? checkMeaning(value as Client)
}

function checkMeaning(client: Client): ShapeError | null {
  const { grantTypes, scopes, jwks } = client.properties
  const method = authMethodOf(client)
  for (const [i, scope] of (scopes ?? []).entries()) {
    const parsed = parseAce(scope)
    if (!parsed.ok)
      return { member: `properties.scopes.${i}`, message: `is no ACE: ${parsed.reason}` }
  }
  if (method === 'private_key_jwt' && (jwks?.keys.length ?? 0) === 0) {
    return { member: 'properties.jwks', message: 'is missing: private_key_jwt needs a public key' }
  }
  for (const [i, key] of (jwks?.keys ?? []).entries()) {
    const fault = faultOfKey(key)
    if (fault !== null) return { member: `properties.jwks.keys.${i}`, message: fault }
  }
  if (method === 'none' && grantTypes.includes('client_credentials')) {
    const message =
      'can not hold client_credentials: a client without secret can not show who it is'
    return { member: 'properties.grantTypes', message }
  }
  if (method === 'none' && client.secrets.length > 0) {
    const message = 'can not be "none" while the client has secrets; delete them first'
    return { member: 'properties.tokenEndpointAuthMethod', message }
  }
  return unknownSystemRole(client.roles)
}

export const clientBehaviour = systemActor<Client>('client', checkClient, permit, {
  node: clientNode,
  onDeletion: (key) => [endOfActivity({ kind: 'client', identity: key })],
})

const RULES: IdentityRules<Client> = {
  ...{ type: 'client', other: 'principal', aclOf: aclOfClient },
  countMax: () => LIMITS.access.clientsMax,
  isNewlyShut: () => false,
  refusalOfOwn,
  refusalOfLast: refusalOfLastClient,
}

function permit(change: Change<Client>): Refusal {
  if (change.turn.session === undefined) return permitStart(change)
  return refusalOfChange(RULES, identityChange(change))
}

function refusalOfOwn({ before, after }: IdentityChange<Client>, caller: Acl): Refusal {
  if (before?.isSystem || after?.isSystem) {
    return errorItem('SYSTEM_CLIENT', 'system clients are not made, changed or deleted')
  }
  return refusalToCarry(caller, { before, after })
}

/** A start makes the first client where there is none, and replaces its bootstrap secret. */
function permitStart({ view, turn, message, before }: Change<Client>): string | null {
  if (turn.key !== BOOTSTRAP_CLIENT || message.type !== 'put') {
    return 'clients are changed by callers with a session'
  }
  if (before === null) {
    const isEmpty = view.size('client') === 0 && view.size('principal') === 0
    return isEmpty ? null : 'there are identities already'
  }
  const { value, ifAbsent } = message.body as PutBody<Client>
  // Another member was first.
  if (ifAbsent) return null
  const rest = ({ secrets, ...others }: Client): string => {
    const issued = secrets.filter(({ source }) => source !== 'bootstrap')
    return JSON.stringify([others, issued])
  }
  return rest(before) === rest(value) ? null : 'only the bootstrap secret can be replaced'
}
