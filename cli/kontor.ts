// `npm run kontor`, or `npx kontor`: the platform from a terminal.

import { spawn } from 'node:child_process'
import { homedir } from 'node:os'
import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { run } from './kontor/program.ts'
import type { World } from './kontor/world.ts'

async function ask(question: string, isSecret: boolean): Promise<string> {
  const { stdin, stderr } = process
  if (!stdin.isTTY) return (await text(stdin)).trim()
  stderr.write(question)
  const output = isSecret ? new Writable({ write: (_chunk, _encoding, done) => done() }) : stderr
  const lines = createInterface({ input: stdin, output, terminal: true })
  try {
    return await lines.question('')
  } finally {
    lines.close()
    if (isSecret) stderr.write('\n')
  }
}

/** What opens an address on systems that have no `xdg-open`. */
const OPENERS: Readonly<Record<string, readonly [string, ...string[]]>> = {
  darwin: ['open'],
  win32: ['rundll32', 'url.dll,FileProtocolHandler'],
}

function openBrowser(url: string): Promise<boolean> {
  const { platform, env } = process
  const isBlind = platform === 'linux' && !env['DISPLAY'] && !env['WAYLAND_DISPLAY']
  if (isBlind || !process.stderr.isTTY) return Promise.resolve(false)
  const [command, ...args] = OPENERS[platform] ?? ['xdg-open']
  return new Promise((resolve) => {
    const child = spawn(command, [...args, url], { stdio: 'ignore', detached: true })
    child.once('error', () => resolve(false))
    child.once('spawn', () => {
      child.unref()
      resolve(true)
    })
  })
}

const world: World = {
  env: process.env,
  home: homedir(),
  nowMs: () => Date.now(),
  fetch,
  out: (shown) => void process.stdout.write(shown),
  say: (said) => void process.stderr.write(said),
  outIsTerminal: process.stdout.isTTY,
  sayIsTerminal: process.stderr.isTTY,
  ask,
  openBrowser,
}

process.exitCode = await run(process.argv.slice(2), world)
