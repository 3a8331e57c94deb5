// verify-log says one line for each thing that isn't as it must be: rows whose checksums are right
// and whose content is wrong, as only a mistake of ours would write them. Source: PROTOCOL 4.1
// (K4).

import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Arena } from '../../lmdb/arena.ts'
import { openEnvironment, type JournalEnvironment } from '../../lmdb/environment.ts'
import { logKey, readGroup } from '../../lmdb/layout.ts'
import { encodeGroup } from '../../lmdb/rows.ts'
import { LOG_FOLDER } from '../journal/journal.ts'
import { journalOptions } from '../testing/journal-options.ts'
import { ACTOR, entryOf, flush, storeOf, verify, type Write } from '../testing/written-store.ts'
import { verifyLog } from './store.ts'

/** What verify-log says of a store of one shard with these rows. */
async function findingsOf(t: Test, write: Write): Promise<string[]> {
  return verify(t, await storeOf(t, write))
}

const [first, second] = [entryOf(1, 0, 2), entryOf(2, 2)]

void t.test('nothing to say', async (t) => {
  const found = await findingsOf(t, async ({ put, row }) => {
    await put({ bodies: [first] })
    await put({ bodies: [second, entryOf(3, 3, 0)] })
    row(1, 1, first)
  })
  t.same(found, [])
})

interface Case {
  readonly name: string
  readonly write: Write
  readonly wanted: readonly RegExp[]
}

async function check(t: Test, cases: readonly Case[]): Promise<void> {
  for (const { name, write, wanted } of cases) {
    const found = await findingsOf(t, write)
    t.equal(found.length, wanted.length, `${name}: ${found.join('; ')}`)
    for (const [i, pattern] of wanted.entries()) t.match(found[i], pattern, name)
  }
}

