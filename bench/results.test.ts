// What the bench's page shows can be looked up: dated results with the machine in them.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'

const FOLDER = join(import.meta.dirname, 'results')
const README = readFileSync(join(import.meta.dirname, 'README.md'), 'utf8')
const names = readdirSync(FOLDER)

t.test('every result has its date and its machine', async (t) => {
  t.ok(names.length > 0)
  for (const name of names) {
    t.match(name, /^\d{4}-\d{2}-\d{2}-[a-z0-9-]+\.json$/)
    const result = JSON.parse(readFileSync(join(FOLDER, name), 'utf8')) as Record<string, unknown>
    t.match(result['date'], new RegExp(`^${name.slice(0, 10)}`), name)
    t.match(result['machine'], { cpu: /\w/, cores: Number }, name)
  }
})

t.test('the page is one page, and names each result it takes figures from', async (t) => {
  t.ok(Buffer.byteLength(README) < 12 * 1024, `${Buffer.byteLength(README)} bytes`)
  const linked = [...README.matchAll(/\]\(results\/([^)]+)\)/g)].flatMap(([, name]) => name ?? [])
  for (const name of linked) t.ok(names.includes(name), name)
  t.ok(linked.length > 0)
})
