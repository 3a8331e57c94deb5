// A changed definition of a custom field lays the embedded index out anew. Source: PROTOCOL 3.13.5.

import t from 'tap'
import { customLayouts } from '../conformance/custom/search-custom.ts'
import { SCHEMA } from '../conformance/search-nodes.ts'
import { layoutOf } from './layout.ts'

void t.test('a definition is part of the layout', async (t) => {
  customLayouts(t, (schema) => layoutOf(schema).fingerprint, SCHEMA)
})
