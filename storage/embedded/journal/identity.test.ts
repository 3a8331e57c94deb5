// The identity of an embedded store: made once, its secret too, which older stores don't have.

import t from 'tap'
import type { Test } from 'tap'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import type { SecretsKeyNames } from '../../secrets-key.ts'
import { establishIdentity, readIdentity } from './identity.ts'
import type { EmbeddedIdentity, NewStore } from './identity.ts'

function folderFor(t: Test): string {
  const dir = mkdtempSync(join(tmpdir(), 'kontor-identity-'))
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

let made = 0
const open = (dir: string, change: Partial<NewStore> = {}): Promise<EmbeddedIdentity> =>
  establishIdentity(dir, {
    shards: null,
    newUuid: () => `uuid ${++made}`,
    newSecret: () => `secret ${++made}`,
    beginLog: () => Promise.resolve(),
    ...change,
  })

t.test('the secret is made with the store, and stays', async (t) => {
  const dir = folderFor(t)
  const { secret } = await open(dir)
  t.match(secret, /^secret/)
  t.equal((await open(dir)).secret, secret)
  t.equal(readIdentity(dir)!.secret, secret)
  t.equal(statSync(join(dir, 'store.json')).mode & 0o777, 0o600, 'for its owner alone')
})

t.test('a store that has none gets one when it is opened for writing', async (t) => {
  const dir = folderFor(t)
  const { secret: _, ...rest } = await open(dir)
  const path = join(dir, 'store.json')
  const check = crc32(JSON.stringify(rest))
  writeFileSync(path, JSON.stringify({ ...rest, check }))
  t.equal(readIdentity(dir)!.secret, '')
  t.match(readFileSync(path, 'utf8'), /"shards"/)
  const { secret, ...same } = await open(dir)
  t.match(secret, /^secret/)
  t.strictSame(same, rest, 'and nothing else changes')
  t.equal((await open(dir)).secret, secret)
})

t.test('it is a store once its log was begun', async (t) => {
  const dir = folderFor(t)
  const begun: EmbeddedIdentity[] = []
  const beginLog = async (identity: EmbeddedIdentity): Promise<void> => {
    begun.push(identity)
    t.notOk(existsSync(join(dir, 'store.json')), 'one without a log would have lost it')
    if (begun.length === 1) throw new Error('the disk is full')
  }
  await t.rejects(open(dir, { beginLog }), /the disk is full/)
  t.equal(readIdentity(dir), null)
  const store = await open(dir, { beginLog })
  t.strictSame(readIdentity(dir), store)
  t.strictSame(begun.at(-1), store)
  t.strictSame(await open(dir, { beginLog }), store, 'it is begun once')
  t.equal(begun.length, 2)
})

t.test('a power of two of shards, up to a bound', async (t) => {
  for (const shards of [0, -4, 3, 48, 8_192]) {
    const dir = folderFor(t)
    await t.rejects(open(dir, { shards }), /must be a power of two up to 4096: /, `${shards}`)
    t.notOk(existsSync(join(dir, 'store.json')))
  }
  for (const shards of [1, 2, 64, 4_096]) {
    const dir = folderFor(t)
    t.equal((await open(dir, { shards })).shards, shards)
    t.equal((await open(dir)).shards, shards)
  }
})

t.test('the name of the key that its secrets are encrypted with is kept', async (t) => {
  const dir = folderFor(t)
  const keys = (current: string | null, ...known: string[]): { secretsKeys: SecretsKeyNames } => {
    return { secretsKeys: { current, known } }
  }
  t.notOk('secretsKey' in (await open(dir)), 'there is none yet')
  const { secret } = await open(dir, keys('first', 'first'))
  t.equal(readIdentity(dir)!.secretsKey, 'first')
  t.equal((await open(dir)).secretsKey, 'first', 'who reads none changes nothing')
  await t.rejects(open(dir, keys(null)), { name: 'WrongSecretsKey' })
  await t.rejects(open(dir, keys('other', 'other')), { name: 'WrongSecretsKey' })
  t.equal(readIdentity(dir)!.secretsKey, 'first')
  await open(dir, keys('second', 'second', 'first'))
  t.equal(readIdentity(dir)!.secretsKey, 'second')
  t.equal(readIdentity(dir)!.secret, secret)
})
