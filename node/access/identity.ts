// Who calls: the identity behind a token, with what it may do. Made by node/access from a session,
// read by every station.

import type { Acl } from '../../protocol/ace.ts'

export interface Identity {
  /** Client or principal id. */
  readonly id: string
  readonly kind: 'client' | 'principal'
  readonly sessionId: string
  readonly acl: Acl
}
