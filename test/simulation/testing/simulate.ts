// The simulation's command as a child process, for tests: mutants are loaded into a process of
// their own.

import { spawn } from 'node:child_process'
import { join } from 'node:path'

const MAIN = join(import.meta.dirname, '..', 'main.ts')

export interface Simulated {
  readonly code: number | null
  /** Standard output and standard error. */
  readonly said: string
}

/** Runs the command with these arguments to its end; it is killed after `withinMs`. */
export function simulate(args: readonly string[], withinMs: number): Promise<Simulated> {
  // What tap puts into the environment of what it starts is not meant for these.
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^_?TAP|^NODE_OPTIONS$/.test(name)),
  )
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [MAIN, ...args], {
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: withinMs,
      killSignal: 'SIGKILL',
    })
    let said = ''
    const hear = (piece: Buffer): void => void (said += piece.toString())
    child.stdout.on('data', hear)
    child.stderr.on('data', hear)
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, said }))
  })
}
