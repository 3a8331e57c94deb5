// Which standing queries are looked at again when another version of the schema is served.

import t from 'tap'
import type { NodeType } from '../../../protocol/graph/node-type.ts'
import { ServedFields } from './served-fields.ts'
import type { StandingQuery } from './standing-query.ts'
import { TYPES, versionOf } from './testing/live-cluster.ts'

function queryOf(name: string, ...types: string[]) {
  const told: string[] = []
  const taker = { schemaChanged: () => told.push(name) }
  return { told, query: { plan: { types: new Set(types) }, taker } as unknown as StandingQuery }
}

t.test('those of types that are others, and of no others', (t) => {
  const [orders, lines, both] = [
    queryOf('orders', 'order'),
    queryOf('lines', 'line'),
    queryOf('both', 'line', 'order'),
  ]
  const all = new Set([orders, lines, both].map(({ query }) => query))
  const told = (): string[] => [orders, lines, both].flatMap((one) => one.told.splice(0))
  const state = { version: versionOf(1, TYPES) }
  const deferred: (() => void)[] = []
  const clock = { defer: (run: () => void) => void deferred.push(run) }
  const fields = new ServedFields({ served: () => state.version, all, clock })
  const serve = (types: readonly NodeType[]): string[] => {
    state.version = versionOf(state.version.number + 1, types)
    fields.follow()
    for (const run of deferred.splice(0)) run()
    return told()
  }
  const season = { name: 'season', type: 'text' as const, custom: true, source: ['dynamic', 'x'] }
  const withSeason = TYPES.map((type) =>
    type.name === 'order' ? { ...type, fields: [...type.fields, season] } : type,
  )
  t.strictSame(serve(withSeason), ['orders', 'both'])
  t.strictSame(serve(withSeason.map((type) => ({ ...type }))), [], 'the same again')
  t.strictSame(serve(TYPES), ['orders', 'both'], 'it is gone')
  t.strictSame(serve(TYPES.slice(0, 1)), ['lines', 'both'], 'a type is gone')
  t.strictSame(serve(TYPES), ['lines', 'both'], 'and comes')
  t.end()
})
