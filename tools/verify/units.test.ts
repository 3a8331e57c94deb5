// Which tests `npm run check` runs: those of the pure folders that start nothing, each once.

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { isPure, unitFiles } from './units.ts'

const ROOT = join(import.meta.dirname, '../..')

t.test('tests of pure folders and of texts, all of them there', async (t) => {
  const files = unitFiles()
  t.ok(files.includes('protocol/json/json.test.ts'))
  t.ok(files.includes('test/tidy.test.ts'))
  t.ok(files.length > 15, `${files.length} files`)
  t.equal(new Set(files).size, files.length)
  t.strictSame(
    files.filter((path) => !existsSync(join(ROOT, path))),
    [],
  )
  t.notOk(files.includes('config/load.test.ts'), 'starts a process')
})

t.test('a file that starts something or sets something for its process is none', async (t) => {
  t.ok(isPure("import t from 'tap'\n\nt.test('x', async (t) => void t.teardown(() => {}))\n"))
  t.notOk(isPure("import { spawn } from 'node:child_process'\n"))
  t.notOk(isPure("import { until } from '../test/harness/patience.ts'\n"))
  t.notOk(isPure('t.beforeEach(() => {})\n'))
})