void t.test('the log', async (t) => {
  await check(t, [
    {
      name: 'a count that is wrong',
      write: ({ put }) => put({ count: 3, bodies: [first, second] }),
      wanted: [/^shard 0: offset 1: holds 2 entries and says 3/],
    },
    {
      name: 'no entry',
      write: ({ put }) => put({ bodies: [Buffer.from('{')] }),
      wanted: [/^shard 0: offset 1: the entry can't be read/],
    },
    {
      name: 'flushed above its head',
      write: async (written) => {
        await written.put({ bodies: [first] })
        written.row(1, 1, first)
        flush(written, 2)
      },
      wanted: [/^shard 0: its flush offset 2 is above its head 1/],
    },
  ])
})

void t.test('places of the log', async (t) => {
  const dir = await storeOf(t, ({ put }) => put({ bodies: [first] }))
  const change = async (work: (env: JournalEnvironment) => void): Promise<string[]> => {
    const env = openEnvironment(dir, false)
    work(env)
    await env.root.close()
    return verify(t, dir)
  }
  const key = logKey(0, 1)
  let value = Buffer.alloc(0)
  const elsewhere = await change((env) => {
    value = Buffer.from(env.log.get(key)!)
    const group = { shard: 0, begins: null, ...readGroup(value) }
    const place = { ...group.place, position: group.place.position + 64 }
    env.log.putSync(key, encodeGroup(new Arena(), { ...group, place }).value)
  })
  t.match(elsewhere[0], /^position \d+: shard 0, offset 1: its place is another$/)
  t.match(elsewhere[1], /a body has the wrong checksum/)
  const gone = await change((env) => env.log.removeSync(key))
  t.match(gone[0], /^position \d+: shard 0, offset 1: the data file has no place of it$/)
  t.same(await change((env) => env.log.putSync(key, value)), [])
})

void t.test('actors', async (t) => {
  await check(t, [
    {
      name: 'an entry number left out',
      write: ({ put }) => put({ bodies: [first, entryOf(3, 2)] }),
      wanted: [/^shard 0: offset 2: actor .*: entry 3 behind 1/],
    },
    {
      name: 'a version left out',
      write: ({ put }) => put({ bodies: [first, entryOf(2, 3)] }),
      wanted: [/^shard 0: offset 2: actor .* goes on from version 3, it was at 2/],
    },
    {
      name: 'a row of another content',
      write: async ({ put, row }) => {
        await put({ bodies: [first] })
        row(1, 1, entryOf(2, 0, 2))
      },
      wanted: [/^shard 0: offset 1: actor .*: entry 1 has a row with another content/],
    },
    {
      name: 'a row of another offset',
      write: async ({ put, row }) => {
        await put({ bodies: [first] })
        row(1, 2, first)
      },
      wanted: [
        /^shard 0: offset 1: actor .*: entry 1 \(.* version 0 to 2.*\) has a row of offset 2/,
      ],
    },
    {
      name: 'no row',
      write: async (written) => {
        await written.put({ bodies: [first] })
        flush(written, 1)
      },
      wanted: [/^shard 0: offset 1: actor .*: entry 1 is flushed and has no row/],
    },
    {
      name: 'rows with records left out',
      write: async ({ put, row }) => {
        await put({ bodies: [first] })
        row(1, 1, first)
        row(3, 3, entryOf(3, 3))
      },
      wanted: [
        /^actor .*: entry 3 .* does not go on from .* version 2: what it had before is missing/,
      ],
    },
    {
      name: 'a row that is damaged',
      write: async ({ put, env }) => {
        await put({ bodies: [first] })
        env.aliases.putSync(Buffer.from('order\u00007'), Buffer.alloc(30))
      },
      wanted: [/^table 'aliases', row 6f726465720037: its checksum doesn't match/],
    },
  ])
})

// An earlier version read an actor only up to a refusal that had gone, and went on from there.
void t.test('two histories of one actor: both are shown, nothing is changed', async (t) => {
  const [fourth, fifth] = [entryOf(4, 3), entryOf(5, 4)]
  const [overThird, overFourth] = [entryOf(3, 3, 1, { m: 'a' }), entryOf(4, 4, 1, { m: 'b' })]
  const dir = await storeOf(t, async (written) => {
    const { put, row } = written
    await put({ bodies: [first, second, entryOf(3, 3, 0), fourth, fifth] })
    await put({ bodies: [overThird, overFourth] })
    row(1, 1, first)
    row(2, 2, second)
    row(3, 6, overThird)
    row(4, 7, overFourth)
    row(5, 5, fifth)
    flush(written, 7)
  })
  for (const options of [{}, { repair: true }, {}]) {
    const found = await verify(t, dir, options)
    const wanted = [
      /^shard 0: offset 4: actor \S+: entry 4 \(.*version 3 to 4.*\) has a row of offset 7$/,
      /^shard 0: offset 6: actor \S+: entry 3 behind 5$/,
      /goes on from version 3, it was at 5 at offset 5: acknowledged changes have been left out$/,
      /^actor \S+: entry 5 \(offset 5, version 4 to 5, .*message \S+ 5 4\) was acknowledged and is left out: entry 4 before it is a later one, of offset 7$/,
    ]
    t.equal(found.length, wanted.length, found.join('; '))
    for (const [i, pattern] of wanted.entries()) t.match(found[i], pattern)
  }
})

void t.test('refusals may be missing; what else is missing is put back when asked', async (t) => {
  const relayed = entryOf(4, 4, 0, { s: [1, 7, 0] })
  const dir = await storeOf(t, async (written) => {
    const { put, row } = written
    await put({ bodies: [first, second, entryOf(3, 3, 0), relayed, entryOf(5, 3)] })
    row(1, 1, first)
    row(5, 5, entryOf(5, 3))
    flush(written, 5)
  })
  const lost = [
    /^shard 0: offset 2: actor \S+: entry 2 is flushed and has no row/,
    /^shard 0: offset 4: actor \S+: entry 4 is flushed and has no row/,
  ]
  const found = await verify(t, dir)
  t.equal(found.length, 3, found.join('; '))
  for (const [i, pattern] of lost.entries()) t.match(found[i], pattern)
  t.match(found[2], /^actor \S+: entry 5 .* does not go on from what is there before it/)
  const mended = await verify(t, dir, { repair: true })
  for (const [i, pattern] of lost.entries()) t.match(mended[i], pattern)
  t.match(mended[0], /it was put back$/)
  t.same(await verify(t, dir), [])
})

void t.test('no journal', async (t) => {
  const lines: string[] = []
  const { dir } = journalOptions(t)
  t.equal((await verifyLog(dir, (line) => lines.push(line))).findings, 1)
  t.match(lines[0], /there is no store/)
})

void t.test('a store whose data file is not there is read by its log alone', async (t) => {
  const dir = await storeOf(t, async ({ put }) => {
    await put({ count: 2, bodies: [entryOf(1, 0), entryOf(2, 1)] })
  })
  const { groups, entries } = await verifyLog(dir, () => {})
  rmSync(join(dir, 'data.mdb'))
  const lines: string[] = []
  const bare = await verifyLog(dir, (line) => lines.push(line))
  t.strictSame(lines, [], 'it is made anew from the log')
  t.strictSame([bare.groups, bare.entries], [groups, entries])
  const log = join(dir, LOG_FOLDER, '00000001.seg')
  const bytes = readFileSync(log)
  bytes[bytes.indexOf(ACTOR)]! ^= 0x04
  writeFileSync(log, bytes)
  await verifyLog(dir, (line) => lines.push(line))
  t.match(lines, [/position \d+: shard 0, offset 1: a group has the wrong checksum/])
})
