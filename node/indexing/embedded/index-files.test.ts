// Which index is read after each step at which a node can be killed while one is filled beside the
// other, and that nothing is left of the rest.

import t, { type Test } from 'tap'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { notebookBehaviour } from '../../../cluster/feed/testing/notebook.ts'
import { setIndexMeta } from '../../../storage/sqlite/testing/index-meta.ts'
import { SqliteGraphWriter } from '../../../storage/sqlite/writer.ts'
import { LiveSchema, type SchemaVersion } from '../../graph/live-schema.ts'
import { chooseFiles, parkedConsumerOf } from './index-files.ts'

const { nodeTypes } = notebookBehaviour({ fold: false, project: false })
const [notebook, ...rest] = nodeTypes
const types = (...more: string[]) => [
  {
    ...notebook!,
    fields: [...notebook!.fields, ...more.map((name) => ({ name, type: 'text' as const }))],
  },
  ...rest,
]
const today = new LiveSchema(types('colour')).current
const before = new LiveSchema(types()).current

function folder(t: Test): string {
  const dir = mkdtempSync(join(tmpdir(), 'kontor-files-'))
  t.teardown(() => rmSync(dir, { recursive: true }))
  return dir
}

function make(dir: string, number: number, { schema }: SchemaVersion, isFilling = false): void {
  new SqliteGraphWriter({ dir, number, schema, isFilling }).close()
}

const numbers = (dir: string): string[] => readdirSync(dir).toSorted()

t.test('nothing is there: the first one is made', async (t) => {
  const dir = folder(t)
  const files = chooseFiles(join(dir, 'none'), today)
  t.match(files, { live: { number: 0, isFilling: false }, isKept: false, next: null })
  t.equal(files.live.version, today)
})

t.test('one of today is read, and so is one that says nothing of its types', async (t) => {
  const dir = folder(t)
  make(dir, 0, today)
  setIndexMeta(join(dir, 'graph.sqlite'), 'types', null)
  const files = chooseFiles(dir, today)
  t.match(files, { live: { number: 0 }, isKept: true, next: null })
  t.equal(files.live.version, today)
})

t.test('one of another schema is read by that one', async (t) => {
  const dir = folder(t)
  make(dir, 4, before)
  const { live, isKept, next } = chooseFiles(dir, today)
  t.match({ live, isKept, next }, { live: { number: 4 }, isKept: true, next: null })
  t.notOk(live.version.schema.nodes.get('notebook')!.fields.has('colour'))
  t.match(live.version.types, JSON.parse(JSON.stringify(before.types)))
})

t.test('killed amid the filling: it goes on', async (t) => {
  const dir = folder(t)
  make(dir, 2, before)
  make(dir, 3, today, true)
  const { live, next } = chooseFiles(dir, today)
  t.equal(live.number, 2)
  t.match(next, { number: 3, isFilling: true })
  t.equal(next!.version, today)
  t.strictSame(numbers(dir), ['graph-2.sqlite', 'graph-3.sqlite'])
})

t.test(
  'killed amid the filling, and another schema is wanted by now: nothing is left',
  async (t) => {
    const dir = folder(t)
    make(dir, 2, before)
    make(dir, 3, today, true)
    const { live, next } = chooseFiles(dir, new LiveSchema(types('size2')).current)
    t.equal(live.number, 2)
    t.equal(next, null)
    t.strictSame(numbers(dir), ['graph-2.sqlite'])
  },
)

t.test('killed behind the mark: the new one is read, nothing is left of the old', async (t) => {
  const dir = folder(t)
  make(dir, 0, today)
  const writer = new SqliteGraphWriter({ dir, number: 1, schema: today.schema, isFilling: true })
  writer.serve()
  writer.close()
  writeFileSync(join(dir, 'graph.sqlite-wal'), '')
  const { live, next } = chooseFiles(dir, today)
  t.equal(live.number, 1)
  t.equal(next, null)
  t.strictSame(numbers(dir), ['graph-1.sqlite'])
})

t.test('killed while old files were deleted, or new ones made', async (t) => {
  const dir = folder(t)
  make(dir, 1, today)
  writeFileSync(join(dir, 'graph.sqlite-wal'), '')
  writeFileSync(join(dir, 'graph-2.sqlite'), '')
  writeFileSync(join(dir, 'graph-02.sqlite'), 'not ours')
  const { live, next } = chooseFiles(dir, today)
  t.equal(live.number, 1)
  t.equal(next, null)
  t.strictSame(numbers(dir), ['graph-02.sqlite', 'graph-1.sqlite'])
})

t.test('a half one alone is never read, nor one that is spoilt', async (t) => {
  const dir = folder(t)
  make(dir, 1, today, true)
  writeFileSync(join(dir, 'graph.sqlite'), 'garbage '.repeat(10_000))
  const { live, isKept, next } = chooseFiles(dir, today)
  t.match({ live, isKept, next }, { live: { isFilling: false }, isKept: false, next: null })
  t.strictSame(numbers(dir), [])
})

t.test('one that can not be opened now is not thrown away', async (t) => {
  const dir = folder(t)
  mkdirSync(join(dir, 'graph-3.sqlite'))
  t.match(chooseFiles(dir, today), { live: { number: 3 }, isKept: true })
  t.strictSame(numbers(dir), ['graph-3.sqlite'])
})

t.test('types that this program can not read are none', async (t) => {
  for (const spoilt of ['[]', '{', '[{"name":"x"}]', JSON.stringify(types('other'))]) {
    const dir = folder(t)
    make(dir, 0, before)
    setIndexMeta(join(dir, 'graph.sqlite'), 'types', spoilt)
    t.match(chooseFiles(dir, today), { isKept: false }, spoilt)
    t.strictSame(numbers(dir), [])
  }
})

t.test('each keeps its parked actors under a name of its own', async (t) => {
  t.equal(parkedConsumerOf(0), 'index')
  t.not(parkedConsumerOf(1), parkedConsumerOf(2))
})
