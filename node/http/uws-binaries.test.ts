// The binaries of uWebSockets.js come repacked: each is the one that was looked at when its version
// was taken. Who takes another version compares them with the files of the same names in the
// release of uWebSockets.js that it was made of, and then writes the new table.

import t from 'tap'
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

interface Table {
  readonly package: string
  readonly sha256: Readonly<Record<string, string>>
}

const read = <T>(path: string): T => JSON.parse(readFileSync(path, 'utf8')) as T
const table = read<Table>(fileURLToPath(new URL('testing/uws-binaries.json', import.meta.url)))
const root = fileURLToPath(new URL('../../package.json', import.meta.url))

t.test('the version is the one of the table', (t) => {
  const { dependencies } = read<{ dependencies: Record<string, string> }>(root)
  t.equal(dependencies['uWebSockets.js'], `npm:${table.package}`)
  t.end()
})

t.test('every binary that is installed is known', (t) => {
  const folder = join(dirname(root), 'node_modules/uWebSockets.js/dist/bin')
  const files = readdirSync(folder)
  t.ok(files.length > 0)
  for (const file of files) {
    const bytes = readFileSync(join(folder, file))
    t.equal(createHash('sha256').update(bytes).digest('hex'), table.sha256[file], file)
  }
  t.end()
})
