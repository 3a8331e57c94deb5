// Lists of identities against a plain walk over all of them, while they come, change and go.
// Source: CONTRACT 0 "Lists", 1.8.

import t from 'tap'
import fc from 'fast-check'
import type { SystemEntry, SystemView } from '../../cluster/actor-system.ts'
import { Directory } from './directory.ts'

interface Value {
  readonly roles: readonly string[]
  readonly name: string
}

/** The maps, as far as a directory looks at them. */
function maps() {
  const entries = new Map<string, SystemEntry<Value>>()
  let tell: (key: string, entry: SystemEntry<Value> | null) => void = () => undefined
  const system = {
    get: (_: string, key: string) => entries.get(key) ?? null,
    all: () => entries.values(),
    onChange(_: string, changed: typeof tell) {
      tell = changed
      return () => (tell = () => undefined)
    },
  } as unknown as SystemView
  const write = (key: string, value: Value | null): void => {
    const entry = value && { key, actorId: key, version: 1, value }
    if (entry) entries.set(key, entry)
    else entries.delete(key)
    tell(key, entry)
  }
  return { system, write, entries }
}

const ROLES = ['a:x', 'a:y', 'b:x', 'a']
const anyKey = fc.integer({ min: 0, max: 30 }).map((n) => `k${n}`)
const anyValue = fc.record({
  roles: fc.uniqueArray(fc.constantFrom(...ROLES)),
  name: fc.constantFrom('Ada', 'ÅSA', 'bob', 'ada b', ''),
})
const anyWrite = fc.tuple(anyKey, fc.option(anyValue))
const anyQuery = fc.record({
  rolePrefix: fc.constantFrom('', 'a', 'a:', 'b:x', 'none'),
  search: fc.constantFrom('', 'ADA', 'å', 'k1', 'nothing'),
  limit: fc.integer({ min: 1, max: 8 }),
})

t.test('property: pages forwards and backwards are those of a plain walk', async () => {
  const question = fc.tuple(fc.array(anyWrite), fc.array(anyWrite), anyQuery, anyKey)
  fc.assert(
    fc.property(question, ([before, after, query, at]) => {
      const { system, write, entries } = maps()
      for (const one of before) write(...one)
      const directory = new Directory<Value>(system, 'x', ({ roles, name }) => ({
        roles,
        texts: [name],
      }))
      directory.page({ ...query, after: null, before: null })
      for (const one of after) write(...one)
      const text = query.search.toLowerCase()
      const all = [...entries.values()]
        .filter(({ value }) => {
          return query.rolePrefix === '' || value.roles.some((r) => r.startsWith(query.rolePrefix))
        })
        .filter(({ key, value }) => `${key}\n${value.name}`.toLowerCase().includes(text))
        .map(({ key }) => key)
        .sort()
      const shown = (cursors: { after: string | null; before: string | null }): string => {
        const { entries: page, totalCount } = directory.page({ ...query, ...cursors })
        return JSON.stringify([page.map(({ key }) => key), totalCount])
      }
      const wanted = (keys: readonly string[]): string => JSON.stringify([keys, all.length])
      const { limit } = query
      return (
        shown({ after: null, before: null }) === wanted(all.slice(0, limit)) &&
        shown({ after: at, before: null }) ===
          wanted(all.filter((key) => key > at).slice(0, limit)) &&
        shown({ after: null, before: at }) === wanted(all.filter((key) => key < at).slice(-limit))
      )
    }),
  )
})
