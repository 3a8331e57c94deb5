// The memory twin passes the suite of every graph index.

import t from 'tap'
import { searchConformance } from '../conformance/search.ts'
import { MemoryGraphIndex } from './search.ts'

searchConformance(t, (_, options) => {
  const index = new MemoryGraphIndex(options)
  return { writer: index, reader: index, reopen: null }
})
