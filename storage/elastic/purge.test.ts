// What is removed is remembered for a day: an older write must not bring it back meanwhile.

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { SCHEMA } from '../conformance/search-nodes.ts'
import { MemorySearchEngine } from '../memory/search-engine.ts'
import type { IndexWrite } from '../search.ts'
import { Generations } from './generations.ts'
import { layoutOf } from './layout.ts'
import { purgeRemoved } from './purge.ts'
import { ElasticWriter } from './writer.ts'

const CITY = '0190b000-0000-7000-8000-000000000001'

const city = (version: number, code: string | null): IndexWrite => {
  const doc = code === null ? null : { cityId: CITY, code }
  return { node: 'city', actorId: CITY, id: CITY, version, doc }
}

t.test('removed nodes are forgotten after a day, not before', async (t) => {
  let nowMs = 1_000
  const engine = new MemorySearchEngine({ nowMs: () => nowMs })
  const layout = layoutOf(SCHEMA)
  const generations = new Generations({ engine, prefix: 'p-', layout, store: 's' })
  await generations.make(1)
  const writer = new ElasticWriter({
    engine,
    layout,
    rows: new Set(layout.nodes.keys()),
    writeAliasOf: (name) => generations.writeAliasOf(1, name),
    saveOffsets: () => Promise.resolve(),
    nowMs: () => nowMs,
    pause: () => Promise.resolve(),
  })
  const index = generations.indexOf(1, 'city')
  const documents = engine.state.get(index)!.documents
  const purge = async (): Promise<number> => {
    await engine.refresh([index])
    return purgeRemoved({ engine, index, writeAlias: generations.writeAliasOf(1, 'city'), nowMs })
  }
  await writer.apply([city(1, 'N'), city(2, null)], [])
  nowMs += LIMITS.indexTombstoneMs - 1
  t.equal(await purge(), 0)
  await writer.apply([city(1, 'N')], [])
  t.match([...documents.values()][0]!.source, { kontor: { deleted: true } }, 'not brought back')
  nowMs += 2
  t.equal(await purge(), 1)
  t.equal(documents.size, 0)
})

t.test('a node that came back in the meantime stays', async (t) => {
  let nowMs = 1_000
  const engine = new MemorySearchEngine({ nowMs: () => nowMs })
  const layout = layoutOf(SCHEMA)
  const generations = new Generations({ engine, prefix: 'p-', layout, store: 's' })
  await generations.make(1)
  const writer = new ElasticWriter({
    engine,
    layout,
    rows: new Set(layout.nodes.keys()),
    writeAliasOf: (name) => generations.writeAliasOf(1, name),
    saveOffsets: () => Promise.resolve(),
    nowMs: () => nowMs,
    pause: () => Promise.resolve(),
  })
  const index = generations.indexOf(1, 'city')
  await writer.apply([city(2, null)], [])
  await engine.refresh([index])
  nowMs += LIMITS.indexTombstoneMs + 1
  // It comes back between the search and the deletion.
  engine.hooks.beforeBulk = async (items) => {
    engine.hooks.beforeBulk = undefined
    if (items[0]!.write.kind === 'purge') await writer.apply([city(3, 'S')], [])
    return null
  }
  const writeAlias = generations.writeAliasOf(1, 'city')
  t.equal(await purgeRemoved({ engine, index, writeAlias, nowMs }), 1)
  t.match([...engine.state.get(index)!.documents.values()][0]!.source, { code: 'S' })
})
