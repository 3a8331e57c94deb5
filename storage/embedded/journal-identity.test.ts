// The identity of an embedded store: made once, its secret too, which older stores don't have.

import t from 'tap'
import type { Test } from 'tap'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { establishIdentity, readIdentity } from './journal-identity.ts'
import type { EmbeddedIdentity } from './journal-identity.ts'

function folderFor(t: Test): string {
  const dir = mkdtempSync(join(tmpdir(), 'kontor-identity-'))
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

let made = 0
const open = (dir: string): Promise<EmbeddedIdentity> =>
  establishIdentity(dir, {
    shards: null,
    newUuid: () => `uuid ${++made}`,
    newSecret: () => `secret ${++made}`,
    beginLog: () => Promise.resolve(),
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
