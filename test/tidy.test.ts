// The style of the house as a test: what it asks of every file and no tool checks.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'

const ROOT = join(import.meta.dirname, '..')
const FOLDERS = [
  'protocol',
  'config',
  'commerce',
  'storage',
  'cluster',
  'node',
  'tools',
  'cli',
  'bench',
  'test',
  'examples',
]

const LINES_MAX = 400
/** Files that are longer still, with the bound of each. */
const LONGER: Readonly<Record<string, number>> = {
  'cluster/placement/placement.ts': 425,
  'commerce/order/order.test.ts': 500,
  'node/http/exchange.ts': 500,
}
const WIDTH_MAX = 100

const FOLDER_FILES_MAX = 20
/** Folders that are a list, with what of: they may have more. */
const OF_A_KIND: Readonly<Record<string, string>> = {
  'test/simulation/directed': 'schedules that prove one rule each',
}

interface Source {
  readonly path: string
  readonly text: string
  readonly lines: readonly string[]
}

function sources(): Source[] {
  return FOLDERS.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && /\.(ts|mjs)$/.test(entry.name))
      .map((entry) => {
        const path = join(entry.parentPath, entry.name)
        const text = readFileSync(path, 'utf8')
        return { path: path.slice(ROOT.length + 1), text, lines: text.split('\n') }
      }),
  )
}

const ALL = sources()
/** Pure code: no clock, chance or waiting of its own. */
const PURE = ALL.filter(
  ({ path }) => /^(protocol|commerce)\//.test(path) && !path.endsWith('.test.ts'),
)

/** `path:line: text` of every line of `files` that matches. */
function linesWith(pattern: RegExp, files: readonly Source[] = ALL): string[] {
  return files.flatMap(({ path, lines }) =>
    lines.flatMap((line, i) => (pattern.test(line) ? [`${path}:${i + 1}: ${line.trim()}`] : [])),
  )
}

function pathsWhere(isWrong: (source: Source) => boolean): string[] {
  return ALL.filter(isWrong).map(({ path }) => path)
}

/** Words are put together here, so that this file doesn't find itself. */
const words = (...parts: string[]) => parts.join('')

t.test('there is something to look at', async (t) => {
  t.ok(ALL.length > 50, `${ALL.length} files`)
  t.ok(PURE.length > 10, `${PURE.length} pure files`)
})

t.test('a file opens with a comment that says what it is', async (t) => {
  const opensWithComment = /^(#!.*\n)?(\/\/ \S|\/\*\*?\s)/
  t.strictSame(
    pathsWhere(({ text }) => !opensWithComment.test(text)),
    [],
  )
})

t.test(
  `a file has at most ${LINES_MAX} lines, comments of at most ${WIDTH_MAX} characters`,
  async (t) => {
    t.strictSame(
      pathsWhere(({ path, lines }) => lines.length > (LONGER[path] ?? LINES_MAX) + 1),
      [],
    )
    t.strictSame(
      Object.keys(LONGER).filter((path) => {
        const source = ALL.find((one) => one.path === path)
        return source === undefined || source.lines.length <= LINES_MAX + 1
      }),
      [],
      'whoever is short enough, or gone, leaves the list',
    )
    // Code is oxfmt's matter, which leaves long texts alone; comments nobody else looks at.
    t.strictSame(linesWith(new RegExp(`^(?=.{${WIDTH_MAX + 1}})\\s*(//|/?\\*)`, 'u')), [])
  },
)

t.test('names are kebab-case, and no folder is a drawer for odds and ends', async (t) => {
  const kebab = /^[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9]+)*$/
  const drawers = ['utils', 'util', 'helpers', 'common', 'misc', 'shared', 'lib']
  const parts = ({ path }: Source) => path.split('/')
  t.strictSame(
    pathsWhere((source) => parts(source).some((part) => !kebab.test(part))),
    [],
  )
  t.strictSame(
    pathsWhere((source) => parts(source).some((part) => drawers.includes(part.split('.')[0]!))),
    [],
  )
})

t.test(
  `a folder has at most ${FOLDER_FILES_MAX} files beside tests, or all are of a kind`,
  async (t) => {
    const counts = new Map<string, number>()
    for (const { path } of ALL) {
      if (/\.(test|faults)\.ts$/.test(path)) continue
      const folder = path.slice(0, path.lastIndexOf('/'))
      counts.set(folder, (counts.get(folder) ?? 0) + 1)
    }
    const large = [...counts].filter(([, count]) => count > FOLDER_FILES_MAX)
    t.strictSame(large.map(([folder]) => folder).toSorted(), Object.keys(OF_A_KIND).toSorted())
  },
)

t.test('nothing is left to do', async (t) => {
  t.strictSame(linesWith(new RegExp(words('(//|\\*).*\\b(TO', 'DO|FIX', 'ME|HA', 'CK)\\b'))), [])
})

t.test('nothing names a path of a machine', async (t) => {
  const machine = words('(^|[^\\w.])/(ro', 'ot|ho', 'me/\\w+|Us', 'ers/\\w+|wo', 'rk)/')
  t.strictSame(linesWith(new RegExp(machine)), [])
})

t.test(
  'protocol and commerce take clock and chance from their caller, and never wait',
  async (t) => {
    const own = [
      'Date\\.now\\(',
      'new Date\\(\\)',
      'performance\\.now\\(',
      'Math\\.random\\(',
      'randomUUID\\(',
      'randomBytes\\(',
      'setTimeout\\(',
      'setInterval\\(',
    ]
    t.strictSame(linesWith(new RegExp(`(^|[^\\w/*])(${own.join('|')})`), PURE), [])
  },
)

t.test('plain JavaScript runs on every Node that a clone may be set up by', async (t) => {
  const { engines } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    engines: { node: string }
  }
  t.equal(engines.node, '>=18')
  const plain = ALL.filter(({ path }) => path.endsWith('.mjs'))
  t.ok(plain.length > 10, `${plain.length} files`)
  const later =
    /(?<!')import\.meta\.(dirname|filename|main)|\.to(Sorted|Reversed|Spliced)\(|\.with\(/
  t.strictSame(linesWith(later, plain), [], 'what came after Node 18')
})

t.test('a rule of the linter is put off for one line at a time, with a reason', async (t) => {
  const disabled = linesWith(/(oxlint|eslint)-disable/)
  const unexplained = disabled.filter((line) => !/-disable-(next-)?line \S.* -- \S/.test(line))
  t.strictSame(
    unexplained.filter((line) => !line.startsWith('test/tidy')),
    [],
  )
})

t.test('the lock file names the packages of every platform, or npm ci refuses it', async (t) => {
  const lock = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { optionalDependencies?: Record<string, string>; resolved?: string }>
  }
  const missing: string[] = []
  for (const [path, { optionalDependencies = {} }] of Object.entries(lock.packages)) {
    for (const name of Object.keys(optionalDependencies)) {
      const places = [`${path}/node_modules/${name}`, `node_modules/${name}`]
      if (!places.some((place) => place in lock.packages)) missing.push(`${path}: ${name}`)
    }
  }
  t.strictSame(missing, [])
  const addressed = Object.keys(lock.packages).filter((path) => lock.packages[path]!.resolved)
  t.strictSame(addressed, [], 'no download address')
})
