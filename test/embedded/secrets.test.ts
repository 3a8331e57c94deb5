// Secrets of the registry on the disk of a real node: with a key no byte of its directory, nor of a
// backup, holds one; and a start with another key, or none, is refused with what would be right.

import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { NodeProcess } from '../harness/node-process.ts'

const BACKUP = join(import.meta.dirname, '..', '..', 'cli', 'backup.ts')
const EXIT_CONFIG = 78
const KEY = randomBytes(32).toString('base64')
const SECRET = '/resources/registry/apps/shop/password'

t.setTimeout(120_000)

/** Files of a folder whose bytes hold a text. */
function filesWith(dir: string, text: string): string[] {
  return (readdirSync(dir, { recursive: true }) as string[]).filter((name) => {
    const path = join(dir, name)
    return statSync(path).isFile() && readFileSync(path).includes(text)
  })
}

const dir = join(t.testdir({}), 'data')
const to = join(t.testdir({}), 'backup')

async function withNode(env: Record<string, string>, use: (node: NodeProcess) => Promise<unknown>) {
  const node = new NodeProcess(env, dir)
  try {
    await node.start()
    await use(node)
    t.equal(await node.stop(), 0)
  } finally {
    await node.kill()
  }
}

function put(node: NodeProcess, value: string, path = `${SECRET}?isSecret=true`) {
  return node.ask(path, { body: value })
}

/** What it says when it is not started. */
async function refusal(env: Record<string, string>): Promise<string> {
  const node = new NodeProcess(env, dir)
  node.launch([])
  t.equal(await node.ended(), EXIT_CONFIG)
  return node.output
}

t.test('without a key they are kept in clear text, and stay readable with one', async (t) => {
  await withNode({}, async (node) => {
    t.equal((await put(node, 'clear-of-old')).status, 200)
  })
  t.not(filesWith(dir, 'clear-of-old').length, 0)
})

t.test('with a key nothing that is kept holds one', async (t) => {
  await withNode({ KONTOR_SECRETS_KEY: KEY }, async (node) => {
    for (let i = 0; i < 40; i++) await put(node, `sealed-of-new-${i}`)
    await put(node, 'other-of-new', '/resources/registry/apps/shop/other?isSecret=true')
    await put(node, 'not-secret', '/resources/registry/apps/shop/label')
    const answer = await node.ask(SECRET)
    t.strictSame(answer.json(), { key: 'apps/shop/password', value: null, isSecret: true })
    t.notMatch(node.output, /of-new/)
    const flags = ['--disable-warning=ExperimentalWarning']
    const ran = spawnSync(process.execPath, [...flags, BACKUP, '--data', dir, '--to', to])
    t.equal(ran.status, 0, ran.stderr.toString())
  })
  for (const at of [dir, to]) {
    t.strictSame(filesWith(at, 'of-new'), [], at)
    t.not(filesWith(at, 'not-secret').length, 0, 'what is no secret is there')
    t.strictSame(filesWith(at, KEY), [])
  }
  t.match(readFileSync(join(to, 'store.json'), 'utf8'), /"secretsKey"/)
})

t.test('another key, or none, is refused before anything is taken', async (t) => {
  t.match(
    await refusal({}),
    /encrypted with the key \S+, and this process has none.*KONTOR_SECRETS_KEY/,
  )
  const other = randomBytes(32).toString('base64')
  t.match(await refusal({ KONTOR_SECRETS_KEY: other }), /KONTOR_SECRETS_KEYS_OLD/)
  t.match(await refusal({ KONTOR_SECRETS_KEY: 'short' }), /this value is not valid; must be base64/)
  const rotated = { KONTOR_SECRETS_KEY: other, KONTOR_SECRETS_KEYS_OLD: KEY }
  await withNode(rotated, (node) => put(node, 'rotated-of-new'))
  t.strictSame(filesWith(dir, 'of-new'), [])
  t.match(await refusal({ KONTOR_SECRETS_KEY: KEY }), /encrypted with the key/, 'the newer one is')
  const third = { KONTOR_SECRETS_KEY: randomBytes(32).toString('base64') }
  const tooFew = { ...third, KONTOR_SECRETS_KEYS_OLD: other }
  await withNode(tooFew, async (node) => {
    const [line] = node.output.split('\n').filter((one) => one.includes('does not have'))
    t.match(line, /"count":1\b/, 'one value is as the first key has sealed it')
  })
})
