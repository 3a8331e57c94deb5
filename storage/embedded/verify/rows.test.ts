// verify-log on the rows of actors: which may be missing or another's, which are damaged, and whose
// they are. Source: PROTOCOL 3.12, 4.1 (K4).

import t, { type Test } from 'tap'
import { encodeEntry, joinEntries, type Entry } from '../../../protocol/entry/entry.ts'
import { Arena } from '../../lmdb/arena.ts'
import { openEnvironment, type JournalEnvironment } from '../../lmdb/environment.ts'
import { shardKey } from '../../lmdb/layout.ts'
import { encodeDerived, encodeRow } from '../../lmdb/rows.ts'
import { openEmbeddedJournal } from '../journal/journal.ts'
import { journalOptions } from '../testing/journal-options.ts'
import { verifyLog } from './store.ts'

const ACTOR = '0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b'
const OTHER = '0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2c'
const COMMIT = '0190a1b2-c3d4-7e5f-8a6b-00000000000'

function entryOf(n: number, v: number, records: number, more: Partial<Entry> = {}): Buffer {
  return encodeEntry({
    ...{ y: 'order', p: ACTOR, v, n, m: `message ${n} ${v}`, l: 0, t: 0, c: 0, b: 'bootstrap' },
    r: Array.from({ length: records }, () => ({ type: 'changed' })) as never,
    a: { type: 'create', success: true },
    ...more,
  })
}

interface Writer {
  readonly env: JournalEnvironment
  readonly append: (...bodies: readonly Buffer[]) => Promise<void>
  readonly row: (n: number, offset: number, body: Buffer, actorId?: string) => void
}

/** What is said of a store of one shard, of which so much is flushed, and what was counted. */
async function verified(t: Test, flush: number, write: (to: Writer) => Promise<void>) {
  const options = { ...journalOptions(t), shards: 1 }
  const journal = await openEmbeddedJournal(options)
  const { epoch } = await journal.log.claim(0)
  const env = openEnvironment(options.dir, false)
  let [head, commit] = [0, 0]
  await write({
    env,
    async append(...bodies) {
      const of = { shard: 0, epoch, head, count: bodies.length, commitId: `${COMMIT}${commit++}` }
      t.same(await journal.log.append([{ ...of, body: joinEntries(bodies) }]), ['committed'])
      head += bodies.length
    },
    row(n, offset, body, actorId = ACTOR) {
      const row = { kind: 'entry', actorId, n, offset, body } as const
      const { key, value } = encodeRow(new Arena(), env, { shard: 0, row, place: null })
      env.entries.putSync(key, value)
    },
  })
  const key = Buffer.concat([shardKey(0), Buffer.from('flush')])
  const row = encodeDerived(new Arena(), key, { shard: 0, offset: flush }, Buffer.alloc(0))
  env.consumers.putSync(row.key, row.value)
  await env.root.close()
  await journal.close()
  const lines: string[] = []
  const report = await verifyLog(options.dir, (line) => lines.push(line))
  return { ...report, lines: lines.map((line) => line.slice(line.indexOf(': ') + 2)) }
}

const [first, refusal] = [entryOf(1, 0, 1), entryOf(2, 1, 0)]
const overRefusal = entryOf(2, 1, 1, { m: 'over' })

t.test("a refusal may be gone, and its number be a later entry's", async (t) => {
  const found = await verified(t, 3, async ({ append, row }) => {
    await append(first, refusal)
    await append(overRefusal)
    row(1, 1, first)
    row(2, 3, overRefusal)
  })
  t.same(found.lines, [])
  t.match(found, { findings: 0, groups: 2, entries: 3 })
})

t.test('in the place of a refusal nothing older stands', async (t) => {
  const { lines } = await verified(t, 3, async ({ append, row }) => {
    await append(first, entryOf(2, 1, 0, { m: 'a' }), refusal)
    row(1, 1, first)
    row(2, 2, entryOf(2, 1, 0, { m: 'a' }))
  })
  t.equal(lines.length, 1, lines.join('; '))
  t.match(lines[0], /^shard 0: offset 3: actor .*: entry 2 \(.*\) has a row of offset 2$/)
})

t.test('what is not flushed yet needs no row', async (t) => {
  const { lines } = await verified(t, 1, async ({ append, row }) => {
    await append(first, entryOf(2, 1, 1))
    row(1, 1, first)
  })
  t.same(lines, [])
})

t.test('the rows of each actor are looked at by themselves', async (t) => {
  const { lines, derivedRows } = await verified(t, 4, async ({ append, row }) => {
    const [one, two] = [1, 2].map((n) => entryOf(n, n - 1, 1, { p: OTHER, m: `o${n}` }))
    await append(first, overRefusal, one!, two!)
    row(1, 1, first)
    row(2, 2, overRefusal)
    row(1, 3, one!, OTHER)
    row(2, 4, two!, OTHER)
  })
  t.same(lines, [])
  t.equal(derivedRows, 5, 'with the offset up to which they are flushed')
})

t.test("an entry that can't be read is told with its actor, and the others are read", async (t) => {
  const { lines } = await verified(t, 0, async ({ row }) => {
    row(1, 1, first)
    row(2, 2, Buffer.from('{'))
    row(3, 3, entryOf(3, 4, 1))
  })
  t.equal(lines.length, 2, lines.join('; '))
  t.match(lines[0], new RegExp(`^actor ${ACTOR}: entry 2 can't be read: `))
  t.match(lines[1], new RegExp(`^actor ${ACTOR}: entry 3 .* does not go on from .* version 1`))
})

t.test('no table is left out', async (t) => {
  const tables = [
    ...['entries', 'aliases', 'snapshots', 'marks', 'shards', 'consumers', 'parked', 'images'],
    ...['lives', 'ended', 'log', 'heads', 'meta'],
  ] as const
  for (const table of tables) {
    const { lines } = await verified(t, 0, async ({ env }) => {
      // Behind all keys that are there, and of any form.
      const key = Buffer.alloc(24, 0xfe)
      env[table]!.putSync(key, Buffer.alloc(40))
    })
    t.ok(
      lines.some((line) => line.startsWith(`table '${table}', row fefe`)),
      `${table}: ${lines.join('; ')}`,
    )
  }
})
