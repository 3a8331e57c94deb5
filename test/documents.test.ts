// The documents that code cites, held against the tree: a path that they name is there, a section
// that is cited exists, and none outgrows its bound. It stands between ARCHITECTURE.md,
// cluster/PROTOCOL.md, docs/style.md and whoever moves or renames what they speak of.

import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'

const ROOT = join(import.meta.dirname, '..')
const KiB = 1024

interface Document {
  readonly path: string
  readonly bytesMax: number
  /** Folders, beside the root, from which it names files. */
  readonly from: readonly string[]
}

const PROTOCOL = 'cluster/PROTOCOL.md'
const ARCHITECTURE = 'ARCHITECTURE.md'

const DOCUMENTS: readonly Document[] = [
  {
    path: PROTOCOL,
    bytesMax: 110 * KiB,
    from: ['cluster', 'cluster/sharding', 'storage', 'storage/segment-log'],
  },
  {
    path: ARCHITECTURE,
    bytesMax: 20 * KiB,
    from: ['storage', 'cluster', 'cluster/sharding', 'node', 'config'],
  },
  { path: 'docs/style.md', bytesMax: 12 * KiB, from: ['config', 'protocol/graph'] },
]

/** No paths of the tree: names of files without their folder, and what only looks like a path. */
const NO_PATHS = new Set(['routes.ts', 'record-shapes.ts', 'evolve.ts', 'examples.ts', 'type/uuid'])

/** Where documents are cited. */
const FOLDERS = [
  ...['.', 'docs', 'protocol', 'config', 'commerce', 'storage', 'cluster', 'node', 'cli'],
  ...['bench', 'test'],
]

const textOf = (path: string): string => readFileSync(join(ROOT, path), 'utf8')

/** Paths in backticks: of a file by its ending, of a folder by its slash. */
function pathsIn(text: string): readonly string[] {
  const quoted = [...text.matchAll(/`([\w.@/-]+)`/g)].map(([, path]) => path!)
  return quoted.filter((path) => /^[\w-][\w.-]*\/.*$|\.(ts|mjs|md|cjs)$/.test(path))
}

function isThere(path: string, from: readonly string[]): boolean {
  return ['', ...from].some((folder) => existsSync(join(ROOT, folder, path)))
}

t.test('documents name files and folders that are there', async (t) => {
  for (const { path, from } of DOCUMENTS) {
    const named = pathsIn(textOf(path)).filter((one) => !NO_PATHS.has(one))
    t.ok(named.length > 5, `${path} names ${named.length} paths`)
    const missing = named.filter((one) => !isThere(one, [dirname(path), ...from]))
    t.strictSame(missing, [], `${path} names nothing that is not there`)
  }
})

t.test('documents stay within their bounds', async (t) => {
  for (const { path, bytesMax } of DOCUMENTS) {
    const bytes = Buffer.byteLength(textOf(path))
    t.ok(bytes < bytesMax, `${path} has ${bytes} of ${bytesMax} bytes`)
  }
})

/** The text of each section by its number: `3.6` of PROTOCOL, `4` of ARCHITECTURE. */
function sectionsOf(path: string): ReadonlyMap<string, string> {
  const parts = textOf(path).split(/^#{2,3} (?=\d)/m)
  const numbered = parts.slice(1).map((part) => [/^\d+(\.\d+)*/.exec(part)![0], part] as const)
  return new Map(numbered)
}

/** The section of a number, if there is one, with the step that the number's last part names. */
function isSection(sections: ReadonlyMap<string, string>, number: string): boolean {
  if (sections.has(number)) return true
  const dot = number.lastIndexOf('.')
  const section = dot < 0 ? undefined : sections.get(number.slice(0, dot))
  return section !== undefined && new RegExp(`^\\s*${number.slice(dot + 1)}\\. `, 'm').test(section)
}

/** Numbers behind a document's name: `PROTOCOL 3.6 "Wire", 3.10` has two. */
function citedIn(text: string, name: string): readonly string[] {
  const flat = text.replaceAll(/\n\s*(\/\/|\*|--|#)? ?/g, ' ')
  const pattern = new RegExp(
    `\\b${name}((?:[ ,]+(?:and )?(?:"[^"]*"|\\d+(?:\\.\\d+)+|\\d+\\b))+)`,
    'g',
  )
  return [...flat.matchAll(pattern)].flatMap(([, behind]) => {
    const numbers = behind!.replaceAll(/"[^"]*"[ ,]+\d+(?!\.\d)\b/g, '').replaceAll(/"[^"]*"/g, '')
    return numbers.match(/\d+(\.\d+)*/g) ?? []
  })
}

t.test('a section that is cited exists', async (t) => {
  const files = FOLDERS.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: folder !== '.', encoding: 'utf8' })
      .filter((name) => /\.(ts|mjs|md|cql)$/.test(name))
      .map((name) => join(folder, name)),
  )
  const counts = { PROTOCOL: 0, ARCHITECTURE: 0 }
  for (const [name, document] of [
    ['PROTOCOL', PROTOCOL],
    ['ARCHITECTURE', ARCHITECTURE],
  ] as const) {
    const sections = sectionsOf(document)
    const missing = files.flatMap((path) => {
      const cited = citedIn(textOf(path), name)
      counts[name] += cited.length
      return cited
        .filter((number) => !isSection(sections, number))
        .map((number) => `${path}: ${name} ${number}`)
    })
    t.strictSame(missing, [])
  }
  t.ok(counts.PROTOCOL > 100 && counts.ARCHITECTURE > 30, JSON.stringify(counts))
})
