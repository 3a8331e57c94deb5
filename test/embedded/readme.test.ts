// The README does what it says: its blocks are pasted into a shell as they stand, against a new
// node; what can't be run here is named, with the reason and with what is looked at instead.

import { spawn, spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { freePort } from '../../tools/engines/server-process.mjs'
import type { Test } from 'tap'
import { parse } from 'yaml'
import { SETTING_NAMES, TABLE } from '../../config/table.ts'
import { NodeProcess, SECRET, startNode } from '../harness/node-process.ts'
import { choosePassword } from '../harness/identities.ts'
import { PlainBrowser } from '../harness/plain-browser.ts'
import { smallOrder } from '../harness/orders.ts'
import { until } from '../harness/patience.ts'

const ROOT = join(import.meta.dirname, '../..')
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8')
const README = read('README.md')
const SCRIPTS = (JSON.parse(read('package.json')) as { scripts: Record<string, string> }).scripts

interface Block {
  /** Heading of the section that it stands in. */
  readonly section: string
  /** `sh`, or empty. */
  readonly language: string
  readonly text: string
}

/** Every block of the file: between fences, at any depth of a list, or indented by four spaces. */
function blocks(): Block[] {
  return README.split(/^## /m).flatMap((part) => {
    const section = part.split('\n')[0]!
    const fenced = /^( *)```(\w*)\n([^]*?)\n\1```$/gm
    const found = [...part.matchAll(fenced)].map(([, indent, language, text]) => ({
      section,
      language: language!,
      text: text!.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
    }))
    const rest = part.replaceAll(fenced, '')
    const indented = [...rest.matchAll(/^\n((?: {4}\S.*\n)+)/gm)].map(([, text]) => ({
      section,
      language: '',
      text: text!.replaceAll(/^ {4}/gm, '').trimEnd(),
    }))
    return [...found, ...indented]
  })
}

const FIRST_THINGS = 'The first ten things'
const SIGN_IN = 'Sign people in'
const TERMINAL = 'From a terminal'
const PASSWORD = 'three odd lamps hum'

