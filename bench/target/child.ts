// A child process of the bench: a node or a floor. It is started with its output in a file, waited
// for until it serves, ended by its own id.

import { spawn, type ChildProcess } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

const READY_MS = 60_000
const STOP_MS = 35_000
const POLL_MS = 20
const LOG_CHARS_SHOWN = 2_000

/** Folder of the project. */
export const ROOT = fileURLToPath(new URL('../..', import.meta.url))

export interface ChildOptions {
  /** The file to run, from the project's folder. */
  readonly file: string
  /** Options for Node itself. */
  readonly flags?: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** Its output goes here. */
  readonly logFile: string
  /** True when it serves. */
  readonly ready: () => Promise<boolean>
}

export class Child {
  readonly pid: number
  readonly #process: ChildProcess
  readonly #exited: Promise<void>
  #gone = false

  private constructor(process: ChildProcess) {
    this.#process = process
    this.pid = process.pid!
    this.#exited = new Promise((resolve) => {
      process.once('exit', () => {
        this.#gone = true
        resolve()
      })
    })
  }

  static async start({ file, flags = [], env, logFile, ready }: ChildOptions): Promise<Child> {
    const log = openSync(logFile, 'a')
    const child = new Child(
      spawn(process.execPath, [...flags, file], {
        cwd: ROOT,
        // Settings of the caller's own node must not reach this one.
        env: { ...withoutSettings(process.env), ...env },
        stdio: ['ignore', log, log],
      }),
    )
    closeSync(log)
    const until = performance.now() + READY_MS
    while (!(await ready())) {
      if (child.#gone || performance.now() > until) {
        await child.stop()
        const output = readFileSync(logFile, 'utf8').slice(-LOG_CHARS_SHOWN)
        throw new Error(`${file} does not serve${child.#gone ? ': it ended' : ''}\n${output}`)
      }
      await delay(POLL_MS)
    }
    return child
  }

  /** Ends it gracefully, or not: by its own id. */
  async stop(): Promise<void> {
    if (this.#gone) return
    this.#process.kill('SIGTERM')
    const timer = setTimeout(() => this.#process.kill('SIGKILL'), STOP_MS)
    await this.#exited
    clearTimeout(timer)
  }

  /** kill -9: it gets no chance to tidy up. */
  async kill(): Promise<void> {
    this.#process.kill('SIGKILL')
    await this.#exited
  }
}

function withoutSettings(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('KONTOR_')))
}

/** A port that nothing listens on now. */
export async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

/** True when a GET of the address gives 200. */
export async function answers(url: string): Promise<boolean> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(2_000) })
    await response.arrayBuffer()
    return response.status === 200
  } catch {
    return false
  }
}
