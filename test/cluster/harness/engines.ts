// The three engines that a cluster of real processes runs on: those that all test files share, or
// those of the suites of faults, to stop, restart and empty.

import { connect } from 'node:net'
import { engine, faultEngine } from '../../harness/engines.ts'
import type { EngineAddress, EngineName, MissingEngine, OwnEngine } from '../../harness/engines.ts'

export const ENGINE_NAMES = ['cassandra', 'elasticsearch', 'redis'] as const

export type Engines = Readonly<Record<EngineName, EngineAddress>>
export type OwnEngines = Readonly<Record<EngineName, OwnEngine>>

/** Those of the run; they outlive this test. */
export function sharedEngines(): Promise<Engines | MissingEngine> {
  return all((name) => engine(name))
}

/** Those of the suites of faults, for whoever is alone on this machine. */
export function faultEngines(): Promise<OwnEngines | MissingEngine> {
  return all((name) => faultEngine(name))
}

async function all<T extends object>(
  get: (name: EngineName) => Promise<T | MissingEngine>,
): Promise<Readonly<Record<EngineName, T>> | MissingEngine> {
  const found = await Promise.all(
    ENGINE_NAMES.map(async (name) => [name, await get(name)] as const),
  )
  const missing = found.map(([, one]) => one).find((one) => 'skipped' in one)
  return missing ?? (Object.fromEntries(found) as never)
}

/** Sends one command to a Redis; resolves with the first line of its answer. */
export function tellRedis(to: EngineAddress, command: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: to.host, port: to.port })
    socket.setTimeout(5_000, () => socket.destroy(new Error(`Redis: no answer to ${command}`)))
    socket.once('error', reject)
    socket.once('connect', () => void socket.write(`${command}\r\n`))
    socket.once('data', (bytes) => {
      resolve(bytes.toString().split('\r\n')[0]!)
      socket.destroy()
    })
  })
}
