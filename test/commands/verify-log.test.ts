// The command around the audit of a data directory: its exit codes and what it says. What the audit
// finds is tested in storage/embedded.

import { spawnSync } from 'node:child_process'
import { truncateSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { DATA_FILE } from '../../storage/lmdb/environment.ts'
import { openEmbeddedJournal } from '../../storage/embedded/journal/journal.ts'
import { journalOptions } from '../../storage/embedded/testing/journal-options.ts'

function verifyLog(...args: string[]) {
  const script = join(import.meta.dirname, '../../cli/verify-log.ts')
  const { KONTOR_DATA_DIR: _ours, ...env } = process.env
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, ...args], { env })
  return { status, stdout: String(stdout), stderr: String(stderr) }
}

t.test('a sound directory, one cut short, and one that is not there', async (t) => {
  const options = journalOptions(t)
  const { dir } = options
  const journal = await openEmbeddedJournal(options)
  await journal.close()
  const sound = verifyLog('--data', dir)
  t.equal(sound.status, 0, sound.stderr)
  t.match(sound.stdout, /: 0 groups, 0 entries and 0 derived rows read, nothing is wrong\n$/)

  truncateSync(join(dir, DATA_FILE), 4_096)
  const cut = verifyLog('--data', dir)
  t.equal(cut.status, 1)
  t.match(cut.stdout, /, findings: \d\n$/)

  t.equal(verifyLog('--data', join(dir, 'none')).status, 1)
})

t.test('a settings file of a cluster is no data directory', async (t) => {
  const cassandra = { contactPoints: '127.0.0.1:1', datacenter: 'dc1', keyspace: 'theirs' }
  const dir = t.testdir({
    'member.json': JSON.stringify({ storageDriver: 'cluster', cluster: { cassandra } }),
    'engines.json': JSON.stringify({ cluster: { cassandra } }),
    'wrong.json': JSON.stringify({ storageDriver: 'cluster' }),
    'one.json': JSON.stringify({ dataDir: join(t.testdirName, 'none') }),
  })
  for (const file of ['member.json', 'engines.json']) {
    const away = verifyLog('--config', join(dir, file))
    t.equal(away.status, 1, file)
    t.match(away.stderr, /127\.0\.0\.1:1|host/, 'it was Cassandra that was looked for')
    t.equal(away.stdout, '')
  }
  const wrong = verifyLog('--config', join(dir, 'wrong.json'))
  t.equal(wrong.status, 78)
  t.match(wrong.stderr, 'KONTOR_CASSANDRA_CONTACT_POINTS')
  t.equal(verifyLog('--config', join(dir, 'missing.json')).status, 78)
  t.match(verifyLog('--config', join(dir, 'one.json')).stdout, join(dir, 'none'))
  const both = verifyLog('--config', join(dir, 'member.json'), '--data', dir)
  t.equal(both.status, 64, 'which of them was meant?')
})

t.test('wrong arguments', async (t) => {
  for (const args of [['--dta', 'x'], ['x']]) {
    const { status, stderr } = verifyLog(...args)
    t.equal(status, 64)
    t.match(stderr, /Usage: npm run verify-log -- \[--data DIR\]/)
  }
  const { status, stdout } = verifyLog('--help')
  t.equal(status, 0, 'who asks has made no mistake')
  t.match(stdout, /Usage: npm run verify-log -- \[--data DIR\]/)
})
