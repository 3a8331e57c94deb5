// The schema that changes while a node runs: versions, who hears of them, and what is refused.

import t from 'tap'
import { notebookBehaviour } from '../../cluster/feed/testing/notebook.ts'
import { LIMITS } from '../../config/limits.ts'
import type { NodeType } from '../../protocol/graph/node-type.ts'
import { LiveSchema } from './live-schema.ts'

const { nodeTypes } = notebookBehaviour({ fold: false, project: false })

function withField(name: string): readonly NodeType[] {
  const [notebook, ...rest] = nodeTypes
  return [{ ...notebook!, fields: [...notebook!.fields, { name, type: 'text' }] }, ...rest]
}

t.test('a change is the next version, which each follower hears of once', async (t) => {
  const live = new LiveSchema(nodeTypes)
  const first = live.current
  const heard: string[] = []
  live.follow(({ number }) => heard.push(`a${number}`))
  const end = live.follow(({ number }) => heard.push(`b${number}`))
  const second = live.change(withField('more'))
  t.equal(live.current, second)
  t.ok(second.schema.nodes.get('notebook')!.fields.has('more'))
  t.notOk(first.schema.nodes.get('notebook')!.fields.has('more'), 'a version stays as it is')
  end()
  live.change(nodeTypes)
  t.strictSame(heard, ['a2', 'b2', 'a3'])
})

t.test('the same types again are no change', async (t) => {
  const live = new LiveSchema(nodeTypes)
  live.follow(() => t.fail('nothing has changed'))
  t.equal(live.change(structuredClone(nodeTypes) as NodeType[]), live.current)
  t.equal(live.current.number, 1)
})

t.test('types that do not fit together change nothing', async (t) => {
  const live = new LiveSchema(nodeTypes)
  const before = live.current
  live.follow(() => t.fail('nothing has changed'))
  t.throws(() => live.change([...nodeTypes, nodeTypes[0]!]), /same name/)
  t.throws(() => live.change(withField('title')), /a field twice/)
  t.equal(live.current, before)
})

t.test('a follower neither changes it nor is forgotten in numbers', async (t) => {
  const live = new LiveSchema(nodeTypes)
  const end = live.follow(() => void live.change(nodeTypes))
  t.throws(() => live.change(withField('more')), /does not change it/)
  end()
  for (let i = 0; i < LIMITS.graph.schemaFollowersMax; i++) live.follow(() => undefined)
  t.throws(() => live.follow(() => undefined), /given up/)
})

t.test('a version can be sent to a thread', async (t) => {
  const { types } = new LiveSchema(nodeTypes).current
  t.strictSame(structuredClone(types), types)
})
