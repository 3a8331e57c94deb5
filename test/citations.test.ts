// Every citation leads somewhere: what code and documents name of the documents in the tree, of
// READMEs and of the specification is a heading there. A citation is a document's name with its
// section (as in `NAME 3.2`), or with headings in quotes; links of documents lead to files.

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'

const ROOT = join(import.meta.dirname, '..')
const OWN = 'test/citations.test.ts'
const HEADINGS = 'test/spec/headings.txt'
/** Where the specification lies beside a checkout that has one. */
const SPECIFICATION = join(ROOT, '../shared/spec.md')

/** Documents whose sections have numbers. */
const NUMBERED: Readonly<Record<string, string>> = {
  ARCHITECTURE: 'ARCHITECTURE.md',
  CONTRACT: 'protocol/CONTRACT.md',
  PROTOCOL: 'cluster/PROTOCOL.md',
}
/** Documents that are not in the tree: nobody who has it can look there. */
const ELSEWHERE = ['COMMERCE', 'RESEARCH', 'STORE', 'STYLE']

interface Section {
  /** Number where it has one: `3.2`, `Appendix A`. */
  readonly number: string
  readonly title: string
  /** With all that is below it. */
  readonly text: string
}

function sectionsOf(text: string): readonly Section[] {
  const found = [...text.matchAll(/^(#+) +(.+)$/gm)]
  return found.map(({ 1: marks = '', 2: heading = '', index }) => {
    const next = found.find((other) => other.index > index && other[1]!.length <= marks.length)
    const { number = '', title = heading } =
      /^(?<number>\d+(?:\.\d+)*|Appendix [A-Z])\.? +(?<title>.+)$/.exec(heading)?.groups ?? {}
    return { number, title, text: text.slice(index, next?.index) }
  })
}

/** What is the same to a reader: without marks, breaks and capitals. */
function plain(text: string): string {
  return text.replaceAll(/[*_`]/g, '').replaceAll(/\s+/g, ' ').toLowerCase()
}

/** A title may be cited without what stands behind it in parentheses. */
function isTitle(title: string, cited: string): boolean {
  return title === cited || title.replace(/ \([^()]*\)$/, '') === cited
}

const PLACE = String.raw`(?:Appendix [A-Z]|\d+(?:\.\d+)*)(?:-\d+(?:\.\d+)*)?`
const LABEL = String.raw`"[^"]+"`
const ASIDE = String.raw`(?: \([^()]*\))?`
/** What may follow in a list: another section, or another heading of the same one. */
const FURTHER = String.raw`(?:(?:[,;](?: and)?| and) ${PLACE}|[,;]?(?: and)? ${LABEL})${ASIDE}`
const NUMBERS = new RegExp(
  String.raw`\b(${Object.keys(NUMBERED).join('|')})(?:\.md)?,?(?: section)? ` +
    String.raw`(${PLACE}${ASIDE}(?:${FURTHER})*)`,
  'g',
)
const LABELS = new RegExp(
  String.raw`((?:[\w-]+/)*README(?:\.md)?|\b[Ss]pec(?:ification)?) ` +
    String.raw`(${LABEL}(?:,? (?:and )?${LABEL})*)`,
  'g',
)
const GONE = new RegExp(String.raw`\b(${ELSEWHERE.join('|')})(?:\.md\b|,? (?:\d|"|section))`, 'g')

interface Tree {
  /** Text of a file; null: there is none. */
  readonly read: (path: string) => string | null
  /** Headings of the specification. */
  readonly headings: readonly string[]
}

/** What is wrong with the citations of one file. */
function faultsOf(path: string, source: string, tree: Tree): string[] {
  const faults: string[] = []
  const text = source
    // A comment's lines belong together, and a link says what it shows.
    .replaceAll(/\n\s*(?:\/\/|\*(?!\/)|#|--) ?/g, ' ')
    .replaceAll(/\[([^\]\n]+)\]\([^)\s]+\)/g, '$1')
    .replaceAll(/\s+/g, ' ')
  for (const [, name = '', places = ''] of text.matchAll(NUMBERS)) {
    faults.push(...faultsOfPlaces(name, places, tree))
  }
  for (const [, name = '', labels = ''] of text.matchAll(LABELS)) {
    const isReadme = name.includes('README')
    const readme = isReadme ? tree.read(name.replace(/(\.md)?$/, '.md')) : ''
    if (readme === null) faults.push(`there is no ${name}`)
    const titles = isReadme ? sectionsOf(readme ?? '').map(({ title }) => title) : tree.headings
    for (const [, label = ''] of labels.matchAll(/"([^"]+)"/g)) {
      if (!titles.some((title) => isTitle(title, label))) faults.push(`${name} has no "${label}"`)
    }
  }
  for (const [, name = ''] of text.matchAll(GONE)) faults.push(`${name} is not in the tree`)
  if (path.endsWith('.md')) {
    for (const [, link = ''] of source.matchAll(/\]\((?!\w+:|#)([^)\s#]+)[^)]*\)/g)) {
      if (tree.read(join(dirname(path), link)) === null) faults.push(`there is no ${link}`)
    }
  }
  return faults.map((fault) => `${path}: ${fault}`)
}

function faultsOfPlaces(name: string, places: string, tree: Tree): string[] {
  const sections = sectionsOf(tree.read(NUMBERED[name]!) ?? '')
  const faults: string[] = []
  let within = ''
  const cited = new RegExp(`(${PLACE})${ASIDE}|(${LABEL})`, 'g')
  for (const [, place, label] of places.matchAll(cited)) {
    if (place === undefined) {
      if (!plain(within).includes(plain(label!.slice(1, -1)))) {
        faults.push(`${name} has no ${label} where it is cited`)
      }
      continue
    }
    const { first = '', last } = /^(?<first>[^-]+)(?:-(?<last>.+))?$/.exec(place)!.groups!
    const parent = first.replace(/\.?\d+$/, '')
    const until = last?.includes('.') ? last : last && `${parent}.${last}`
    for (const end of until === undefined ? [first] : [first, until]) {
      const text = textOf(end, sections)
      if (text === null) faults.push(`${name} has no ${end}`)
      within = text ?? ''
    }
  }
  return faults
}

/** Text of a section, or of the one whose numbered step this is. */
function textOf(number: string, sections: readonly Section[]): string | null {
  const own = sections.find((section) => section.number === number)
  if (own !== undefined) return own.text
  const step = /\.(\d+)$/.exec(number)
  if (step === null) return null
  const around = sections.find((section) => section.number === number.slice(0, step.index))
  const isThere = around !== undefined && new RegExp(`^ *${step[1]}\\. `, 'm').test(around.text)
  return isThere ? around.text : null
}

function read(path: string): string | null {
  const file = join(ROOT, path)
  return existsSync(file) ? readFileSync(file, { encoding: 'utf8' }) : null
}

/** Files of the project that people write, by their paths. */
function written(): string[] {
  const folders = readdirSync(ROOT, { withFileTypes: true }).filter((entry) => {
    return entry.isDirectory() && !['node_modules', 'data', 'coverage'].includes(entry.name)
  })
  const inFolders = folders
    .filter(({ name }) => !name.startsWith('.'))
    .flatMap(({ name }) =>
      readdirSync(join(ROOT, name), { recursive: true, encoding: 'utf8' }).map((path) =>
        join(name, path),
      ),
    )
  return [...inFolders, ...readdirSync(ROOT)].filter((path) => {
    return /\.(ts|mjs|cjs|cql|md|ya?ml)$|Dockerfile$/.test(path) && path !== OWN
  })
}

const HEADINGS_OF_TREE = (read(HEADINGS) ?? '').trimEnd().split('\n')

t.test('every citation leads to a heading that is there', async (t) => {
  const paths = written()
  t.ok(paths.length > 500, `${paths.length} files`)
  const tree = { read: (path: string) => folderOr(path), headings: HEADINGS_OF_TREE }
  t.strictSame(
    paths.flatMap((path) => faultsOf(path, read(path)!, tree)),
    [],
  )
})

/** A link may lead to a folder. */
function folderOr(path: string): string | null {
  return /\.\w+$/.test(path) ? read(path) : existsSync(join(ROOT, path)) ? '' : null
}

t.test('the list of headings is that of the specification', async (t) => {
  t.ok(HEADINGS_OF_TREE.length > 20)
  // A clone by itself has no specification beside it.
  if (!existsSync(SPECIFICATION)) return
  const titles = sectionsOf(readFileSync(SPECIFICATION, 'utf8')).map(({ title }) => title)
  t.strictSame(HEADINGS_OF_TREE, titles)
})

const PLANTED: Tree = {
  headings: ['OAuth (base path `/oauth`)', 'Graph'],
  read: (path) =>
    ({
      'cluster/PROTOCOL.md':
        '# It\n## 3. All\n### 3.1 One\n**Edge:** at\n1. a\n2. b\n### 3.2 Two\nx\n',
      'protocol/CONTRACT.md': '# It\n## 0. Every\n- **Slow readers**: x\n## Appendix A. Words\n',
      'shop/README.md': '# Shop\n## Totals\n## Graph\n',
    })[path] ?? null,
}
/** Put together here, so that what is planted is no citation of this file. */
const [A, C, P] = ['ARCHITECTURE', 'CONTRACT', 'PROTOCOL']
const faults = (text: string, path = 'a.ts'): string[] => faultsOf(path, text, PLANTED)

t.test('what is there is found, however it is written', async (t) => {
  for (const text of [
    `${P} 3.1 "Edge", 3.2; ${C} 0 "Slow readers", Appendix A.`,
    `${P}\n// 3.1.`,
    `/**\n * ${P} 3.1 (the first),\n * 3.2.\n */`,
    `${P} 3.1.2, ${P} 3.1-3.2, ${P} 3.1.1-2`,
    'shop/README.md "Totals", "Graph"; specification "OAuth", "Graph".',
    `cluster/${P}.md section 3.1`,
    'const STYLE = `a`; STORE.get(1)',
  ]) {
    t.strictSame(faults(text), [], text)
  }
  t.strictSame(faults(`[P](cluster/${P}.md) [x](https://x.y) [z](#z)`, 'b.md'), [])
})

t.test('what is not there is told', async (t) => {
  for (const [text, fault] of [
    [`${P} 3.3.`, `${P} has no 3.3`],
    [`${P} 3.1, 9.`, `${P} has no 9`],
    [`${P} 3.1\n// and 4.`, `${P} has no 4`],
    [`${P} 3.1.3`, `${P} has no 3.1.3`],
    [`${P} 3.1-3.4`, `${P} has no 3.4`],
    [`${P} 3.1.1-3`, `${P} has no 3.1.3`],
    [`${P} 3.2 "Edge"`, `${P} has no "Edge" where it is cited`],
    [`${C} 0 "Slow readers", "Quick"`, `${C} has no "Quick" where it is cited`],
    [`${C} 0, Appendix B`, `${C} has no Appendix B`],
    [`${A} 1`, `${A} has no 1`],
    ['shop/README.md "Totals", "Taxes"', 'shop/README.md has no "Taxes"'],
    ['sale/README "Totals"', 'there is no sale/README'],
    ['specification "Grants"', 'specification has no "Grants"'],
    ['COMMERCE 5 row 2', 'COMMERCE is not in the tree'],
    ['STORE.md says', 'STORE is not in the tree'],
    ['STYLE "Names"', 'STYLE is not in the tree'],
  ] as const) {
    t.match(faults(text), [`a.ts: ${fault}`], text)
  }
  t.strictSame(faults(`[P](${P}.md)`, 'b.md'), [`b.md: there is no ${P}.md`])
})
