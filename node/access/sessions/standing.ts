// Whether the identity of a session and the client that it was issued to still stand: there, not
// suspended, and the same as when it was issued. Asked from the maps of the `system` shard at every
// check, so a suspension, a deletion or a new password ends all sessions at once, and none revives.
// Source: CONTRACT 1.8, PROTOCOL 3.0 "Sessions".

import type { ConfigurationView } from '../../../protocol/behaviour.ts'
import type { CallerSession } from '../../../protocol/message.ts'
import { epochOf, type Client } from '../client.ts'
import type { Principal } from '../principal.ts'
import type { Subject } from './grants.ts'

/** Who stands behind a session; of a client's own there is no principal. */
export interface Standing {
  readonly client: Client
  readonly principal: Principal | null
}

/** One life of an identity up to what ends its sessions; who is made anew has another. */
function eraOf(identity: Client | Principal): string {
  return `${epochOf(identity)} ${identity.createdAt}`
}

/** null: the identity or the client is gone or suspended. */
export function standingOf(
  { kind, identity, clientId }: Pick<Subject, 'kind' | 'identity' | 'clientId'>,
  view: ConfigurationView,
): Standing | null {
  const client = view.get<Client>('client', clientId)?.value
  if (client === undefined || client.suspendedAt !== null) return null
  if (kind === 'client') return identity === clientId ? { client, principal: null } : null
  const principal = view.get<Principal>('principal', identity)?.value
  if (principal === undefined || principal.suspendedAt !== null) return null
  return { client, principal }
}

/** What a session keeps of those that it is issued to. */
export function erasOf({ client, principal }: Standing): CallerSession['eras'] {
  return [eraOf(principal ?? client), eraOf(client)]
}

/** The same, as long as it is in the eras of the session; null: the session is over. */
export function stillStanding(
  session: Pick<CallerSession, 'kind' | 'clientId' | 'eras'> & Pick<Subject, 'identity'>,
  view: ConfigurationView,
): Standing | null {
  const standing = standingOf(session, view)
  if (standing === null) return null
  const [identity, client] = erasOf(standing)
  return session.eras[0] === identity && session.eras[1] === client ? standing : null
}
