// Identities as the graph shows them: everything but their secrets. Source: specification "Identity
// resources", CONTRACT 1.8 "In the graph".

import type { FieldDef, FieldType, NodeType } from '../../../protocol/graph/node-type.ts'
import { CHANGE_FIELDS } from '../../system-actor.ts'
import type { SystemNode } from '../../system-actor.ts'
import { activityEdge } from '../activity/node.ts'
import { authMethodOf } from '../client.ts'
import type { Client } from '../client.ts'
import type { Principal } from '../principal.ts'
import type { Role } from '../role.ts'

const field = (name: string, type: FieldType): FieldDef => ({ name, type })
const indexed = (name: string, type: FieldType): FieldDef => ({ name, type, indexed: true })

const typeOf = (name: string, idField: FieldDef, fields: readonly FieldDef[]): NodeType => ({
  name,
  set: `${name}s`,
  idField: idField.name,
  storage: { kind: 'row' },
  edges: [],
  fields: [idField, ...fields, ...CHANGE_FIELDS],
})

/** Who signs in has an edge to when that was last. */
const identityOf = (...[name, idField, fields]: Parameters<typeof typeOf>): NodeType => ({
  ...typeOf(name, idField, fields),
  edges: [activityEdge(idField.name)],
})

export const principalNode: SystemNode<Principal> = {
  type: identityOf('principal', indexed('principalId', 'uuid'), [
    field('name', 'text'),
    indexed('email', 'text'),
    field('phone', 'text'),
    field('roles', '[text]'),
    field('dynamic', 'dynamic'),
    field('createdAt', 'instant'),
    field('suspendedAt', 'instant'),
  ]),
  doc: ({ properties: { name, email, phone, dynamic }, roles, createdAt, suspendedAt }) => ({
    ...{ name, email, phone, dynamic },
    ...{ roles, createdAt, suspendedAt },
  }),
}

export const clientNode: SystemNode<Client> = {
  type: identityOf('client', indexed('clientId', 'text'), [
    field('name', 'text'),
    field('description', 'text'),
    field('redirectUris', '[text]'),
    field('grantTypes', '[text]'),
    field('scopes', '[text]'),
    field('tokenEndpointAuthMethod', 'text'),
    field('roles', '[text]'),
    field('isSystem', 'boolean'),
    field('createdAt', 'instant'),
    field('suspendedAt', 'instant'),
  ]),
  doc: (client) => {
    const { name, description, redirectUris, grantTypes, scopes } = client.properties
    const { roles, isSystem, createdAt, suspendedAt } = client
    const tokenEndpointAuthMethod = authMethodOf(client)
    return {
      ...{ name, description, redirectUris, grantTypes, scopes, tokenEndpointAuthMethod },
      ...{ roles, isSystem, createdAt, suspendedAt },
    }
  },
}

export const roleNode: SystemNode<Role> = {
  type: typeOf('role', indexed('roleKey', 'text'), [
    field('description', 'text'),
    field('entries', '[text]'),
  ]),
  doc: ({ description, acl }) => ({
    description,
    entries: acl.entries.map(({ resource, permission }) => `${resource}:${permission}`),
  }),
}