t.test('every block of the first ten things answers what it promises', async (t) => {
  const node = await startNode(t)
  const cwd = t.testdir({ data: { 'bootstrap.json': JSON.stringify({ clientSecret: SECRET }) } })
  const texts = blocks().flatMap(({ section, text }) => (section === FIRST_THINGS ? [text] : []))
  const [token = '', ...others] = texts
  t.ok(others.length >= 9, `${others.length} blocks`)
  for (const block of others) {
    const script = `${token}\n${block}`.replaceAll('localhost:8080', `127.0.0.1:${node.port}`)
    const { stdout, stderr } = spawnSync('bash', ['-c', script], { cwd, encoding: 'utf8' })
    t.equal(stderr, '', block)
    t.notMatch(stdout, /"errors":\[\{|"success":false/, block)
    t.match(stdout, /^[[{]/m, 'it is answered')
  }
})

/** Runs a block in a shell that has the token of the first things. */
function pasted(node: NodeProcess, cwd: string, block: string): string {
  const [token] = blocks().flatMap(({ section, text }) => (section === FIRST_THINGS ? [text] : []))
  const script = `${token}\n${block}`.replaceAll('localhost:8080', `127.0.0.1:${node.port}`)
  const { stdout, stderr } = spawnSync('bash', ['-c', script], { cwd, encoding: 'utf8' })
  if (stderr !== '') throw new Error(stderr)
  return stdout
}

t.test('a person signs in as it says', async (t) => {
  const node = await startNode(t)
  const cwd = t.testdir({ data: { 'bootstrap.json': JSON.stringify({ clientSecret: SECRET }) } })
  const part = README.split(/^## /m).find((one) => one.startsWith(SIGN_IN))!
  const own = blocks().flatMap(({ section, text }) => (section === SIGN_IN ? [text] : []))
  const [make = '', exchange = ''] = own
  t.equal(own.length, 2)
  const made = pasted(node, cwd, make)
  const temporary = /"temporaryPassword":"([^"]*)"/.exec(made)![1]!
  const clientId = /"client_id":"([^"]*)"/.exec(made)![1]!
  const url = /`(http:\/\/localhost:8080\/oauth\/authorize[^`]*)`/
    .exec(part)![1]!
    .replace('localhost:8080', `127.0.0.1:${node.port}`)
    .replace('CLIENT_ID', clientId)
  const email = 'ada@shop.example'
  await choosePassword(url, { email, temporary, password: PASSWORD })
  const back = await new PlainBrowser().agree(url, email, PASSWORD)
  t.equal(back.port, '9000')
  const code = back.searchParams.get('code')!
  const asked = exchange.replace('CLIENT_ID', clientId).replace('CODE', code)
  t.match(pasted(node, cwd, asked), /"access_token":/)
})

t.test('`kontor` is there, and takes what is said of it', (t) => {
  const lines = blocks().flatMap(({ section, text }) =>
    section === TERMINAL ? text.split('\n') : [],
  )
  t.equal(lines.length, 4)
  for (const line of lines) {
    const command = line.replace(/ +#.*$/, '')
    const args = command.replace('npx kontor ', '').replaceAll('"', '').split(' ')
    const words = args.filter((word) => /^[a-z]+$/.test(word))
    const { status, stdout } = spawnSync('bash', ['-c', `npx kontor ${words.join(' ')} --help`], {
      cwd: ROOT,
      encoding: 'utf8',
    })
    t.equal(status, 0, command)
    for (const option of args.filter((word) => word.startsWith('--'))) t.match(stdout, option)
  }
  t.end()
})

t.test('the first request that the front page shows is one that a shell can read', async (t) => {
  const node = await startNode(t)
  const { text } = await node.send('/', { headers: { Accept: 'text/html' } })
  const [, shown = ''] = /<pre>([^]*)<\/pre>/.exec(text)!
  const signs = { '&quot;': '"', '&lt;': '<', '&gt;': '>', '&amp;': '&' }
  const script = shown.replaceAll(/&\w+;/g, (sign) => signs[sign as keyof typeof signs])
  t.match(script, /^curl /m)
  t.equal(spawnSync('bash', ['-n', '-c', script], { encoding: 'utf8' }).stderr, '')
})

/** Runs a command that starts a node, with a port and a data directory of its own. */
async function startsNode(t: Test, command: string): Promise<void> {
  const port = await freePort()
  const dir = t.testdir({})
  const child = spawn('bash', ['-c', command], {
    cwd: ROOT,
    env: { ...process.env, KONTOR_HTTP_PORT: String(port), KONTOR_DATA_DIR: dir },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (bytes: Buffer) => void (said += bytes.toString()))
  }
  let hasEnded = false
  child.on('exit', () => void (hasEnded = true))
  t.teardown(() => {
    if (!hasEnded) process.kill(-child.pid!, 'SIGKILL')
  })
  await until(
    `${command} starts a node`,
    async () => {
      if (hasEnded) throw new Error(said)
      const answer = await fetch(`http://127.0.0.1:${port}/health/ready`).catch(() => null)
      await answer?.arrayBuffer()
      return answer?.status === 200
    },
    60_000,
  )
  t.match(said, new RegExp(`Kontor is up at http://127\\.0\\.0\\.1:${port}`))
  t.match(said, /Loaded \d+ sample orders/)
  t.ok(existsSync(join(dir, 'bootstrap.json')), 'the secret is where the next block reads it')
  process.kill(-child.pid!, 'SIGTERM')
  await until('it has ended', () => hasEnded)
}

