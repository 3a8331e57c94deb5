// Built-in search indexes fit the nodes that they are of. Source: CONTRACT 1.4.2.

import t from 'tap'
import { graphSchema } from '../../../protocol/graph/schema.ts'
import { searchFault } from '../../../protocol/graph/search/search-faults.ts'
import { ORDER_NODE_TYPES } from './node-types.ts'
import { BUILT_IN_SEARCH } from './search.ts'

void t.test('each names fields and edges that are there', async (t) => {
  const schema = graphSchema(ORDER_NODE_TYPES)
  for (const [name, index] of Object.entries(BUILT_IN_SEARCH)) {
    const node = schema.nodes.get(name)
    t.ok(node, name)
    t.equal(searchFault(index, node!, schema), null, name)
  }
})
