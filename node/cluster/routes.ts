// The cluster's HTTP surface: what an operator sees of members and shards, and what was set aside.
// Source: CONTRACT 0 "Operations", PROTOCOL 3.11.

import { lacking, statusOf } from '../../protocol/errors.ts'
import type { Operation, OperationRequest } from '../http/operation.ts'
import type { IndexRebuild } from '../indexing/rebuild.ts'
import type { ClusterStatusReader } from './cluster-status.ts'
import type { SetAside } from './set-aside.ts'

export interface ClusterOperationsOptions {
  readonly status: ClusterStatusReader
  readonly setAside: SetAside
  readonly index: IndexRebuild
  /** Lets actors that the graph can't show be projected again, by whoever owns them. */
  readonly retryParked: () => void
}

/** Operations of the station. */
export function clusterOperations(options: ClusterOperationsOptions): Operation[] {
  const { status, setAside, index, retryParked } = options
  return [
    {
      method: 'GET',
      path: '/resources/cluster',
      summary: 'Members, shards with owner, epoch, head and index lag, and planned moves',
      access: 'token',
      permissions: ['cluster:read'],
      async handle(request) {
        allow(request, 'read')
        return { status: 200, body: await status.read() }
      },
    },
    {
      method: 'GET',
      path: '/resources/cluster/poisoned',
      summary: 'Messages that were given up because they failed whoever ran them',
      access: 'token',
      permissions: ['cluster:read'],
      async handle(request) {
        allow(request, 'read')
        return { status: 200, body: await setAside.deadLetters() }
      },
    },
    {
      method: 'POST',
      path: '/resources/cluster/poisoned/{actorId}/{messageId}',
      summary: 'Send such a message once more; its result takes it off the list',
      access: 'token',
      permissions: ['cluster:write'],
      async handle(request) {
        allow(request, 'write')
        const { actorId, messageId } = request.params
        const result = await setAside.replay(actorId!, messageId!)
        const code = result.success ? 200 : statusOf(result.errors[0]!.code)
        return { status: code, body: { results: [result] } }
      },
    },
    {
      method: 'GET',
      path: '/resources/cluster/parked',
      summary: 'Actors that the graph can not show as they are, with the reason',
      access: 'token',
      permissions: ['cluster:read'],
      async handle(request) {
        allow(request, 'read')
        return { status: 200, body: await setAside.parked() }
      },
    },
    {
      method: 'POST',
      path: '/resources/cluster/parked',
      summary: 'Try to show them again',
      access: 'token',
      permissions: ['cluster:write'],
      handle(request) {
        allow(request, 'write')
        retryParked()
        return { status: 202 }
      },
    },
    ...indexOperations(index),
  ]
}

function indexOperations(index: IndexRebuild): Operation[] {
  return [
    {
      method: 'GET',
      path: '/resources/cluster/index',
      summary: 'Whether the graph index is being made anew, and how far it is',
      access: 'token',
      permissions: ['cluster:read'],
      async handle(request) {
        allow(request, 'read')
        return { status: 200, body: await index.rebuildProgress() }
      },
    },
    {
      method: 'POST',
      path: '/resources/cluster/index',
      summary: 'Make the graph index anew from the journal, while everything goes on',
      access: 'token',
      permissions: ['cluster:write'],
      async handle(request) {
        allow(request, 'write')
        await index.rebuild()
        return { status: 202 }
      },
    },
  ]
}

function allow({ identity }: OperationRequest, permission: 'read' | 'write'): void {
  if (identity.acl.covers('cluster', permission)) return
  throw lacking(`cluster:${permission}`)
}
