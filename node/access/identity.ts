// Who calls: the identity behind a token, with what it may do. Made by node/access from a session,
// read by every station.

import type { Acl } from '../../protocol/ace.ts'
import type { Flow } from '../queues/fair-queue.ts'

export interface Identity {
  /** Client or principal id. */
  readonly id: string
  readonly kind: 'client' | 'principal'
  readonly sessionId: string
  readonly acl: Acl
}

/** Whose work it is where it waits: identities take turns, and of each its sessions. */
export function callerOf({ kind, id, sessionId }: Identity): Flow {
  return { group: `${kind}/${id}`, name: sessionId }
}
