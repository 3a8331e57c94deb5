// Processes of their own on a journal's directory, as tests start them and hear from them.

import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Test } from 'tap'
import { verifyLog } from '../verify/store.ts'

export const PROCESS = join(import.meta.dirname, 'journal-process.ts')

export interface Child {
  readonly process: ChildProcess
  readonly lines: AsyncIterable<Record<string, unknown>>
  readonly ended: Promise<unknown>
}

export function start(t: Test, command: string, args: readonly string[]): Child {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  const ended = once(child, 'close')
  async function* lines(): AsyncGenerator<Record<string, unknown>> {
    for await (const line of createInterface({ input: child.stdout })) {
      // A line that was cut off by the kill was not said.
      if (line.endsWith('}')) yield JSON.parse(line) as Record<string, unknown>
    }
  }
  return { process: child, lines: lines(), ended }
}

export function startRole(t: Test, role: string, dir: string): Child {
  return start(t, process.execPath, [PROCESS, role, dir])
}

/** What verify-log finds. */
export async function findingsIn(dir: string): Promise<string[]> {
  const lines: string[] = []
  await verifyLog(dir, (line) => lines.push(line))
  // The process writes bodies that are no entries.
  return lines.filter((line) => !/entry (format|frame)|can't be read/.test(line))
}
