// What the operations of this room have in common: the parameters of lists, who may, and the time.

import type { World } from '../../cluster/clock.ts'
import { lacking, RequestError } from '../../protocol/errors.ts'
import type { OperationParameter, OperationRequest, OperationResponse } from '../http/operation.ts'
import type { Page } from './directory.ts'
import type { Tags } from './writer.ts'

export const PAGE_PARAMETERS: readonly OperationParameter[] = [
  { name: 'limit', in: 'query', description: 'From 1 to 100, 50 unless given' },
  { name: 'after', in: 'query', description: 'Cursor: what follows the last of a page' },
  { name: 'before', in: 'query', description: 'Cursor: what precedes the first of a page' },
  {
    name: 'search',
    in: 'query',
    description: 'Text that stands in a name, in letters of any case',
  },
]

export const ROLE_PREFIX: OperationParameter = {
  name: 'rolePrefix',
  in: 'query',
  description: 'Only those with a role that begins so',
}

export const IF_MATCH: OperationParameter = {
  name: 'If-Match',
  in: 'header',
  description: 'ETag as last read, 409 when it is stale; *: whatever is there',
}

/** Throws RequestError 403. */
export function allow(
  { identity }: OperationRequest,
  resource: string,
  permission: 'read' | 'write' | 'delete',
): void {
  if (identity.acl.covers(resource, permission)) return
  throw lacking(`${resource}:${permission}`)
}

export function answerOf<T>(
  name: string,
  { totalCount, firstCursor, lastCursor }: Page<T>,
  shown: readonly unknown[],
): OperationResponse {
  return { status: 200, body: { [name]: shown, totalCount, firstCursor, lastCursor } }
}

export function nowText({ clock }: World): string {
  return new Date(clock.nowMs()).toISOString()
}

/**
 * A PUT says which version it is of, where there is one, and none where there is none. Throws
 * RequestError 409.
 */
export function checkTag(
  { type, key, tags }: { readonly type: string; readonly key: string; readonly tags: Tags },
  isThere: boolean,
): void {
  if (isThere && tags === null) {
    const what = `${type} "${key}" exists: send its ETag in If-Match, or * to overwrite whatever it is`
    throw new RequestError('CONFLICT', what)
  }
  if (!isThere && tags !== null && tags !== '*') {
    throw new RequestError('CONFLICT', `${type} "${key}" does not exist (any more)`)
  }
}
