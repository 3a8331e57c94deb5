// The documents that code cites, held against the tree: a path that they name is there, and none
// outgrows its bound. Whoever moves or renames what they speak of finds out here. Their sections:
// citations.test.ts.

import { existsSync, readFileSync } from 'node:fs'
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
    from: ['cluster', 'cluster/sharding', 'storage', 'storage/segment-log', 'test/cluster'],
  },
  {
    path: ARCHITECTURE,
    bytesMax: 20 * KiB,
    from: ['storage', 'cluster', 'cluster/sharding', 'node', 'config', 'tools'],
  },
  { path: 'SECURITY.md', bytesMax: 10 * KiB, from: [] },
  { path: 'docs/style.md', bytesMax: 16 * KiB, from: ['config', 'protocol/graph'] },
]

/** No paths of the tree: names of files without their folder, and what only looks like a path. */
const NO_PATHS = new Set(['routes.ts', 'record-shapes.ts', 'evolve.ts', 'examples.ts', 'type/uuid'])

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
