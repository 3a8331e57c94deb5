// What the commands that have an index made anew have in common: a line of progress, and an end.
// Exit code 0 when it is done, 1 when something failed, 2 for wrong arguments.

import { setTimeout as delay } from 'node:timers/promises'
import { findCredentials } from '../session.ts'
import type { Parsed } from './options.ts'
import { type Asked, type Progress, rebuildIndex } from './rebuild.ts'

export interface Command {
  readonly usage: string
  readonly asked: Asked
  /** What is told at the end: taken and not waited for; done; nothing was under way. */
  readonly told: { readonly taken: string; readonly done: string; readonly idle: string }
}

/** Without a terminal, progress is a line of a log. */
const LOG_MS = 10_000

export async function runCommand(
  options: Parsed,
  { usage, asked, told }: Command,
): Promise<number> {
  if (options === 'help') {
    process.stdout.write(usage)
    return 0
  }
  if ('problems' in options) return wrong(`${options.problems.join('\n')}\n\n${usage}`)
  const credentials = options.credentials ?? findCredentials(process.env)
  if ('problem' in credentials) return wrong(`${credentials.problem}\n`)
  const beganMs = performance.now()
  const problem = await rebuildIndex({ ...options, asked }, credentials, {
    now: () => performance.now(),
    delay: (ms) => delay(ms),
    progress: teller(beganMs),
    tell: (line) => say(`${line}\n`),
  })
  if (problem !== null) {
    say(`${problem}\n`)
    return 1
  }
  const seconds = ((performance.now() - beganMs) / 1_000).toFixed(1)
  say('')
  if (!options.waits) process.stdout.write(`${told.taken}.\n`)
  else if (options.starts) process.stdout.write(`${told.done}: ${seconds} s.\n`)
  else process.stdout.write(`${told.idle}.\n`)
  return 0
}

function wrong(text: string): number {
  process.stderr.write(text)
  return 2
}

/** In place of the line of progress, where there is one. */
function say(text: string): void {
  process.stderr.write(process.stderr.isTTY ? `\r\x1b[K${text}` : text)
}

function teller(beganMs: number): (progress: Progress) => void {
  let loggedMs = -LOG_MS
  return ({ state, done, total }) => {
    if (state === 'idle') return
    const share = total === 0 ? 0 : Math.floor((Math.min(done, total) / total) * 100)
    const seconds = Math.round((performance.now() - beganMs) / 1_000)
    // Of what phrases find hundredths are told, of the whole index entries.
    const entries = `${done.toLocaleString('en')} of ${total.toLocaleString('en')} entries, `
    const line = `${state}: ${state === 'running' ? '' : entries}${share} %, ${seconds} s`
    if (process.stderr.isTTY) say(line)
    else if (performance.now() - loggedMs >= LOG_MS) {
      loggedMs = performance.now()
      say(`${line}\n`)
    }
  }
}
