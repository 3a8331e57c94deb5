// verify-log says one line for each thing that isn't as it must be: rows whose checksums are right
// and whose content is wrong, as only a mistake of ours would write them. Source: PROTOCOL 4.1
// (K4).

import t, { type Test } from 'tap'
import { encodeEntry, joinEntries, type Entry } from '../../protocol/entry.ts'
import { Arena } from './journal-arena.ts'
import { openEnvironment, type JournalEnvironment } from './journal-environment.ts'
import { entryKey, shardKey } from './journal-layout.ts'
import {
  encodeDerived,
  encodeGroup,
  encodeHead,
  encodeHeadOf,
  encodeNumber,
} from './journal-rows.ts'
import { openEmbeddedJournal } from './journal.ts'
import { journalOptions } from './testing/journal-options.ts'
import { verifyLog } from './verify-log.ts'

const ACTOR = '0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b'
const COMMIT = '0190a1b2-c3d4-7e5f-8a6b-00000000000'

function entryOf(n: number, version: number, records = 1): Buffer {
  const entry: Entry = {
    y: 'order',
    p: ACTOR,
    v: version,
    n,
    r: Array.from({ length: records }, () => ({ type: 'changed' })) as never,
    m: 'f'.repeat(32),
    l: 0,
    a: { type: 'create', success: true },
    t: 0,
    c: 0,
    b: 'bootstrap',
  }
  return encodeEntry(entry)
}

interface Written {
  readonly env: JournalEnvironment
  /** Puts a group and moves the head behind it, whatever is there. */
  readonly put: (group: {
    head: number
    epoch?: number
    commit?: number
    count?: number
    bodies: Buffer[]
  }) => void
  readonly row: (n: number, offset: number, body: Buffer) => void
}

/** What verify-log says of a store of one shard with these rows. */
async function findingsOf(t: Test, write: (written: Written) => void): Promise<string[]> {
  const options = { ...journalOptions(t), shards: 1 }
  await (await openEmbeddedJournal(options)).close()
  const env = openEnvironment(options.dir, false)
  env.epochs.putSync(shardKey(0), encodeNumber(0, 9).value, 9)
  const arena = new Arena()
  write({
    env,
    put: ({ head, epoch = 1, commit = head, count, bodies }) => {
      const of = {
        shard: 0,
        epoch,
        head,
        count: count ?? bodies.length,
        commitId: `${COMMIT}${commit}`,
      }
      const group = { ...of, body: joinEntries(bodies) }
      const row = encodeGroup(arena, group)
      env.log.putSync(row.key, row.value)
      const headRow = encodeHeadOf(arena, group, row)
      env.heads.putSync(headRow.key, headRow.value, head + of.count)
    },
    row: (n, offset, body) => {
      const row = encodeDerived(arena, entryKey(ACTOR, n), { shard: 0, offset }, body)
      env.entries.putSync(row.key, row.value)
    },
  })
  await env.root.close()
  const lines: string[] = []
  const report = await verifyLog(options.dir, (line) => lines.push(line))
  t.equal(report.findings, lines.length)
  return lines.map((line) => line.slice(line.indexOf('data.mdb: ') + 10))
}

const [first, second] = [entryOf(1, 0, 2), entryOf(2, 2)]

void t.test('nothing to say', async (t) => {
  const found = await findingsOf(t, ({ put, row }) => {
    put({ head: 0, bodies: [first] })
    put({ head: 1, epoch: 2, bodies: [second, entryOf(3, 3, 0)] })
    row(1, 1, first)
  })
  t.same(found, [])
})

