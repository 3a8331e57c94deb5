// A backup of a data directory: what is in it, what is copied again, what is refused, and what is
// left where it was refused. What is written meanwhile: log/copy.test.ts. Source: PROTOCOL 3.16.

import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { joinEntries } from '../../protocol/entry/entry.ts'
import { freshUuid, group } from '../conformance/journal-samples.ts'
import type { Journal } from '../journal.ts'
import { backUp } from './backup.ts'
import { lockDirectory } from './directory-lock.ts'
import { DATA_FILE } from '../lmdb/environment.ts'
import { STORE_FILE } from './journal/identity.ts'
import { LOG_FOLDER, openEmbeddedJournal } from './journal/journal.ts'
import type { LogCopyReport } from './log/copy.ts'
import { MOVED_FILE, writeMoved } from './moved-store.ts'
import {
  damageOf,
  entryOf,
  filledStore,
  findingsIn,
  flipText,
  segmentsIn,
  smallSegments,
} from './testing/damaged-store.ts'
import { journalOptions } from './testing/journal-options.ts'

function backup(from: string, to: string): Promise<LogCopyReport> {
  return backUp({ from, to, pause: () => pause(1) })
}

/** A directory that isn't there yet. */
function target(t: Test): string {
  return join(journalOptions(t).dir, 'backup')
}

async function bodiesOf(journal: Journal): Promise<string[]> {
  const bodies: string[] = []
  for (let shard = 0; shard < journal.identity.shards; shard++) {
    for (const { offset, body } of await journal.log.read(shard, 0, 1e9)) {
      bodies.push(`${shard}/${offset} ${Buffer.from(body).toString('base64')}`)
    }
  }
  return bodies
}

/** Everything in a copy of the backup, once a journal was opened on it. */
async function restored(t: Test, dir: string): Promise<string[]> {
  const { dir: copy } = journalOptions(t)
  cpSync(dir, copy, { recursive: true })
  const journal = await openEmbeddedJournal(smallSegments(copy))
  const bodies = await bodiesOf(journal)
  await journal.close()
  t.strictSame(await findingsIn(copy), [])
  return bodies
}

/** Appends groups to a shard; resolves when all are acknowledged. */
async function append(journal: Journal, shard: number, count: number): Promise<void> {
  const claimed = await journal.log.claim(shard)
  const { epoch } = claimed
  for (let i = 0; i < count; i++) {
    const body = joinEntries([entryOf(freshUuid(), 1, 900)])
    const one = group({ shard, epoch, head: claimed.head + i, body })
    if ((await journal.log.append([one]))[0] !== 'committed') throw new Error('not committed')
  }
}

void t.test(
  'of a store at rest: all of it, nothing twice, no longer than it must be',
  async (t) => {
    const { dir } = await filledStore(t)
    const journal = await openEmbeddedJournal(smallSegments(dir))
    const bodies = await bodiesOf(journal)
    await journal.close()
    const to = target(t)
    const first = await backup(dir, to)
    t.equal(first.copied.files, first.files)
    t.ok(first.copied.groups > 0 && first.copied.entries > first.copied.groups)
    t.strictSame(await findingsIn(to), [], 'a backup without a data file is whole')
    t.notOk(existsSync(join(to, DATA_FILE)))
    const bytes = segmentsIn(to).reduce((sum, path) => sum + statSync(path).size, 0)
    t.equal(bytes, first.bytes, 'each file is cut to its end')
    t.strictSame(await restored(t, to), bodies)

    const again = await backup(dir, to)
    t.strictSame(again.copied, { files: 0, bytes: 0, groups: 0, entries: 0 })
    t.equal(again.bytes, first.bytes)
    t.strictSame(await restored(t, to), bodies)
  },
)

void t.test('of a journal at work: again and again only what is new', async (t) => {
  const { dir } = journalOptions(t)
  const journal = await openEmbeddedJournal({ ...smallSegments(dir), shards: 2 })
  t.teardown(() => journal.close())
  await append(journal, 0, 50)
  const to = target(t)
  const first = await backup(dir, to)
  t.ok(first.files > 2, 'it has rolled')
  await append(journal, 1, 5)
  const second = await backup(dir, to)
  t.ok(second.copied.files <= second.files - first.files + 1, 'the open file, and those behind it')
  t.strictSame(await restored(t, to), await bodiesOf(journal))
  const run = { goesOn: true }
  const appending = (async () => {
    while (run.goesOn) await append(journal, 0, 3)
  })()
  try {
    for (let i = 0; i < 5; i++) {
      const before = await bodiesOf(journal)
      await backup(dir, to)
      const kept = new Set(await restored(t, to))
      t.ok(
        before.every((body) => kept.has(body)),
        `${before.length} were acknowledged before, all of ${kept.size} are there`,
      )
    }
  } finally {
    run.goesOn = false
    await appending
  }
})

void t.test('one that was broken off is finished, wherever it was', async (t) => {
  const { dir } = await filledStore(t)
  const whole = target(t)
  await backup(dir, whole)
  const bodies = await restored(t, whole)
  const steps: Record<string, (to: string) => void> = {
    'before store.json': (to) => {
      writeFileSync(join(to, 'lock'), '')
      writeFileSync(join(to, `${STORE_FILE}.new`), '{')
    },
    'before the first file': (to) => cpSync(join(whole, STORE_FILE), join(to, STORE_FILE)),
    'in the middle of a file': (to) => {
      cpSync(join(whole, STORE_FILE), join(to, STORE_FILE))
      cpSync(segmentsIn(whole)[0]!, join(to, LOG_FOLDER, '00000001.seg'))
      mkdirSync(join(to, 'log.new'))
      writeFileSync(join(to, 'log.new', '00000002.seg'), readFileSync(segmentsIn(whole)[1]!, 'hex'))
    },
    'before the manifest': (to) => {
      cpSync(whole, to, { recursive: true })
      rmSync(join(to, LOG_FOLDER, 'manifest.json'))
    },
  }
  for (const [when, leave] of Object.entries(steps)) {
    const to = target(t)
    mkdirSync(join(to), { recursive: true })
    if (when === 'in the middle of a file') mkdirSync(join(to, LOG_FOLDER))
    leave(to)
    await backup(dir, to)
    t.strictSame(await restored(t, to), bodies, when)
    t.notOk(existsSync(join(to, 'log.new')), when)
  }
})

