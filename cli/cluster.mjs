// A whole cluster on this machine, without containers: `npm run cluster` starts Redis, Cassandra,
// Elasticsearch and three nodes, prints where they are and lines to paste, and stops all of them on
// Ctrl-C. Its data stay in data/cluster: started again it goes on with what it had. The recipes of
// tools/engines start the engines.

import { randomBytes } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import {
  endFormerRun,
  forgetRun,
  launchNode,
  noteRun,
  ready,
  send,
  stopNodes,
} from './cluster-nodes.mjs'
import { ENGINES } from '../tools/engines/engines.mjs'
import { readText, start, stop } from '../tools/engines/server-process.mjs'
import { pack } from '../tools/start/packed.mjs'
import { ROOT, setUp } from '../tools/set-up/set-up.mjs'

const NODES_MAX = 16
const HELP = `Usage: npm run cluster -- [--nodes 3] [--port 8081] [--dir FOLDER] [--heap 1g]

Starts Redis, Cassandra, Elasticsearch and nodes of Kontor on this machine, prints where they are, and
stops all of them on Ctrl-C. Started again it goes on with its data.

  --nodes  how many, 1 to ${NODES_MAX}
  --port   of the first node; the next ones follow
  --dir    where everything is kept; data/cluster unless given
  --heap   of each Java engine
`
/** What Cassandra calls its data centre when nobody has named it. */
const DATACENTER = 'datacenter1'

/** @typedef {import('./cluster-nodes.mjs').Node} Node */
/** @typedef {{ nodes: number, port: number, dir: string, heap: string }} Options */
/** @typedef {keyof typeof ENGINES} EngineName */
/** @typedef {Record<EngineName, string>} Addresses `host:port` of each engine */

/**
 * @typedef {object} Cluster
 * @property {Options} options
 * @property {Node[]} nodes
 * @property {Promise<void> | null} stopping null: it is to run
 */

async function main() {
  const options = readOptions()
  if (options === null) {
    process.stdout.write(HELP)
    return
  }
  const { dir } = options
  mkdirSync(dir, { recursive: true })
  await endFormerRun(dir)
  noteRun(dir, [])
  /** @type {Cluster} */
  const cluster = { options, nodes: [], stopping: null }
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(name, () => interrupted(cluster))
  }
  try {
    await bringUp(cluster)
  } catch (error) {
    // Who stops it while it starts breaks off what is under way.
    if (cluster.stopping) return
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
    process.exitCode = 1
    await end(cluster)
  }
}

