// What of the installed packages is never used here: binaries for other systems and, in an image,
// what only people and tools read. npm brings all of it. Plain JavaScript without packages.
//
//     node tools/set-up/lean.mjs     for an image, once the program is packed

import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Of Node 22, which runs the program whatever Node sets it up. */
const ABI = '127'

const { platform, arch } = process
const OWN_UWS = `uws_${platform}_${arch}_${ABI}.node`

/** @param {string} root */
function uwsFolder(root) {
  return join(root, 'node_modules', 'uWebSockets.js', 'dist', 'bin')
}

/** @param {string} folder */
function binaries(folder) {
  return existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.node')) : []
}

/**
 * Keeps the one binary of uWebSockets.js that runs here, of 136 MB for all systems. Where there is
 * none, all are left: what loads them says what is wrong.
 *
 * @param {string} root folder of the project
 */
export function keepOwnBinary(root) {
  const folder = uwsFolder(root)
  const found = binaries(folder)
  if (!found.includes(OWN_UWS)) return
  for (const name of found) if (name !== OWN_UWS) rmSync(join(folder, name))
}

/**
 * True where the packages were installed for another system, which kept its own binary: a folder
 * that a container and its host share.
 *
 * @param {string} root
 */
export function hasForeignBinary(root) {
  const [only, ...others] = binaries(uwsFolder(root))
  return only !== undefined && others.length === 0 && only !== OWN_UWS
}

/** Packages of the tools that make the program, and of Node itself, which an image has already. */
const TOOLS = /^(esbuild|@esbuild|node-(bin-)?(linux|darwin)-.+|\.bin)$/
/** Types, source maps and texts for people; not licences. */
const FOR_PEOPLE = /\.(d\.[mc]?ts|map|md|markdown)$/i
/** Packages of which a page is served, and no module loaded: what is served of each. */
const SERVED = new Map([
  ['graphiql', /^(graphiql\.min\.(js|css)|package\.json|LICENSE)$/],
  ['react', /^(umd|package\.json|LICENSE)$/],
  ['react-dom', /^(umd|package\.json|LICENSE)$/],
])

/**
 * Leaves what a packed program needs, and the commands of cli/ beside it.
 *
 * @param {string} root
 */
export function leanForImage(root) {
  keepOwnBinary(root)
  const modules = join(root, 'node_modules')
  for (const name of readdirSync(modules)) {
    if (TOOLS.test(name)) rmSync(join(modules, name), { recursive: true })
  }
  keepOwnLmdb(modules)
  keepServed(root)
  const files = readdirSync(modules, { recursive: true, withFileTypes: true })
  for (const file of files) {
    if (file.isFile() && FOR_PEOPLE.test(file.name)) rmSync(join(file.parentPath, file.name))
  }
}

/** @typedef {{ dependencies?: object, optionalDependencies?: object }} Installed */

/**
 * Of a page's packages what is served stays, and nothing of what their bundles were made of.
 *
 * @param {string} root
 */
function keepServed(root) {
  const lock = join(root, 'package-lock.json')
  const modules = join(root, 'node_modules')
  for (const [name, served] of SERVED) {
    const folder = join(modules, name)
    const entries = existsSync(folder) ? readdirSync(folder) : []
    for (const entry of entries) {
      if (!served.test(entry)) rmSync(join(folder, entry), { recursive: true })
    }
  }
  if (!existsSync(lock)) return
  /** @type {{ packages: Record<string, Installed> }} */
  const { packages } = JSON.parse(readFileSync(lock, 'utf8'))
  const needed = new Set(SERVED.keys())
  const from = ['']
  for (const name of from) {
    const { dependencies, optionalDependencies } =
      packages[name === '' ? '' : `node_modules/${name}`] ?? {}
    for (const next of Object.keys({ ...dependencies, ...optionalDependencies })) {
      if (needed.has(next)) continue
      needed.add(next)
      from.push(next)
    }
  }
  for (const path of Object.keys(packages)) {
    const name = path.replace('node_modules/', '')
    // What lies in another package's folder goes with that.
    if (name === '' || name.includes('node_modules/') || needed.has(name)) continue
    rmSync(join(modules, name), { recursive: true, force: true })
  }
}

/**
 * lmdb has a binary for each ABI and C library; one for this ABI is loaded before any other.
 *
 * @param {string} modules
 */
function keepOwnLmdb(modules) {
  const folder = join(modules, '@lmdb', `lmdb-${platform}-${arch}`)
  const found = binaries(folder)
  const own = found.filter((name) => name.startsWith(`node.abi${ABI}.`))
  if (own.length === 0) return
  for (const name of found) if (!own.includes(name)) rmSync(join(folder, name))
}

const self = fileURLToPath(import.meta.url)
if (process.argv[1] === self) leanForImage(join(dirname(self), '..', '..'))
