// Real engines for tests: one server of each kind for all test files of a run, another for all
// suites of faults, which stop and empty it, and servers of its own for a test that does so beside
// others. A test keeps to a keyspace, index prefix or stream prefix of its own.

import { rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ENGINES } from '../../tools/engines/engines.mjs'
import { CannotRun } from '../../tools/engines/fetch.mjs'
import { start, stop } from '../../tools/engines/server-process.mjs'
import type { Running } from '../../tools/engines/server-process.mjs'
import { faultsFolder, ownFolder, sharedFolder, use } from '../../tools/engines/users.mjs'

export type EngineName = 'cassandra' | 'elasticsearch' | 'redis'

export interface EngineAddress {
  readonly host: string
  readonly port: number
}

/** Why this machine can't run that engine: the suite is skipped. Where CI=true it is a failure. */
export interface MissingEngine {
  readonly skipped: string
}

/** The part of a test that a server needs: to be told when it is over. */
interface Owner {
  teardown(end: () => Promise<void>): void
}

/**
 * The engine that all test files of a run share, started by the first who asks.
 * Rejects where CI=true and it can't be started.
 */
export async function engine(name: EngineName): Promise<EngineAddress | MissingEngine> {
  return orMissing(name, async () => {
    const { host, port } = await use(sharedFolder(), name)
    return { host, port }
  })
}

/**
 * The engine that all suites of faults of a run share, to stop, kill and empty; started by the
 * first, and again by the next where one has left it stopped. Only for a test that is alone on the
 * machine (test/cluster/alone.ts) for as long as it uses it.
 */
export async function faultEngine(name: EngineName): Promise<OwnEngine | MissingEngine> {
  return orMissing(name, async () => {
    await use(faultsFolder(), name)
    const server = new OwnEngine(name, join(faultsFolder(), name))
    await server.start()
    return server
  })
}

/** An engine that this test alone has, to stop, kill and empty; it ends with the test. */
export async function ownEngine(t: Owner, name: EngineName): Promise<OwnEngine | MissingEngine> {
  return orMissing(name, async () => {
    const own = new OwnEngine(name, join(await ownFolder(sharedFolder()), name))
    t.teardown(() => own.clear())
    await own.start()
    return own
  })
}

async function orMissing<T>(name: string, get: () => Promise<T>): Promise<T | MissingEngine> {
  try {
    return await get()
  } catch (error) {
    if (!(error instanceof CannotRun)) throw error
    const reason = `no ${name} here: ${error.message}`
    if (process.env['CI'] === 'true') throw new Error(reason, { cause: error })
    return { skipped: reason }
  }
}

export class OwnEngine implements EngineAddress {
  readonly host = '127.0.0.1'
  port = 0
  readonly #name: EngineName
  readonly #dir: string
  #info: Running | null = null

  constructor(name: EngineName, dir: string) {
    this.#name = name
    this.#dir = dir
  }

  get pid(): number {
    return this.#info!.pid
  }

  /** Starts it, again on the data and the port that it had. */
  async start(): Promise<void> {
    const port = this.port === 0 ? null : { port: this.port }
    this.#info = await start(ENGINES[this.#name], { dir: this.#dir, ...port })
    this.port = this.#info.port
  }

  /** Ends it as an operator would. */
  async stop(): Promise<void> {
    await stop(ENGINES[this.#name], this.#dir)
  }

  /** kill -9. */
  async kill(): Promise<void> {
    process.kill(this.pid, 'SIGKILL')
    await this.stop()
  }

  /** It stands still, connections and all, until it is thawed. */
  freeze(): void {
    process.kill(this.pid, 'SIGSTOP')
  }

  thaw(): void {
    process.kill(this.pid, 'SIGCONT')
  }

  async clear(): Promise<void> {
    await this.stop()
    rmSync(dirname(this.#dir), { recursive: true, force: true })
  }
}
