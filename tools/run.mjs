// Starts a TypeScript program of this project: `node tools/run.mjs [node options] file.ts [args]`;
// `--as-node` among the options stands for those that a node is started with. It runs on any
// Node and the program on Node 22, and passes on everything: environment, arguments, standard
// streams, signals and the exit code.

import { spawn } from 'node:child_process'
import { constants } from 'node:os'
import { nodeFlags } from './start/node-flags.mjs'
import { pack } from './start/packed.mjs'
import { ROOT, setUp } from './set-up/set-up.mjs'

/** @type {readonly NodeJS.Signals[]} */
const FORWARDED = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGUSR2']

/** node:sqlite is still called experimental in Node 22; who starts a program can't act on that. */
const QUIET = '--disable-warning=ExperimentalWarning'
const AS_NODE = '--as-node'

/** Exit code of a set-up that failed: EX_UNAVAILABLE of sysexits. */
const SET_UP_FAILED = 69

async function main() {
  const { node, env } = await setUp({ root: ROOT })
  // What a node is started from, here or by the program that is started.
  const unpacked = await pack()
  if (unpacked !== null) process.stderr.write(`Nodes start from their sources: ${unpacked}\n`)
  const child = spawn(node, options(process.argv.slice(2)), { env, stdio: 'inherit' })
  for (const signal of FORWARDED) process.on(signal, () => child.kill(signal))
  child.on('error', (error) => fail(`Can't start ${node}: ${error.message}`))
  child.on('exit', (code, signal) => {
    process.exit(code ?? 128 + (signal === null ? 0 : constants.signals[signal]))
  })
}

/** @param {readonly string[]} args */
function options(args) {
  const [first, ...others] = args
  return first === AS_NODE ? [...nodeFlags(), ...others] : [QUIET, ...args]
}

/** @param {string} message */
function fail(message) {
  process.stderr.write(`${message}\n`)
  process.exit(SET_UP_FAILED)
}

main().catch((error) => fail(error.message))
