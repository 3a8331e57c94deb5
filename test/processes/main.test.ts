// The command line of a node, as a process: what it prints when it is asked for help.

import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import t from 'tap'
import { settingsReference } from '../../config/reference.ts'

const MAIN = join(import.meta.dirname, '../../node/main.ts')

t.test('--help prints the reference and starts nothing, even with wrong settings', async (t) => {
  const cwd = t.testdir({})
  const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, '--help'], {
    cwd,
    env: { ...process.env, KONTOR_SHARDS: 'none' },
    encoding: 'utf8',
    timeout: 30_000,
  })
  t.equal(stderr, '')
  t.equal(stdout, settingsReference())
  t.equal(status, 0)
})