/** It shows orders that come and go, over the end of a node too. */
async function watchesOrders(t: Test, command: string): Promise<void> {
  const node = new NodeProcess({ KONTOR_HTTP_PORT: String(await freePort()) })
  t.teardown(() => node.clear())
  await node.start()
  const cwd = t.testdir({
    data: { 'bootstrap.json': JSON.stringify({ clientSecret: SECRET }) },
    examples: { 'live-orders.mjs': read('examples/live-orders.mjs') },
  })
  const { PATH } = process.env
  const env = { PATH, KONTOR_URL: `http://127.0.0.1:${node.port}` }
  const child = spawn('bash', ['-c', `exec ${command}`], { cwd, env })
  t.teardown(() => child.kill('SIGKILL'))
  let said = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (bytes: Buffer) => void (said += bytes.toString()))
  }
  /** Numbers of the orders in the table that was shown last. */
  const shown = (): string =>
    (
      said
        .split('┌')
        .at(-1)!
        .match(/EX-\d+/g) ?? []
    ).join(' ')
  const shows = (numbers: string): Promise<void> =>
    until(`${command} shows ${numbers}`, () => shown() === numbers, 60_000)
  await until('it is there', () => said.includes('┌'), 60_000)
  const first = await smallOrder(node, { orderNumber: 'EX-1' })
  await shows('EX-1')
  const second = await smallOrder(node, { orderNumber: 'EX-2' })
  await shows('EX-2 EX-1')
  await node.order(first.orderId, [{ type: 'delete' }])
  await shows('EX-2')
  await node.kill()
  await node.start()
  await smallOrder(node, { orderNumber: 'EX-3' })
  await shows('EX-3 EX-2')
  await node.order(second.orderId, [{ type: 'delete' }])
  await shows('EX-3')
  t.equal(child.exitCode, null, said)
}

/** The commands outside the first ten things, each with what shows that it is right. */
const COMMANDS: Readonly<Record<string, (t: Test, command: string) => Promise<void> | void>> = {
  'npm start': startsNode,
  // It is what runs this test.
  'npm test': (t) => void t.equal(SCRIPTS['test'], 'exec node tools/verify.mjs'),
  // It fetches a gigabyte of servers and starts them: that is for test/commands/cluster.test.ts.
  'npm run cluster': (t, command) => {
    const help = spawnSync('bash', ['-c', `${command} -- --help`], { cwd: ROOT, encoding: 'utf8' })
    t.equal(help.status, 0, help.stderr)
    t.match(help.stdout, 'npm run cluster')
  },
  'node examples/live-orders.mjs "orderTotal > 20"': watchesOrders,
  // Containers need an engine for them. What compose reads is looked at by test/containers.test.ts.
  'docker compose up': (t) => {
    const { services } = parse(read('docker-compose.yml'), { merge: true }) as {
      services: Record<string, { build?: string; ports?: string[] }>
    }
    t.equal(services['kontor-1']?.build, '.')
    t.match(services['proxy']?.ports?.[0], /8080.*:8080$/, 'behind one port')
  },
}

t.test('every other block is run, or looked at', { timeout: 200_000 }, async (t) => {
  const seen = new Set<string>()
  for (const { section, text } of blocks()) {
    if ([FIRST_THINGS, SIGN_IN, TERMINAL].includes(section)) continue
    // A picture: what it names is there.
    if (section === 'How a request walks') {
      const places = [...text.matchAll(/\b(?:node|cluster|commerce|storage)\/[a-z]+/g)]
      t.ok(places.length >= 9, `${places.length} places`)
      for (const [place] of places) {
        t.ok(existsSync(join(ROOT, place)) || existsSync(join(ROOT, `${place}.ts`)), place)
      }
      continue
    }
    for (const line of text.split('\n')) {
      const command = line.replace(/\s+#.*$/, '')
      const check = COMMANDS[command]
      t.ok(check, `${section}: ${command}`)
      await check?.(t, command)
      seen.add(command)
    }
  }
  t.strictSame([...seen].sort(), Object.keys(COMMANDS).sort())
})

t.test('what its text names is there', async (t) => {
  for (const [, script] of README.matchAll(/npm (?:run )?([a-z][a-z:-]+)/g)) {
    if (script !== 'install' && script !== 'and')
      t.ok(Object.hasOwn(SCRIPTS, script!), `npm ${script}`)
  }
  const secrets = SETTING_NAMES.filter((name) => 'secret' in TABLE[name])
  const settings = new Set<string>([...SETTING_NAMES, ...secrets.map((name) => `${name}_FILE`)])
  for (const [name] of README.matchAll(/\bKONTOR_[A-Z_]+/g)) t.ok(settings.has(name), name)
  for (const [, path] of README.matchAll(/\]\((?!https?:)([^)#]+)/g)) {
    t.ok(existsSync(join(ROOT, path!)), path!)
  }
  const { dependencies } = JSON.parse(read('package.json')) as { dependencies: object }
  t.ok('uWebSockets.js' in dependencies, 'the name to install the upstream package by')
})