void t.test('the log', async (t) => {
  const cases: [string, (written: Written) => void, RegExp[]][] = [
    [
      'a gap',
      ({ put }) => {
        put({ head: 0, bodies: [first] })
        put({ head: 2, bodies: [second] })
      },
      [/^shard 0: offset 2: the entries behind offset 1 are missing/],
    ],
    [
      'an overlap',
      ({ put }) => {
        put({ head: 0, bodies: [first, second] })
        put({ head: 1, bodies: [entryOf(3, 3), entryOf(4, 4)] })
      },
      [/^shard 0: offset 3: the entries behind offset 2 are missing: the next begin at 2/],
    ],
    [
      'an epoch that falls',
      ({ put }) => {
        put({ head: 0, epoch: 3, bodies: [first] })
        put({ head: 1, epoch: 2, bodies: [second] })
      },
      [/^shard 0: offset 2: its epoch falls from 3 to 2/],
    ],
    [
      'an epoch never given out',
      ({ put }) => put({ head: 0, epoch: 10, bodies: [first] }),
      [/^shard 0: its epoch is 9, its log has 10/],
    ],
    [
      'a commit id twice',
      ({ put }) => {
        put({ head: 0, commit: 5, bodies: [first] })
        put({ head: 1, commit: 5, bodies: [second] })
      },
      [/^shard 0: offset 2: commit id .*5 is there twice/],
    ],
    [
      'a count that is wrong',
      ({ put }) => put({ head: 0, count: 3, bodies: [first, second] }),
      [/^shard 0: offset 1: holds 2 entries and says 3/],
    ],
    [
      'no entry',
      ({ put }) => put({ head: 0, bodies: [Buffer.from('{')] }),
      [/^shard 0: offset 1: the entry can't be read/],
    ],
    [
      'a head elsewhere',
      ({ put, env }) => {
        put({ head: 0, bodies: [first] })
        const head = { epoch: 1, head: 4, groupCrc: 1, commitId: `${COMMIT}1` }
        const row = encodeHead(new Arena(), 0, head)
        env.heads.putSync(row.key, row.value, 5)
      },
      [/^shard 0: offset 2: the log ends at offset 1 and its head says 4/, /two numbers differ/],
    ],
    [
      'another last group',
      ({ put, env }) => {
        put({ head: 0, bodies: [first] })
        const head = { epoch: 1, head: 1, groupCrc: 1, commitId: `${COMMIT}0` }
        const row = encodeHead(new Arena(), 0, head)
        env.heads.putSync(row.key, row.value, 1)
      },
      [/^shard 0: offset 2: the last group is another one than its head says/],
    ],
  ]
  for (const [name, write, wanted] of cases) {
    const found = await findingsOf(t, write)
    t.equal(found.length, wanted.length, `${name}: ${found.join('; ')}`)
    for (const [i, pattern] of wanted.entries()) t.match(found[i], pattern, name)
  }
})

void t.test('actors', async (t) => {
  const cases: [string, (written: Written) => void, RegExp[]][] = [
    [
      'an entry number left out',
      ({ put }) => put({ head: 0, bodies: [first, entryOf(3, 2)] }),
      [/^shard 0: offset 2: actor .*: entry 3 behind 1/],
    ],
    [
      'a version left out',
      ({ put }) => put({ head: 0, bodies: [first, entryOf(2, 3)] }),
      [/^shard 0: offset 2: actor .* goes on from version 3, it was at 2/],
    ],
    [
      'a row of another content',
      ({ put, row }) => {
        put({ head: 0, bodies: [first] })
        row(1, 1, second)
      },
      [/^shard 0: offset 1: actor .*: entry 1 has a row with another content/],
    ],
    [
      'a row of another offset',
      ({ put, row }) => {
        put({ head: 0, bodies: [first] })
        row(1, 2, first)
      },
      [/^shard 0: offset 1: actor .*: entry 1 has a row of offset 2/],
    ],
    [
      'no row',
      ({ put, env }) => {
        put({ head: 0, bodies: [first] })
        const key = Buffer.concat([shardKey(0), Buffer.from('flush')])
        const flush = encodeDerived(new Arena(), key, { shard: 0, offset: 1 }, Buffer.alloc(0))
        env.consumers.putSync(flush.key, flush.value)
      },
      [/^shard 0: offset 1: actor .*: entry 1 is flushed and has no row/],
    ],
    [
      'rows with one left out',
      ({ put, row }) => {
        put({ head: 0, bodies: [first] })
        row(1, 1, first)
        row(3, 3, second)
      },
      [/^actor .*: entry 3 comes behind entry 1/],
    ],
    [
      'a row that is damaged',
      ({ put, env }) => {
        put({ head: 0, bodies: [first] })
        env.aliases.putSync(Buffer.from('order\u00007'), Buffer.alloc(30))
      },
      [/^table 'aliases', row 6f726465720037: its checksum doesn't match/],
    ],
  ]
  for (const [name, write, wanted] of cases) {
    const found = await findingsOf(t, write)
    t.equal(found.length, wanted.length, `${name}: ${found.join('; ')}`)
    for (const [i, pattern] of wanted.entries()) t.match(found[i], pattern, name)
  }
})

void t.test('no journal', async (t) => {
  const lines: string[] = []
  const { dir } = journalOptions(t)
  t.equal((await verifyLog(dir, (line) => lines.push(line))).findings, 1)
  t.match(lines[0], /there is no data file/)
})
