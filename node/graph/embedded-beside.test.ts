// An embedded index that is made anew beside the one that is read: by a schema that changes, before
// or after a start, and when it is asked for; while orders are written and read. No request fails,
// none sees less than one before, and one file is left.

import { readdirSync } from 'node:fs'
import t, { type Test } from 'tap'
import { FeedStore, actorIdOf } from '../../cluster/feed/testing/feed-store.ts'
import type { NodeType } from '../../protocol/graph/node-type.ts'
import { ask, type Embedded, folder, open, openJournal, until } from './testing/embedded-stage.ts'
import { behaviours } from './testing/notebook-table.ts'

const types = behaviours()[0]!.nodeTypes
const ACTORS = 400
const count = [{ edge: 'notebooks', count: true }]

/** The notebook without its size, or with a field that no state has. */
function changed({ more, less }: { more?: string; less?: string }): readonly NodeType[] {
  const [notebook, ...rest] = types
  const fields = notebook!.fields.filter(({ name }) => name !== less)
  if (more !== undefined) fields.push({ name: more, type: 'text' })
  return [{ ...notebook!, fields }, ...rest]
}

async function filled(t: Test): Promise<{ readonly dir: string; readonly store: FeedStore }> {
  const dir = folder(t)
  const journal = await openJournal(dir)
  t.teardown(() => journal.close())
  const store = new FeedStore(behaviours()[0]!, journal)
  for (let i = 0; i < ACTORS; i++) await writes(store, i)
  await store.flush()
  return { dir, store }
}

async function writes(store: FeedStore, i: number): Promise<{ shard: number; offset: number }> {
  return store.commit([actorIdOf(i, i % 2), { t: 'opened', title: `title ${i}` }])
}

const isWhole = (e: Embedded): boolean => e.index.watch.unready() === null
const isOne = (e: Embedded): boolean => e.index.rebuildProgress().state === 'idle'
const files = (dir: string): string[] =>
  readdirSync(dir).filter((name) => name.startsWith('graph') && name.endsWith('sqlite'))

/** Writes and reads until it holds: each write is read, and no read sees less than one before. */
async function busyUntil(t: Test, e: Embedded, isSo: () => boolean): Promise<void> {
  const endsAtMs = performance.now() + 60_000
  let [n, least] = [ACTORS, 0]
  for (; !isSo(); n++) {
    if (performance.now() > endsAtMs) throw new Error('it never came')
    const at = await writes(e.store, n)
    e.index.committed(at.shard, at.offset)
    if (n % 4 === 0) await e.store.flush()
    const { notebooks: seen } = (await ask(e, count)) as { notebooks: number }
    if (seen < least) t.fail(`${seen} after ${least}`)
    least = seen
    if (n % 8 !== 0) continue
    const token = e.tokens.encode([at])
    const { notebooks: own } = (await ask(e, count, token)) as { notebooks: number }
    if (own !== n + 1) t.fail(`${own} of ${n + 1} with the token of the last`)
    least = own
  }
  t.ok(n > ACTORS, `${n - ACTORS} writes meanwhile`)
}

t.test('asked for: reads and writes go on, and one file is left', async (t) => {
  const { dir, store } = await filled(t)
  const e = await open(t, dir, store, { types })
  await until(() => isWhole(e))
  t.match(e.index.rebuildProgress(), { state: 'idle', startedAt: null })
  e.index.rebuild()
  const { startedAt } = e.index.rebuildProgress()
  t.ok(startedAt !== null && Math.abs(Date.now() - startedAt) < 60_000)
  let moves = 0
  e.index.onMoved(() => moves++)
  await busyUntil(t, e, () => {
    const { done, total } = e.index.rebuildProgress()
    if (total < done) t.fail(`${done} of ${total}`)
    if (moves > 0) return true
    e.index.rebuild()
    return false
  })
  t.equal(e.index.read.number, 1)
  t.equal(e.index.restarts, 0)
  await e.close()
  t.strictSame(files(dir), ['graph-1.sqlite'])
  const again = await open(t, dir, store, { types })
  await until(() => isWhole(again))
  t.equal(again.index.read.number, 1)
  t.ok(isOne(again), 'nothing is filled any more')
})

t.test('a schema that changes at run time takes nothing away', async (t) => {
  const { dir, store } = await filled(t)
  const e = await open(t, dir, store, { types: changed({ less: 'size' }) })
  await until(() => isWhole(e))
  const version = e.schema.change(types)
  await busyUntil(t, e, () => e.index.read.version === version)
  const sizes = [{ edge: 'notebooks', filter: `title == 'title 3'`, node: { fields: ['size'] } }]
  t.strictSame(await ask(e, sizes), { notebooks: [{ size: 0 }] })
})

t.test('a schema that has changed between two starts takes nothing away', async (t) => {
  const { dir, store } = await filled(t)
  const first = await open(t, dir, store, { types })
  await until(() => isWhole(first))
  await first.close()
  const e = await open(t, dir, store, { types: changed({ more: 'colour' }) })
  t.not(e.index.read.version, e.schema.current, 'it is read as it was')
  await until(() => isWhole(e))
  await busyUntil(t, e, () => e.index.read.version === e.schema.current)
  const colours = [
    { edge: 'notebooks', filter: `title == 'title 3'`, node: { fields: ['colour'] } },
  ]
  t.strictSame(await ask(e, colours), { notebooks: [{ colour: null }] })
})

t.test('a schema that changes again, and back, leaves nothing behind', async (t) => {
  const { dir, store } = await filled(t)
  const e = await open(t, dir, store, { types })
  await until(() => isWhole(e))
  e.schema.change(changed({ more: 'a' }))
  e.schema.change(changed({ more: 'b' }))
  t.equal(e.index.rebuildProgress().state, 'filling')
  const back = e.schema.change(types)
  t.equal(e.index.read.version, back, 'it never went')
  t.ok(isOne(e))
  t.strictSame(await ask(e, count), { notebooks: ACTORS })
  await e.close()
  t.strictSame(files(dir), ['graph.sqlite'])
})

t.test('what was being filled at the end goes on at the next start', async (t) => {
  const { dir, store } = await filled(t)
  const e = await open(t, dir, store, { types })
  await until(() => isWhole(e))
  e.index.rebuild()
  await until(() => files(dir).length === 2)
  await e.close()
  t.equal(e.index.read.number, 0)
  const again = await open(t, dir, store, { types })
  await busyUntil(t, again, () => isOne(again))
  t.equal(again.index.read.number, 1)
  t.equal(again.index.counter('resets'), 0, 'it went on from where it was')
})

t.test('the log is held for the one that has less', async (t) => {
  const { dir, store } = await filled(t)
  const e = await open(t, dir, store, { types })
  await until(() => isWhole(e))
  t.equal(e.index.doneWith(0), ACTORS / 2)
  e.index.rebuild()
  t.equal(e.index.doneWith(0), 0)
})
