// The command around a backup: its exit codes and what it says. What a backup holds is tested in
// storage/embedded.

import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import t from 'tap'
import { openEmbeddedJournal } from '../../storage/embedded/journal/journal.ts'
import { journalOptions } from '../../storage/embedded/testing/journal-options.ts'

function run(script: string, ...args: string[]) {
  const { KONTOR_DATA_DIR: _ours, ...env } = process.env
  const path = join(import.meta.dirname, '../../cli', script)
  const { status, stdout, stderr } = spawnSync(process.execPath, [path, ...args], { env })
  return { status, stdout: String(stdout), stderr: String(stderr) }
}

const backup = (...args: string[]) => run('backup.ts', ...args)

t.test('of an open store, again, and of none', async (t) => {
  const options = journalOptions(t)
  const { dir } = options
  const to = join(journalOptions(t).dir, 'backup')
  const journal = await openEmbeddedJournal(options)
  await journal.log.claim(0)
  const first = backup('--data', dir, '--to', to)
  t.equal(first.status, 0, first.stderr)
  t.match(first.stdout, /: 1 files of the log, 0\.0 MiB; new are 1 of them, .* nothing is wrong\n$/)
  t.equal(first.stdout.split('\n').length, 2, 'one line')
  await journal.close()

  const again = backup('--data', dir, '--to', to)
  t.match(again.stdout, /new are 0 of them, 0\.0 MiB, in which 0 groups and 0 entries/)
  const verified = run('verify-log.ts', '--data', to)
  t.equal(verified.status, 0, verified.stdout)

  const none = backup('--data', join(dir, 'none'), '--to', to)
  t.equal(none.status, 1)
  t.match(none.stderr, /none is not backed up: .*: there is no store\n$/)
})

t.test('wrong arguments', async (t) => {
  for (const args of [['--to'], ['x'], [], ['--data', 'x'], ['--to', ''], ['--config', 'x']]) {
    const { status, stderr } = backup(...args)
    t.equal(status, 64, args.join(' '))
    t.match(stderr, /Usage: npm run backup -- \[--data DIR\] --to DIR/)
  }
  const { status, stdout } = backup('--help')
  t.equal(status, 0, 'who asks has made no mistake')
  t.match(stdout, /Usage: npm run backup -- \[--data DIR\] --to DIR/)
  t.equal(run('verify-log.ts', '--to', 'x').status, 64, 'only a backup has a target')
})
