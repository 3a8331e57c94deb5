// verify-log says one line for each thing that isn't as it must be: rows whose checksums are right
// and whose content is wrong, as only a mistake of ours would write them. Source: PROTOCOL 4.1
// (K4).

import { spawn, type ChildProcess } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
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
import { PROCESS, startRole } from './testing/journal-children.ts'
import { journalOptions } from './testing/journal-options.ts'
import { verifyLog } from './verify-log.ts'

const ACTOR = '0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b'
const COMMIT = '0190a1b2-c3d4-7e5f-8a6b-00000000000'

function entryOf(n: number, version: number, records = 1, more: Partial<Entry> = {}): Buffer {
  const entry: Entry = {
    y: 'order',
    p: ACTOR,
    v: version,
    n,
    r: Array.from({ length: records }, () => ({ type: 'changed' })) as never,
    m: `message ${n} ${version}`,
    l: 0,
    a: { type: 'create', success: true },
    t: 0,
    c: 0,
    b: 'bootstrap',
    ...more,
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
  return verify(t, await storeOf(t, write))
}

async function verify(t: Test, dir: string, options = {}): Promise<string[]> {
  const lines: string[] = []
  const report = await verifyLog(dir, (line) => lines.push(line), options)
  t.equal(report.findings, lines.length)
  return lines.map((line) => line.slice(line.indexOf('data.mdb: ') + 10))
}

async function storeOf(t: Test, write: (written: Written) => void): Promise<string> {
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
  return options.dir
}

/** Up to here the derived rows are said to be whole. */
function flush({ env }: Written, offset: number): void {
  const key = Buffer.concat([shardKey(0), Buffer.from('flush')])
  const row = encodeDerived(new Arena(), key, { shard: 0, offset }, Buffer.alloc(0))
  env.consumers.putSync(row.key, row.value)
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
        row(1, 1, entryOf(2, 0, 2))
      },
      [/^shard 0: offset 1: actor .*: entry 1 has a row with another content/],
    ],
    [
      'a row of another offset',
      ({ put, row }) => {
        put({ head: 0, bodies: [first] })
        row(1, 2, first)
      },
      [/^shard 0: offset 1: actor .*: entry 1 \(.* version 0 to 2.*\) has a row of offset 2/],
    ],
    [
      'no row',
      (written) => {
        written.put({ head: 0, bodies: [first] })
        flush(written, 1)
      },
      [/^shard 0: offset 1: actor .*: entry 1 is flushed and has no row/],
    ],
    [
      'rows with records left out',
      ({ put, row }) => {
        put({ head: 0, bodies: [first] })
        row(1, 1, first)
        row(3, 3, entryOf(3, 3))
      },
      [/^actor .*: entry 3 .* does not go on from .* version 2: what it had before is missing/],
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

// An earlier version read an actor only up to a refusal that had gone, and went on from there.
void t.test('two histories of one actor: both are shown, nothing is changed', async (t) => {
  const [fourth, fifth] = [entryOf(4, 3), entryOf(5, 4)]
  const [overThird, overFourth] = [entryOf(3, 3, 1, { m: 'a' }), entryOf(4, 4, 1, { m: 'b' })]
  const dir = await storeOf(t, (written) => {
    const { put, row } = written
    put({ head: 0, bodies: [first, second, entryOf(3, 3, 0), fourth, fifth] })
    put({ head: 5, bodies: [overThird, overFourth] })
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
  const dir = await storeOf(t, (written) => {
    const { put, row } = written
    put({ head: 0, bodies: [first, second, entryOf(3, 3, 0), relayed, entryOf(5, 3)] })
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

const IS_OPEN = /process \d+ has the data directory open/

void t.test('what another process has open is not repaired', async (t) => {
  const { dir } = journalOptions(t)
  const node = startRole(t, 'stay', dir)
  for await (const line of node.lines) if ('epoch' in line) break
  t.same(await verify(t, dir), [], 'only reading takes nothing from it')
  const found = await verify(t, dir, { repair: true })
  t.equal(found.length, 1, found.join('; '))
  t.match(found[0], IS_OPEN)
  node.process.kill('SIGKILL')
  await node.ended
  t.same(await verify(t, dir, { repair: true }), [], 'one that was killed has nothing open')
})

void t.test('a node that starts while a store is repaired ends the repair', async (t) => {
  const dir = await storeOf(t, (written) => {
    written.put({ head: 0, bodies: [first, second] })
    flush(written, 2)
  })
  const lines: string[] = []
  let node: ChildProcess | null = null
  await verifyLog(
    dir,
    (line) => {
      lines.push(line)
      node ??= openBeside(t, dir)
    },
    { repair: true },
  )
  t.equal(lines.length, 2, lines.join('; '))
  t.match(lines[0], /entry 1 .*; it was put back$/)
  t.match(lines[1], IS_OPEN)
})

/** A process that has the directory open; this one stands still until it has. */
function openBeside(t: Test, dir: string): ChildProcess {
  const said = join(mkdtempSync(join(tmpdir(), 'kontor-verify-')), 'said')
  const to = openSync(said, 'w')
  const child = spawn(process.execPath, [PROCESS, 'stay', dir], {
    stdio: ['ignore', to, 'inherit'],
  })
  t.teardown(() => {
    child.kill('SIGKILL')
    closeSync(to)
    rmSync(dirname(said), { recursive: true })
  })
  const still = new Int32Array(new SharedArrayBuffer(4))
  const untilMs = performance.now() + 20_000
  while (!readFileSync(said, 'utf8').includes('epoch')) {
    if (performance.now() > untilMs) throw new Error('the other process says nothing')
    Atomics.wait(still, 0, 0, 20)
  }
  return child
}

void t.test('no journal', async (t) => {
  const lines: string[] = []
  const { dir } = journalOptions(t)
  t.equal((await verifyLog(dir, (line) => lines.push(line))).findings, 1)
  t.match(lines[0], /there is no data file/)
})
