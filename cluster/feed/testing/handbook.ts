// Actor types of the `system` shard for tests of the feed: one whose actors are shown in the graph,
// and one that declares no node types, as those that hold secrets do. Their UUIDs are like all
// others; only their type says where they live.

import type { Behaviour } from '../../../protocol/behaviour.ts'
import { notebookBehaviour, type Notebook } from './notebook.ts'

/** A notebook of the `system` shard of which the graph shows the title. */
export function handbookBehaviour(): Behaviour<Notebook> {
  const base = notebookBehaviour({ fold: false, project: false })
  return {
    ...base,
    type: 'handbook',
    home: 'system',
    nodeTypes: [
      {
        name: 'handbook',
        set: 'handbooks',
        idField: 'handbookId',
        fields: [
          { name: 'handbookId', type: 'uuid' },
          { name: 'title', type: 'text', indexed: true },
        ],
        edges: [],
        storage: { kind: 'row' },
      },
    ],
    touched: (_record, actorId) => [{ node: 'handbook', id: actorId }],
    project: (state, ref) => ({ ...ref, doc: { handbookId: ref.id, title: state.title } }),
    nodes: (state) =>
      base
        .nodes(state)
        .slice(0, 1)
        .map(({ id }) => ({ node: 'handbook', id })),
    history: () => [],
  }
}

/** The same without node types. What asks it for a node finds a mistake. */
export function vaultBehaviour(): Behaviour<Notebook> {
  const never = (): never => {
    throw new Error('nobody is to see it')
  }
  const quiet = { nodeTypes: [], touched: never, project: never, nodes: never, history: never }
  return { ...handbookBehaviour(), type: 'vault', ...quiet }
}