void t.test('where it is refused nothing is changed', async (t) => {
  const { dir } = await filledStore(t)
  const { dir: other } = await filledStore(t)
  const { dir: empty } = journalOptions(t)
  const to = target(t)
  await t.rejects(backup(empty, to), /there is no store/)
  t.notOk(existsSync(join(empty, LOG_FOLDER)), 'not even a folder is made')
  t.notOk(existsSync(to))
  await t.rejects(backup(dir, dir), /that is the store itself/)
  writeFileSync(join(empty, 'notes'), '')
  await t.rejects(backup(dir, empty), /is not empty, and no backup/)
  await backup(other, to)
  await t.rejects(backup(dir, to), /is a backup of another store/)

  const lock = await lockDirectory(to, { what: 'another backup' })
  await t.rejects(backup(other, to), /in use by .*another backup/)
  lock.release()

  const journal = await openEmbeddedJournal(smallSegments(to))
  await journal.close()
  await t.rejects(backup(other, to), /a node was started on this backup/)
})

void t.test('a store that was moved is moved in its backup, too', async (t) => {
  const [{ dir }, to] = [await filledStore(t, { groups: 3, step: 20 }), target(t)]
  await backup(dir, to)
  writeMoved(dir, { to: 'the keyspace kontor at 10.0.0.1:9042', at: '2026-01-02T03:04:05.000Z' })
  await backup(dir, to)
  await t.rejects(restored(t, to), /was moved to the keyspace kontor/)
  // Who goes back to it takes the word away.
  rmSync(join(dir, MOVED_FILE))
  await backup(dir, to)
  t.ok((await restored(t, to)).length > 0)
})

void t.test('a store that was set back is another timeline: its backup stays', async (t) => {
  const { dir } = await filledStore(t)
  const to = target(t)
  await backup(dir, to)
  const { dir: old } = journalOptions(t)
  cpSync(to, old, { recursive: true })
  const newer = await openEmbeddedJournal(smallSegments(dir))
  await append(newer, 0, 5)
  await newer.close()
  await backup(dir, to)
  const bodies = await restored(t, to)

  await t.rejects(backup(old, to), /what came after, or another timeline/, 'it is an older one')
  const set = await openEmbeddedJournal(smallSegments(old))
  await append(set, 0, 5)
  await set.close()
  await t.rejects(backup(old, to), /what came after, or another timeline/, 'it has gone on')
  t.strictSame(await restored(t, to), bodies)
})

void t.test('of a damaged store none is made, and an earlier one stays', async (t) => {
  const store = await filledStore(t, { starts: 3 })
  const to = target(t)
  const { dir: harmed } = journalOptions(t)
  cpSync(store.dir, harmed, { recursive: true })
  const file = flipText(harmed, store.groups[0]!.text, 3)
  await t.rejects(backup(harmed, to), { message: new RegExp(`^${file}: position \\d+: shard`) })

  await backup(store.dir, to)
  const bodies = await restored(t, to)
  // Of what is there already nothing is read again.
  t.equal((await backup(harmed, to)).copied.files, 0)
  t.strictSame(await restored(t, to), bodies)

  const journal = await openEmbeddedJournal(smallSegments(harmed))
  await append(journal, 1, 3)
  const newest = segmentsIn(harmed).at(-1)!
  flipText(harmed, (await lastBody(journal, 1, 1)).subarray(20, 60), 5)
  await t.rejects(backup(harmed, to), { message: new RegExp(`^${newest}: position`) })
  t.strictSame(await restored(t, to), bodies, 'the log was whole then, and is here')
  await journal.close()
})

/** The body of the group that is so many before the last. */
async function lastBody(journal: Journal, shard: number, before: number): Promise<Buffer> {
  const rows = await journal.log.read(shard, 0, 1e9)
  return Buffer.from(rows.at(-1 - before)!.body)
}

void t.test(
  'an accepted loss is in the backup, and what was backed up before goes on',
  async (t) => {
    const store = await filledStore(t, { isKilled: true })
    const { dir } = store
    flipText(dir, store.groups.at(-2)!.text, 3)
    const to = target(t)
    await t.rejects(backup(dir, to), /a group has the wrong checksum/)
    const { message } = await damageOf(smallSegments(dir))
    const flags = [...message.matchAll(/--accept-loss (-?\d+):(\d+)/g)]
    const acceptLoss = flags.map(([, shard, at]) => ({ shard: Number(shard), offset: Number(at) }))
    const journal = await openEmbeddedJournal({ ...smallSegments(dir), acceptLoss })
    await append(journal, 0, 2)
    await backup(dir, to)
    t.strictSame(await restored(t, to), await bodiesOf(journal))
    await journal.close()
    await backup(dir, to)
    const own = JSON.parse(readFileSync(join(to, STORE_FILE), 'utf8')) as { losses: unknown[] }
    t.equal(own.losses.length, acceptLoss.length)
  },
)
