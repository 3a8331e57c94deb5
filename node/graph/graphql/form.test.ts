// What the answer of the graph becomes in the form of an operation.

import t from 'tap'
import { type ObjectForm, shaped } from './form.ts'

const pause = (): Promise<void> => Promise.resolve()

t.test('what a node does not have is null, not left out', async (t) => {
  const leaf = { kind: 'leaf', key: 'a', member: 'a', values: null } as const
  const on = { kind: 'leaf', key: 'on', member: 'on', values: new Set(['on', 'off']) } as const
  const form: ObjectForm = [
    leaf,
    on,
    { kind: 'object', key: 'o', member: 'o', form: [leaf] },
    { kind: 'object', key: 'none', member: 'none', form: [leaf] },
    { kind: 'dynamic-member', key: 'd', field: 'dynamic', member: 'x' },
    { kind: 'node', key: 'n', alias: '__e1', form: [leaf] },
  ]
  const root: ObjectForm = [{ kind: 'list', key: 'things', alias: '__e0', form }]
  const { data, errors } = await shaped({ __e0: [{ o: {} }] }, root, pause)
  t.strictSame(data, {
    things: [{ a: null, on: null, o: { a: null }, none: null, d: null, n: null }],
  })
  t.strictSame(errors, [])
})