/** @returns {Options | null} null: asked for help */
function readOptions() {
  const { values } = parseArgs({
    options: {
      nodes: { type: 'string', default: '3' },
      port: { type: 'string', default: '8081' },
      dir: { type: 'string' },
      heap: { type: 'string', default: '1g' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return null
  const nodes = Number(values.nodes)
  if (!Number.isInteger(nodes) || nodes < 1 || nodes > NODES_MAX) {
    throw new Error(`--nodes: must be a number from 1 to ${NODES_MAX}`)
  }
  const port = Number(values.port)
  if (!Number.isInteger(port) || port < 1 || port > 65_535 - NODES_MAX) {
    throw new Error(`--port: must be a number from 1 to ${65_535 - NODES_MAX}`)
  }
  const dir = values.dir === undefined ? join(ROOT, 'data', 'cluster') : resolve(values.dir)
  return { nodes, port, dir, heap: values.heap }
}

/** @param {Cluster} cluster */
async function bringUp(cluster) {
  const { options, nodes } = cluster
  const { node, env } = await setUp({ root: ROOT })
  const unpacked = await pack()
  if (unpacked !== null) say(`Nodes start from their sources: ${unpacked}`)
  say('Starting Redis, Cassandra and Elasticsearch (fetched the first time: about 1 GB) ...')
  const engines = await startEngines(options)
  if (cluster.stopping) return
  const settingsFile = join(options.dir, 'settings.json')
  writeSettings(settingsFile, engines)
  say(`Starting ${options.nodes} nodes ...`)
  const launch = { node, env: cleared(env), root: ROOT, dir: options.dir, settingsFile }
  /** @type {import('./cluster-nodes.mjs').OnEnd} */
  const onEnd = (name, how) => {
    if (!cluster.stopping) say(`${name} has ended: ${how}`)
  }
  for (let i = 0; i < options.nodes && !cluster.stopping; i++) {
    const launched = await launchNode(`node-${i + 1}`, options.port + i, launch, onEnd)
    nodes.push(launched)
    noteRun(options.dir, nodes)
    // The first one makes what a new store needs; the others find it.
    if (i === 0) await ready(launched)
  }
  await Promise.all(nodes.map(ready))
  if (!cluster.stopping) say(greeting({ options, nodes, engines, settingsFile }))
}

/**
 * @param {Options} options
 * @returns {Promise<Addresses>}
 */
async function startEngines({ dir, heap }) {
  const addressOf = async (/** @type {EngineName} */ name) => {
    const info = await start(ENGINES[name], { dir: join(dir, name), heap, optimize: true })
    return `${info.host}:${info.port}`
  }
  const starting = /** @type {const} */ ([
    addressOf('cassandra'),
    addressOf('elasticsearch'),
    addressOf('redis'),
  ])
  // All are waited for, also when one fails: what is half started can't be stopped.
  await Promise.allSettled(starting)
  const [cassandra, elasticsearch, redis] = await Promise.all(starting)
  return { cassandra, elasticsearch, redis }
}

/**
 * Writes the settings that all nodes share, as a file that another node can be started with.
 *
 * @param {string} path
 * @param {Addresses} engines
 */
function writeSettings(path, { redis, cassandra, elasticsearch }) {
  const former = readText(path)
  /** @type {string} */
  const secret =
    former === null ? randomBytes(24).toString('hex') : JSON.parse(former).bootstrapSecret
  const settings = {
    storageDriver: 'cluster',
    bootstrapSecret: secret,
    cluster: {
      redisUrl: `redis://${redis}`,
      cassandra: { contactPoints: cassandra, datacenter: DATACENTER, replication: 1 },
      elasticsearch: { url: `http://${elasticsearch}` },
    },
  }
  writeFileSync(path, `${JSON.stringify(settings, null, 2)}\n`, { mode: 0o600 })
}

/**
 * Nobody means the settings of some other node for all nodes of this cluster.
 *
 * @param {NodeJS.ProcessEnv} env
 */
function cleared(env) {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('KONTOR_')))
}

/**
 * @param {Omit<Cluster, 'stopping'> & { engines: Addresses, settingsFile: string }} running
 */
function greeting({ options, nodes, engines, settingsFile }) {
  const addresses = nodes.map(({ port }) => `http://127.0.0.1:${port}`)
  const [first, second = first, third = second] = addresses
  const file = relative(process.cwd(), settingsFile)
  const next = nodes.length + 1
  const lines = [
    ...nodes.map(({ name, port, pid }) => [name, `http://127.0.0.1:${port}`, `process ${pid}`]),
    ...Object.entries(engines).map(([name, address]) => [name, address, '']),
  ].map((cells) => `  ${cells.map((cell) => cell.padEnd(22)).join('  ')}`.trimEnd())
  return `
Kontor is up: ${nodes.length} nodes, one cluster.

${lines.join('\n')}

Data and logs are in ${options.dir}. Paste this:

  TOKEN=$(curl -s ${first}/oauth/token -d grant_type=client_credentials -d client_id=bootstrap \\
    -d client_secret="$(node -p 'require("${settingsFile}").bootstrapSecret')" \\
    | node -p 'JSON.parse(require("fs").readFileSync(0)).access_token')
  api() { curl -s "$1" -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' "\${@:2}"; echo; }

  # An order through one node, seen through another
  api ${first}/resources/actors/order/new -d '[{"type":"create","body":{"orderNumber":"A-1","currencyCode":"EUR","taxIncluded":true}}]'
  api ${second}/resources/actors/order/A-1 -d '[{"type":"query","body":{"fields":["orderNumber","orderState"]}}]'
  # Who has which shard
  api ${third}/resources/cluster

Kill a node (kill -9 ${nodes[0]?.pid}): the others take its shards. Add one:

  KONTOR_MEMBER_ID=node-${next} KONTOR_HTTP_PORT=${options.port + next - 1} npm start -- --config ${file}

Ctrl-C stops everything; npm run cluster goes on with the data.
`
}

/**
 * The first signal stops in order, the next one stops waiting for the nodes.
 *
 * @param {Cluster} cluster
 */
function interrupted(cluster) {
  if (cluster.stopping) {
    for (const node of cluster.nodes) send(node, 'SIGKILL')
    return
  }
  say('Stopping ...')
  end(cluster).catch((error) => say(error.message))
}

/** @param {Cluster} cluster */
function end(cluster) {
  cluster.stopping ??= endAll(cluster)
  return cluster.stopping
}

/** @param {Cluster} cluster */
async function endAll({ options, nodes }) {
  const { dir } = options
  await stopNodes(nodes)
  await Promise.all(Object.entries(ENGINES).map(([name, one]) => stop(one, join(dir, name))))
  forgetRun(dir)
  say('Stopped.')
  process.exit()
}

/** @param {string} text */
function say(text) {
  process.stdout.write(`${text}\n`)
}

main().catch((error) => {
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 1
})
