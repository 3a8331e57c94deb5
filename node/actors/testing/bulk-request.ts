// A bulk request to actors of type ledger, as tests make it, and who makes it.

import { OWNER_ACL } from '../../../protocol/ace.ts'
import type { Identity } from '../../access/identity.ts'
import type { OperationRequest } from '../../http/operation.ts'
import { SOMEBODY } from '../../access/testing/sessions.ts'

export const SHOP: Identity = { ...SOMEBODY, id: 'shop', sessionId: '', acl: OWNER_ACL }

/** The members that the bulk operation reads. */
export const BULK_REQUEST = {
  identity: SHOP,
  params: { type: 'ledger' },
  query: new URLSearchParams(),
  requestId: 'r',
} as unknown as OperationRequest
