// The cluster's HTTP surface: what an operator sees of members and shards. It stands between
// node/http, which serves this table, and the status. Source: CONTRACT 0 "Operations".

import { RequestError } from '../../protocol/errors.ts'
import type { Operation } from '../http/operation.ts'
import type { ClusterStatusReader } from './cluster-status.ts'

/** Operations of the station. */
export function clusterOperations(status: ClusterStatusReader): Operation[] {
  return [
    {
      method: 'GET',
      path: '/resources/cluster',
      summary: 'Members, shards with owner, epoch, head and index lag, and planned moves',
      access: 'token',
      async handle({ identity }) {
        if (!identity.acl.covers('cluster', 'read')) {
          throw new RequestError('FORBIDDEN', 'this needs the ACE cluster:read')
        }
        return { status: 200, body: await read(status) }
      },
    },
  ]
}

async function read(status: ClusterStatusReader): Promise<unknown> {
  try {
    return await status.read()
  } catch {
    throw new RequestError('UNAVAILABLE', 'the control rows can not be read at the moment')
  }
}
