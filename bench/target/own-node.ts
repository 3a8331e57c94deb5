// A node of the bench's own on a data directory of its own, that can be ended and started again on
// what it has written.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { nodeFlags } from '../../tools/start/node-flags.mjs'
import { newUuid } from '../load/requests.ts'
import { answers, Child, freePort } from './child.ts'
import { processUsage, type ProcessUsage } from './process-usage.ts'

/** How a node is ended: SIGTERM, or kill -9. */
export type Ending = 'stopped' | 'killed'

export interface Downtime {
  readonly ending: Ending
  /** Until the process was gone. */
  readonly endedMs: number
  /** From the start of the next process until it was ready. */
  readonly readyMs: number
}

export class OwnNode {
  readonly url: string
  readonly secret = newUuid() + newUuid()
  readonly dataDir: string
  readonly #dir: string
  readonly #port: number
  #child: Child | null = null
  /** CPU of the processes that have ended, as far as it was seen. */
  #endedCpuMs = 0

  private constructor(dir: string, port: number) {
    this.#dir = dir
    this.#port = port
    this.dataDir = join(dir, 'data')
    this.url = `http://127.0.0.1:${port}`
  }

  /** Starts it with an empty store. */
  static async start(name: string): Promise<OwnNode> {
    const dir = mkdtempSync(join(tmpdir(), `kontor-bench-${name}-`))
    try {
      const node = new OwnNode(dir, await freePort())
      await node.#start()
      return node
    } catch (error) {
      rmSync(dir, { recursive: true, force: true })
      throw error
    }
  }

  async #start(): Promise<void> {
    this.#child = await Child.start({
      file: 'cli/node.mjs',
      flags: nodeFlags(),
      logFile: join(this.#dir, 'node.log'),
      env: {
        KONTOR_DATA_DIR: this.dataDir,
        KONTOR_HTTP_PORT: String(this.#port),
        KONTOR_SAMPLE: 'false',
        KONTOR_BOOTSTRAP_SECRET: this.secret,
        KONTOR_LOG_LEVEL: 'warn',
      },
      ready: () => answers(`${this.url}/health/ready`),
    })
  }

  /** Ends it and starts it again on the same data directory. */
  async restart(ending: Ending): Promise<Downtime> {
    const began = performance.now()
    await this.#end(ending)
    const gone = performance.now()
    await this.#start()
    return { ending, endedMs: gone - began, readyMs: performance.now() - gone }
  }

  /** CPU of all its processes so far; null while none runs. */
  usage(): ProcessUsage | null {
    const usage = processUsage(this.#child?.pid ?? null)
    return usage && { ...usage, cpuMs: usage.cpuMs + this.#endedCpuMs }
  }

  /** Ends it and removes what it has written. */
  async remove(): Promise<void> {
    await this.#end('stopped')
    rmSync(this.#dir, { recursive: true, force: true })
  }

  async #end(ending: Ending): Promise<void> {
    const child = this.#child
    if (child === null) return
    // What it does from here on to its end is not seen.
    this.#endedCpuMs = this.usage()?.cpuMs ?? this.#endedCpuMs
    this.#child = null
    await (ending === 'killed' ? child.kill() : child.stop())
  }
}
