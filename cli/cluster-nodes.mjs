// The nodes of a cluster on this machine as processes: started, waited for, stopped. Each runs in a
// process group of its own, so that Ctrl-C reaches cli/cluster.mjs alone, which ends them in order;
// what a killed one has left behind is found by a file in the cluster's folder and ended at the
// next start.

import { spawn } from 'node:child_process'
import { closeSync, mkdirSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { birthOf, freePort, HOST, isAlive, readText } from '../tools/engines/server-process.mjs'
import { nodeFlags } from '../tools/start/node-flags.mjs'

const READY_MS_MAX = 180_000
/** A node drains for half a minute at most. */
const STOP_MS_MAX = 40_000
const LOOK_MS = 100

/**
 * @typedef {object} Node
 * @property {string} name
 * @property {number} port
 * @property {number} pid
 * @property {string} birth
 * @property {string} logFile
 */

/**
 * @typedef {object} Launch
 * @property {string} node the Node to run it with
 * @property {NodeJS.ProcessEnv} env
 * @property {string} root folder of the program
 * @property {string} dir folder of the cluster
 * @property {string} settingsFile
 */

/** @typedef {(name: string, how: string) => void} OnEnd */

/**
 * @param {string} name
 * @param {number} wantedPort
 * @param {Launch} launch
 * @param {OnEnd} onEnd
 * @returns {Promise<Node>} launched, not yet ready
 */
export async function launchNode(name, wantedPort, launch, onEnd) {
  const { node, env, root, dir, settingsFile } = launch
  const port = await freePort(wantedPort)
  const dataDir = join(dir, name)
  mkdirSync(dataDir, { recursive: true })
  const logFile = join(dir, `${name}.log`)
  const out = openSync(logFile, 'a')
  const child = spawn(node, [...nodeFlags(), 'cli/node.mjs', '--config', settingsFile], {
    cwd: root,
    env: {
      ...env,
      KONTOR_MEMBER_ID: name,
      KONTOR_HTTP_HOST: HOST,
      KONTOR_HTTP_PORT: String(port),
      KONTOR_DATA_DIR: dataDir,
    },
    detached: true,
    stdio: ['ignore', out, out],
  })
  closeSync(out)
  child.on('error', (error) => onEnd(name, error.message))
  child.on('exit', (code, by) => onEnd(name, by === null ? `exit code ${code}` : `ended by ${by}`))
  const { pid = 0 } = child
  return { name, port, pid, birth: birthOf(pid), logFile }
}

/**
 * Waits until a node serves; rejects when it ends before.
 *
 * @param {Node} node
 */
export async function ready(node) {
  const deadline = Date.now() + READY_MS_MAX
  while (!(await isReady(node.port))) {
    if (!isAlive(node)) throw new Error(`${node.name} has ended; see ${node.logFile}`)
    if (Date.now() > deadline) {
      throw new Error(`${node.name} is not ready after ${READY_MS_MAX} ms; see ${node.logFile}`)
    }
    await pause(LOOK_MS)
  }
}

/** @param {number} port */
async function isReady(port) {
  try {
    const answer = await fetch(`http://${HOST}:${port}/health/ready`, {
      signal: AbortSignal.timeout(2_000),
    })
    await answer.arrayBuffer()
    return answer.ok
  } catch {
    return false
  }
}

/**
 * Ends nodes: each drains and hands its shards over; one that takes too long is killed.
 *
 * @param {readonly Node[]} nodes
 */
export async function stopNodes(nodes) {
  for (const node of nodes) send(node, 'SIGTERM')
  const deadline = Date.now() + STOP_MS_MAX
  while (nodes.some(isAlive) && Date.now() < deadline) await pause(LOOK_MS)
  for (const node of nodes) send(node, 'SIGKILL')
  while (nodes.some(isAlive)) await pause(LOOK_MS)
}

/**
 * @param {Node} node
 * @param {NodeJS.Signals} name
 */
export function send(node, name) {
  if (isAlive(node)) process.kill(node.pid, name)
}

/**
 * Notes who runs the cluster of `dir`, and its nodes.
 *
 * @param {string} dir
 * @param {readonly Node[]} nodes
 */
export function noteRun(dir, nodes) {
  const { pid } = process
  writeFileSync(runFile(dir), JSON.stringify({ pid, birth: birthOf(pid), nodes }))
}

/** @param {string} dir */
export function forgetRun(dir) {
  rmSync(runFile(dir), { force: true })
}

/**
 * Ends the nodes that a killed run has left; throws when that run lives.
 *
 * @param {string} dir
 */
export async function endFormerRun(dir) {
  const text = readText(runFile(dir))
  if (text === null) return
  /** @type {{ pid: number, birth: string, nodes: Node[] }} */
  const former = JSON.parse(text)
  if (isAlive(former)) {
    throw new Error(`A cluster runs on ${dir} already: process ${former.pid}.`)
  }
  await stopNodes(former.nodes)
  forgetRun(dir)
}

/** @param {string} dir */
function runFile(dir) {
  return join(dir, 'run.json')
}

/** @param {number} ms */
function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
