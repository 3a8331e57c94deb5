// Real engines on this machine, without containers: `npm run engines -- start | stop | status`. For
// a developer who wants a Cassandra, an Elasticsearch or a Redis; the recipes of tools/engines
// fetch and start them.
//
//     npm run engines -- start                     all three, on free ports
//     npm run engines -- start redis --port 6379   one, on that port
//     npm run engines -- status
//     npm run engines -- stop [--purge]            --purge removes their data, too
//     npm run engines -- prepare                   only fetches them
//
// Options: --dir FOLDER (default data/engines), --heap 512m, --optimize (for long runs), --fresh.

import { rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { ENGINES } from '../tools/engines/engines.mjs'
import { running, start, stop } from '../tools/engines/server-process.mjs'
import { ROOT } from '../tools/set-up/set-up.mjs'

const OPTIONS = /** @type {const} */ ({
  dir: { type: 'string' },
  port: { type: 'string' },
  heap: { type: 'string' },
  optimize: { type: 'boolean', default: false },
  fresh: { type: 'boolean', default: false },
  purge: { type: 'boolean', default: false },
})

/** @typedef {import('../tools/engines/server-process.mjs').Engine} Engine */

/**
 * @typedef {object} Values
 * @property {string} [port]
 * @property {string} [heap]
 * @property {boolean} optimize
 * @property {boolean} fresh
 * @property {boolean} purge
 */

/** @type {Record<string, (engine: Engine, dir: string, values: Values) => Promise<void>>} */
const VERBS = {
  start: async (engine, dir, { port, heap, optimize, fresh }) => {
    const more = { ...(port && { port: Number(port) }), ...(heap && { heap }) }
    show(engine, await start(engine, { dir, optimize, fresh, ...more }))
  },
  stop: async (engine, dir, { purge }) => {
    await stop(engine, dir)
    if (purge) rmSync(dir, { recursive: true, force: true })
    show(engine, null)
  },
  status: async (engine, dir) => show(engine, running(engine, dir)),
  prepare: (engine) => engine.prepare(),
}

async function main() {
  const { values, positionals } = parseArgs({ options: OPTIONS, allowPositionals: true })
  const [verb = '', ...names] = positionals
  const root = values.dir === undefined ? join(ROOT, 'data', 'engines') : resolve(values.dir)
  const act = VERBS[verb]
  const engines = enginesNamed(names)
  if (act === undefined || engines === null) {
    throw new Error(
      `usage: npm run engines -- ${Object.keys(VERBS).join('|')} ` +
        `[${Object.keys(ENGINES).join('|')} ...] [--dir FOLDER] [--port N] [--heap 512m] ` +
        '[--optimize] [--fresh] [--purge]',
    )
  }
  if (values.port !== undefined && names.length !== 1) {
    throw new Error('--port goes with one engine')
  }
  await Promise.all(engines.map((engine) => act(engine, join(root, engine.name), values)))
}

/**
 * @param {readonly string[]} names none: all of them
 * @returns {readonly Engine[] | null} null: there is none of such a name
 */
function enginesNamed(names) {
  const all = Object.values(ENGINES)
  if (names.length === 0) return all
  const named = all.filter(({ name }) => names.includes(name))
  return names.every((name) => named.some((engine) => engine.name === name)) ? named : null
}

/**
 * @param {Engine} engine
 * @param {import('../tools/engines/server-process.mjs').Running | null} info
 */
function show({ name }, info) {
  const state = info === null ? 'not running' : `${info.host}:${info.port}`
  const more = info === null ? '' : `  ${info.version}, process ${info.pid}, ${info.dir}`
  process.stdout.write(`${name.padEnd(14)} ${state}${more}\n`)
}

main().catch((error) => {
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 1
})
