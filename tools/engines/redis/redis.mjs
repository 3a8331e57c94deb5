// A Redis with an append-only file: the recipe for redis-server as the system's package brings it.
// server-process.mjs starts and stops it. What the wire needs of it: PROTOCOL 3.6; it keeps nothing
// that may not be lost.

import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { needPrograms } from '../fetch.mjs'
import { answers, HOST, launchDetached } from '../server-process.mjs'

/** @type {import('../server-process.mjs').Engine} */
export const redis = {
  name: 'redis',
  program: 'redis-server',
  prepare: () => needPrograms(['redis-server'], ['redis-server']),
  async launch({ dir, port }) {
    const settings = {
      port,
      bind: HOST,
      dir,
      daemonize: 'no',
      save: '',
      appendonly: 'yes',
      appendfsync: 'everysec',
    }
    const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)])
    const logFile = join(dir, 'redis.log')
    return {
      ...launchDetached(['redis-server', ...args], { cwd: dir, logFile }),
      version: versionOf(),
    }
  },
  isReady: (port) => answers(port, 'PING\r\n', (answer) => answer.toString().startsWith('+PONG')),
}

function versionOf() {
  const { stdout } = spawnSync('redis-server', ['--version'])
  return /v=(\S+)/.exec(String(stdout))?.[1] ?? ''
}
