// Files of an embedded store that were cut, emptied, taken away, or are another store's: it is
// refused with the place, or is whole; it is never served short. Source: PROTOCOL 3.16, F22.

import { existsSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { writeManifest } from '../../segment-log/manifest.ts'
import { NodeDisk } from '../../segment-log/node-disk.ts'
import { openEmbeddedJournal } from './journal.ts'
import {
  contentsOf,
  damageOf,
  filledStore,
  findingsIn,
  openingOf,
  randomFrom,
  segmentsIn,
  smallSegments,
  withCopy,
  type Contents,
} from '../testing/damaged-store.ts'
import { journalOptions, optionsIn } from '../testing/journal-options.ts'
import { verifyLog } from '../verify/store.ts'

async function contentsIn(dir: string): Promise<Contents> {
  return withCopy(dir, async (copy) => {
    const journal = await openEmbeddedJournal(smallSegments(copy))
    const contents = await contentsOf(journal)
    await journal.close()
    return contents
  })
}

void t.test('a whole store opens and verifies', async (t) => {
  const { dir, heads } = await filledStore(t)
  const lines: string[] = []
  const report = await verifyLog(dir, (line) => lines.push(line))
  t.same(lines, [])
  t.equal(report.groups, 60)
  t.equal(report.entries, heads[0]! + heads[1]!)
  t.ok(report.derivedRows >= report.entries, 'an entry and an alias of about half')
  const { log, derived } = await contentsIn(dir)
  t.equal(log.length, 62)
  t.ok(derived.length > heads[0]!)
})

for (const isKilled of [false, true]) {
  const how = isKilled ? 'killed' : 'closed'
  void t.test(`files of the log cut at any length, of a store that was ${how}`, async (t) => {
    const { dir } = await filledStore(t, { isKilled })
    const whole = await contentsIn(dir)
    const names = [...segmentsIn(dir), join(dir, 'log', 'manifest.json'), join(dir, 'store.json')]
    t.ok(names.length >= 5, 'two files of the log at least')
    const random = randomFrom(7)
    const counts = { refused: 0, whole: 0 }
    for (const name of names) {
      const { size } = statSync(name)
      const cuts = Array.from({ length: 10 }, () => Math.floor(random() * size))
      for (const cut of [0, 1, 512, size - 64, size - 1, ...cuts].filter((at) => at < size)) {
        await withCopy(dir, async (copy) => {
          const file = name.replace(dir, copy)
          truncateSync(file, cut)
          const opened = await openingOf(smallSegments(copy))
          if ('damage' in opened) {
            counts.refused++
            const { message, place } = opened.damage
            const isTold = message.startsWith(`${file}: `) && /position \d|offset \d/.test(message)
            if (place.file !== file || !isTold || !/Ways? back: /.test(message)) {
              t.fail(`${name} cut at ${cut}: ${message}`)
            }
            if (statSync(file).size !== cut) t.fail(`${name} cut at ${cut}: it was changed`)
            const found = await findingsIn(copy)
            if (!found.some((line) => line.includes(file)))
              t.fail(`${name} cut at ${cut}: ${found.join('; ')}`)
            return
          }
          counts.whole++
          // Of what is behind the end of a closed log, and of a line's end, nothing is missing.
          const isUnused = !isKilled && file === segmentsIn(copy).at(-2)
          const isLineEnd = name.endsWith('store.json') && cut === size - 1
          if (!isUnused && !isLineEnd) t.fail(`${name} cut at ${cut}: opened`)
          const contents = await contentsOf(opened.journal)
          await opened.journal.close()
          if (JSON.stringify(contents) !== JSON.stringify(whole)) {
            t.fail(`${name} cut at ${cut}: served short`)
          }
        })
      }
    }
    t.ok(counts.refused > 10 * names.length && counts.whole > 0, JSON.stringify(counts))
  })
}

void t.test('files that are gone', async (t) => {
  const { dir } = await filledStore(t)
  const names = [...segmentsIn(dir), join(dir, 'log', 'manifest.json'), join(dir, 'store.json')]
  for (const withData of [true, false]) {
    const gone = [...names.map((name) => [name]), [join(dir, 'log')], segmentsIn(dir)]
    for (const paths of gone) {
      await withCopy(dir, async (copy) => {
        for (const path of paths) rmSync(path.replace(dir, copy), { recursive: true })
        if (!withData) rmSync(join(copy, 'data.mdb'))
        const { message } = await damageOf(smallSegments(copy))
        t.match(message, /Ways? back: .*backup/s, `without ${paths.join(', ')}`)
        t.match(message, copy)
      })
    }
  }
})

void t.test('an older copy of the log under a newer data file', async (t) => {
  const { dir } = await filledStore(t, { starts: 1 })
  await withCopy(dir, async (older) => {
    const journal = await openEmbeddedJournal(smallSegments(dir))
    await journal.log.claim(0)
    await journal.close()
    writeFileSync(join(older, 'data.mdb'), readFileSync(join(dir, 'data.mdb')))
    const { message } = await damageOf(smallSegments(older))
    t.match(message, /missing/, 'is one that has lost its end')
  })
})

void t.test('a data file cut, emptied or gone is made anew from the log', async (t) => {
  const { dir } = await filledStore(t)
  const whole = await contentsIn(dir)
  const { size } = statSync(join(dir, 'data.mdb'))
  const random = randomFrom(7)
  const cuts = Array.from({ length: 15 }, () => Math.floor(random() * size))
  const derived: unknown[] = []
  for (const cut of [null, 0, 1, 100, 4_096, 8_192, size - 1, ...cuts]) {
    await withCopy(dir, async (copy) => {
      const file = join(copy, 'data.mdb')
      if (cut === null) rmSync(file)
      else truncateSync(file, cut)
      const journal = await openEmbeddedJournal(smallSegments(copy))
      const contents = await contentsOf(journal)
      await journal.close()
      t.same(contents.log, whole.log, `cut at ${cut}`)
      if (contents.derived.length === 0) derived.push(cut)
      else t.same(contents.derived, whole.derived)
      t.same(await findingsIn(copy), [])
      const again = await openEmbeddedJournal(smallSegments(copy))
      t.same(await contentsOf(again), contents, 'and stays')
      await again.close()
    })
  }
  t.ok(derived.length > 15, 'rows of actors come when the log is run through again')
})

void t.test('another store than the configured one', async (t) => {
  const { dir } = await filledStore(t, { starts: 1 })
  const eight = openEmbeddedJournal({ ...optionsIn(dir), shards: 8 })
  await t.rejects(eight, { message: /made with 2 shards and 8 are configured/ })
  await t.rejects(openEmbeddedJournal({ ...journalOptions(t), shards: 6 }), {
    message: /power of two/,
  })
  const options = journalOptions(t)
  const made = await openEmbeddedJournal(options)
  t.equal(made.identity.shards, 32)
  await made.close()
  const others = readFileSync(join(options.dir, 'data.mdb'))
  writeFileSync(join(dir, 'data.mdb'), others)
  await t.rejects(openEmbeddedJournal(optionsIn(dir)), { message: /belongs to another store/ })
  t.ok(readFileSync(join(dir, 'data.mdb')).equals(others), 'nothing was changed')
  for (const name of ['data.mdb', 'store.json', 'log']) rmSync(join(dir, name), { recursive: true })
  const journal = await openEmbeddedJournal({ ...optionsIn(dir), shards: 4 })
  t.equal(journal.identity.shards, 4, 'and nothing at all is a new store')
  await journal.close()
})

void t.test('a store that was being made', async (t) => {
  const options = { ...journalOptions(t), shards: 2 }
  await (await openEmbeddedJournal(options)).close()
  const manifest = join(options.dir, 'log', 'manifest.json')
  const { generation } = JSON.parse(readFileSync(manifest, 'utf8')) as { generation: string }
  for (const name of ['data.mdb', 'lock.mdb', 'log/00000001.seg']) rmSync(join(options.dir, name))
  await writeManifest(new NodeDisk(join(options.dir, 'log')), { generation, last: 0, end: null })
  for (const name of ['nothing', 'store.json']) {
    rmSync(join(options.dir, name), { force: true })
    await withCopy(options.dir, async (copy) => {
      const journal = await openEmbeddedJournal({ ...options, dir: copy })
      t.equal((await journal.log.claim(0)).head, 0, `without ${name}`)
      await journal.close()
      t.same(await findingsIn(copy), [])
    })
  }
})

void t.test('a store of the first form', async (t) => {
  const { dir } = await filledStore(t, { starts: 1 })
  const path = join(dir, 'store.json')
  writeFileSync(path, JSON.stringify({ format: 1, shards: 2, generation: 'g' }))
  rmSync(join(dir, 'log'), { recursive: true })
  const before = readFileSync(join(dir, 'data.mdb'))
  await t.rejects(openEmbeddedJournal(optionsIn(dir)), {
    message: /format is 1, .* reads 2: start the version that made it, or an empty directory/,
  })
  t.notOk(existsSync(join(dir, 'log')))
  t.ok(readFileSync(join(dir, 'data.mdb')).equals(before), 'nothing was changed')
  t.match(await findingsIn(dir), [/format is 1/])
  writeFileSync(path, JSON.stringify({ format: 3, shards: 2, generation: 'g' }))
  await t.rejects(openEmbeddedJournal(optionsIn(dir)), { message: /start the newer version/ })
})
