// The engines that a cluster under load runs on: started by `cli/engines.mjs` in a folder of their
// own, outside every quota, and read for their CPU.

import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ROOT } from '../target/child.ts'
import { processUsage } from '../target/process-usage.ts'

export const ENGINE_NAMES = ['cassandra', 'elasticsearch', 'redis'] as const
export type EngineName = (typeof ENGINE_NAMES)[number]

const START_MS = 400_000
const TEXT_CHARS_SHOWN = 2_000

interface Running {
  readonly port: number
  readonly pid: number
}

export type EnginePorts = Readonly<Record<EngineName, number>>

export class ClusterEngines {
  /** Folder of their data. */
  readonly dir: string
  readonly #running: Readonly<Record<EngineName, Running>>

  private constructor(dir: string, running: Readonly<Record<EngineName, Running>>) {
    this.dir = dir
    this.#running = running
  }

  static async start(): Promise<ClusterEngines> {
    const dir = mkdtempSync(join(tmpdir(), 'kontor-bench-engines-'))
    try {
      // Compiled at length: a bench is a long run.
      const text = await engines(['start', '--dir', dir, '--optimize'])
      const running = ENGINE_NAMES.map((name) => [name, runningIn(text, name)] as const)
      return new ClusterEngines(dir, Object.fromEntries(running) as Record<EngineName, Running>)
    } catch (error) {
      await engines(['stop', '--dir', dir]).catch(() => '')
      rmSync(dir, { recursive: true, force: true })
      throw error
    }
  }

  /** Settings of a member on them, with a store of its own. */
  settings(store: string): Record<string, string> {
    const { cassandra, elasticsearch, redis } = this.#running
    return {
      KONTOR_STORAGE_DRIVER: 'cluster',
      KONTOR_CASSANDRA_CONTACT_POINTS: `127.0.0.1:${cassandra.port}`,
      KONTOR_CASSANDRA_KEYSPACE: store,
      KONTOR_CASSANDRA_DATACENTER: 'datacenter1',
      KONTOR_ELASTICSEARCH_URL: `http://127.0.0.1:${elasticsearch.port}`,
      KONTOR_ELASTICSEARCH_PREFIX: `${store}-`,
      KONTOR_REDIS_URL: `redis://127.0.0.1:${redis.port}`,
    }
  }

  get ports(): EnginePorts {
    const ports = ENGINE_NAMES.map((name) => [name, this.#running[name].port] as const)
    return Object.fromEntries(ports) as EnginePorts
  }

  /** CPU milliseconds that each has used since it began. */
  cpuMs(): Record<EngineName, number> {
    const used = ENGINE_NAMES.map((name) => {
      return [name, processUsage(this.#running[name].pid)?.cpuMs ?? 0] as const
    })
    return Object.fromEntries(used) as Record<EngineName, number>
  }

  async stop(): Promise<void> {
    await engines(['stop', '--dir', this.dir])
    rmSync(this.dir, { recursive: true, force: true })
  }
}

/** What `cli/engines.mjs` prints. */
function engines(args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [join(ROOT, 'cli', 'engines.mjs'), ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: START_MS,
    })
    let text = ''
    const hear = (bytes: Buffer): void => void (text += bytes.toString())
    child.stdout.on('data', hear)
    child.stderr.on('data', hear)
    child.on('error', reject)
    child.on('exit', (code) => {
      if (code === 0) resolve(text)
      else reject(new Error(`the engines: ${text.slice(-TEXT_CHARS_SHOWN)}`))
    })
  })
}

function runningIn(text: string, name: EngineName): Running {
  const line = new RegExp(`^${name}\\s+\\S+:(\\d+) .*process (\\d+)`, 'm').exec(text)
  if (line === null) throw new Error(`${name} does not run: ${text.slice(-TEXT_CHARS_SHOWN)}`)
  return { port: Number(line[1]), pid: Number(line[2]) }
}
