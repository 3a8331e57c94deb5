// Definitions that come one after the other, faster than an index is filled: each gives up what was
// being filled for the one before, and threads do not gather for it.

import t from 'tap'
import { systemClock } from '../../../cluster/clock.ts'
import type { NodeType } from '../../../protocol/graph/node-type.ts'
import { LiveSchema } from '../../graph/live-schema.ts'
import { EmbeddedIndex } from './embedded-index.ts'

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }

/** Each number has another layout. */
const typesOf = (number: number): NodeType[] => [
  {
    name: 'thing',
    set: 'things',
    idField: 'thingId',
    fields: [
      { name: 'thingId', type: 'uuid' },
      { name: `field${number}`, type: 'text', indexed: true },
    ],
    edges: [],
    storage: { kind: 'row' },
  },
]

async function until(isSo: () => boolean): Promise<void> {
  const endsAtMs = performance.now() + 30_000
  while (!isSo()) {
    if (performance.now() > endsAtMs) throw new Error('it never came')
    await new Promise((resolve) => setImmediate(resolve))
  }
}

t.test('many definitions in a row are filled by one thread after the other', async (t) => {
  const schema = new LiveSchema(typesOf(0))
  const end = new SharedArrayBuffer(8)
  const counts = new Int32Array(end)
  const index = new EmbeddedIndex({
    journal: { dir: t.testdir(), end },
    shards: 1,
    generation: 'g',
    clock: systemClock(),
    log: silent,
    schema,
    heads: [{ shard: 0, offset: 3 }],
    writeRows: () => Promise.resolve(),
    flushed: () => 0,
    entry: new URL('../testing/counted-twin.ts', import.meta.url),
  })
  t.teardown(() => index.close())
  await index.opened()
  await until(() => index.progress.ready)
  for (let number = 1; number <= 12; number++) {
    schema.change(typesOf(number))
    // There and back: what was filled for it is of no use.
    if (number % 3 === 0) schema.change(typesOf(0))
    await new Promise((resolve) => setImmediate(resolve))
  }
  schema.change(typesOf(13))
  await until(() => index.read.version === schema.current)
  t.ok(counts[1]! <= 2, `${counts[1]}: the one that is read, and one beside it`)
})
