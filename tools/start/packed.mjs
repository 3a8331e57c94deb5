// The packed program: node/main.ts with all that it imports, its packages too, in a few files of
// plain JavaScript beside the packages. Loading a thousand modules and stripping types is most of a
// node's start (1.3 s of CPU; packed 0.3), and a member that comes back after a crash is waited
// for. The sources stay what is worked on: who finds nothing packed, or sources that have changed
// since, runs the sources. Plain JavaScript, for it runs before anything can be loaded quickly.
//
//     node tools/start/packed.mjs     packs, for an image

import { createHash, randomUUID } from 'node:crypto'
import {
  existsSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { ROOT } from '../set-up/set-up.mjs'

/** What a process or a thread begins with, and what is imported by its name. */
const ENTRIES = [
  'node/main.ts',
  'node/behaviours.ts',
  'node/indexing/embedded/index-worker.ts',
  'node/graph/plans/reader-worker.ts',
  'node/membership/beat-worker.ts',
]

/** Packages that load files of their own: native ones, and the log's, which may start threads. */
const APART = ['uWebSockets.js', 'lmdb', 'pino', '@node-rs/argon2']

/** Packed programs that are kept: nodes that run may still begin threads from them. */
const KEPT = 3

/** Packages in the older format ask for what is Node's own by this. */
const REQUIRE =
  "import { createRequire as $require } from 'node:module'; const require = $require(import.meta.url)"

const MANIFEST = 'manifest.json'

/**
 * @typedef {object} Manifest
 * @property {string} main path of the packed `node/main.ts`
 * @property {readonly string[]} files that it was packed from
 * @property {string} hash of what they held
 */

/** @param {string} root folder of the project */
function folderOf(root) {
  // Clones may share their packages.
  const name = createHash('sha256').update(root).digest('hex').slice(0, 12)
  return join(root, 'node_modules', '.cache', `kontor-${name}`)
}

/**
 * @param {string} [root]
 * @returns {string | null} URL of the packed `node/main.ts`; null: there is none of these sources
 */
export function packedMain(root = ROOT) {
  try {
    /** @type {Manifest} */
    const { main, files, hash } = JSON.parse(readFileSync(join(folderOf(root), MANIFEST), 'utf8'))
    const isSame = hashOf(root, files) === hash
    return isSame && existsSync(main) ? pathToFileURL(main).href : null
  } catch {
    return null
  }
}

/**
 * Of what these files hold: their times change with every copy of a folder.
 *
 * @param {string} root
 * @param {readonly string[]} files
 */
function hashOf(root, files) {
  const hash = createHash('sha1')
  for (const file of files) {
    hash.update(`${file}\0`)
    hash.update(readFileSync(join(root, file)))
  }
  return hash.digest('hex')
}

/**
 * Packs the sources unless they are packed already. It needs the packages, and about a second.
 *
 * @param {string} [root]
 * @returns {Promise<string | null>} why it could not be done; null: it is there
 */
export async function pack(root = ROOT) {
  if (packedMain(root) !== null) return null
  try {
    await write(root)
    return null
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

/** @param {string} root */
async function write(root) {
  const { build } = await import('esbuild')
  const folder = folderOf(root)
  const name = randomUUID()
  const outdir = join(folder, name)
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: ENTRIES,
    outdir,
    outbase: root,
    bundle: true,
    splitting: true,
    platform: 'node',
    target: 'node22',
    format: 'esm',
    external: APART,
    metafile: true,
    logLevel: 'silent',
    banner: { js: REQUIRE },
    plugins: [places(root, outdir)],
  })
  writeFileSync(join(outdir, 'package.json'), '{"type":"module"}\n')
  const inputs = Object.keys(metafile.inputs).filter((file) => !file.includes('node_modules'))
  const files = [...inputs, 'package-lock.json']
  /** @type {Manifest} */
  const manifest = { main: join(outdir, 'node', 'main.js'), files, hash: hashOf(root, files) }
  const partly = join(folder, `${name}.json`)
  writeFileSync(partly, JSON.stringify(manifest))
  renameSync(partly, join(folder, MANIFEST))
  tidy(folder)
}

/**
 * A source that asks where it is means its own folder; another entry is meant as it is packed.
 *
 * @param {string} root
 * @param {string} outdir
 * @returns {import('esbuild').Plugin}
 */
function places(root, outdir) {
  return {
    name: 'places',
    setup(build) {
      build.onLoad({ filter: /\.ts$/ }, ({ path }) => {
        if (path.includes(`${sep}node_modules${sep}`)) return undefined
        const text = readFileSync(path, 'utf8')
        if (!text.includes('import.meta')) return undefined
        const contents = text
          .replaceAll(/new URL\('(\.[^']+\.ts)', import\.meta\.url\)/g, (all, file) => {
            const entry = relative(root, resolve(dirname(path), file))
            if (!ENTRIES.includes(entry.split(sep).join('/'))) return all
            const packed = join(outdir, entry.replace(/\.ts$/, '.js'))
            return `new URL(${JSON.stringify(pathToFileURL(packed).href)})`
          })
          .replaceAll('import.meta.url', JSON.stringify(pathToFileURL(path).href))
          .replaceAll('import.meta.dirname', JSON.stringify(dirname(path)))
        return { contents, loader: 'ts' }
      })
    },
  }
}

/** @param {string} folder */
function tidy(folder) {
  const packed = readdirSync(folder, { withFileTypes: true })
    .filter((one) => one.isDirectory())
    .map(({ name }) => ({ name, madeMs: statSync(join(folder, name)).mtimeMs }))
    .sort((a, b) => b.madeMs - a.madeMs)
  for (const { name } of packed.slice(KEPT))
    rmSync(join(folder, name), { recursive: true, force: true })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const unpacked = await pack()
  if (unpacked !== null) {
    process.stderr.write(`${unpacked}\n`)
    process.exitCode = 1
  }
}
