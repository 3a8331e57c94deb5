// Who calls: the identity behind a token, with what it may do. Made by node/access from a session,
// read by every station.

import type { Acl } from '../../protocol/ace.ts'
import type { CallerSession } from '../../protocol/message.ts'
import type { Flow } from '../queues/fair-queue.ts'

export interface Identity {
  /** Client or principal id. */
  readonly id: string
  readonly kind: 'client' | 'principal'
  readonly sessionId: string
  /** What goes along where configuration is changed. */
  readonly session: CallerSession
  /** How the session came to be: `client_credentials`, `authorization_code`, `pat`. */
  readonly grant: string
  /** From then on this token is refused; milliseconds since 1970. */
  readonly expiresAtMs: number
  readonly acl: Acl
}

/** Whose work it is where it waits: identities take turns, and of each its sessions. */
export function callerOf({
  kind,
  id,
  sessionId,
}: Pick<Identity, 'kind' | 'id' | 'sessionId'>): Flow {
  return { group: `${kind}/${id}`, name: sessionId }
}
