// Generations of the index in the engine: what is found of them, which is read by people, what goes
// with one, and what of a foreign one can be used. Source: PROTOCOL 3.13.5.

import t from 'tap'
import { graphSchema } from '../../protocol/graph/schema.ts'
import { NODE_TYPES, SCHEMA } from '../conformance/search-nodes.ts'
import { MemorySearchEngine } from '../memory/search-engine.ts'
import { Generations } from './generations.ts'
import { layoutOf } from './layout.ts'

function stage(prefix = 'p-', engine = new MemorySearchEngine({ nowMs: () => 0 })) {
  const layout = layoutOf(SCHEMA)
  const names = Array.from(layout.nodes.values(), ({ name }) => name)
  const generations = new Generations({ engine, prefix, layout, store: 's' })
  const read = async (name: string) =>
    (await engine.indexes(''))
      .filter(({ aliases }) => aliases.includes(`${prefix}${name}`))
      .map((info) => info.name)
  return { engine, layout, names, generations, read }
}

t.test('what was made is found, with all that it says of itself', async (t) => {
  const { generations, layout, engine, names } = stage()
  t.equal((await generations.find()).size, 0)
  await generations.make(1)
  await generations.make(2)
  const found = await generations.find()
  t.same([...found.keys()].toSorted(), [1, 2])
  t.match(found.get(1), { number: 1, store: 's', fingerprint: layout.fingerprint, isWhole: true })
  const { nodes } = layout
  for (const { name, properties } of nodes.values()) {
    t.same(found.get(1)!.properties.get(name), properties)
  }
  await engine.deleteIndex(generations.indexOf(1, names[0]!))
  t.equal((await generations.find()).get(1)!.isWhole, false, 'a part of it is gone')
  await generations.make(1)
  t.equal((await generations.find()).get(1)!.isWhole, true)
})

t.test('people read the live one, moved in one step', async (t) => {
  const { generations, names, read, engine } = stage()
  await generations.make(1)
  await generations.make(2)
  const moves: number[] = []
  const move = engine.moveAliases.bind(engine)
  engine.moveAliases = (changes) => {
    moves.push(changes.length)
    return move(changes)
  }
  for (const number of [1, 2, 2, 1]) {
    await generations.activate(number)
    for (const name of names) t.same(await read(name), [generations.indexOf(number, name)])
  }
  t.same(moves, [names.length, 2 * names.length, 2 * names.length], 'and not where they are there')
})

t.test('one goes, and no other, nor what has another prefix', async (t) => {
  const { generations, engine, names } = stage()
  const other = stage('p-q-', engine)
  await generations.make(1)
  await generations.make(2)
  await other.generations.make(1)
  t.same([...(await generations.find()).keys()].toSorted(), [1, 2])
  await generations.drop(1)
  t.same([...(await generations.find()).keys()], [2])
  t.same([...(await other.generations.find()).keys()], [1])
  t.equal(engine.state.size, 2 * names.length)
})

t.test('of a generation that another version has made: what both know alike', async (t) => {
  const { generations, engine, layout } = stage()
  await generations.make(1)
  const own = (await generations.find()).get(1)!
  t.equal(generations.layoutFor(own), layout, 'its own is taken as it is')
  const types = NODE_TYPES.filter(({ name }) => name !== 'visit').map((type) =>
    type.name === 'city'
      ? { ...type, fields: [...type.fields, { name: 'more', type: 'text' as const }] }
      : type,
  )
  const newer = new Generations({
    ...{ engine, prefix: 'p-', store: 's' },
    layout: layoutOf(graphSchema(types)),
  })
  await newer.make(2)
  const found = generations.layoutFor((await generations.find()).get(2)!)
  t.equal(found.nodes.has('visit'), false, 'it has none of those')
  const searchless = { ...layout.nodes.get('shelf'), search: null }
  t.same(found.nodes.get('shelf'), searchless, 'which column is of which field it does not know')
  t.same(found.nodes.get('city')!.members, layout.nodes.get('city')!.members)
  const back = newer.layoutFor(own)
  const members = back.nodes.get('city')!.members.map(({ name }) => name)
  t.notOk(members.includes('more'))
  t.notOk(Object.keys(back.nodes.get('city')!.properties).includes('more'))
  t.ok(members.includes('code'))
})
