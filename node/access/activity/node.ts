// An identity's activity as the graph shows it: a node of its own beside the identity's, which has
// an edge to it. Source: CONTRACT 1.8 "In the graph".

import type { EdgeDef, NodeType } from '../../../protocol/graph/node-type.ts'

export const activityNode: NodeType = {
  name: 'identityActivity',
  set: 'identityActivities',
  idField: 'identityActivityId',
  storage: { kind: 'row' },
  edges: [],
  fields: [
    { name: 'identityActivityId', type: 'uuid', indexed: true },
    { name: 'identityId', type: 'text', indexed: true },
    { name: 'kind', type: 'enum', values: ['client', 'principal'] },
    { name: 'lastActiveAt', type: 'instant', indexed: true },
    { name: 'lastModified', type: 'instant' },
  ],
}

/** From an identity, whose id is in that field, to its activity. */
export function activityEdge(idField: string): EdgeDef {
  return {
    ...{ name: 'activity', node: activityNode.name, cardinality: 'single' },
    ...{ from: idField, to: 'identityId', sameActor: false },
  }
}
