// What the store is: its identity in the data file, and the same beside it in `store.json`, so that
// a data file that is gone is not taken for a new store. It stands between the opening of a journal
// and both files. Source: PROTOCOL 3.0, 3.16.

import { existsSync, readFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { SYSTEM_SHARD } from '../../protocol/ids.ts'
import type { StoreIdentity } from '../journal.ts'
import { Arena } from './journal-arena.ts'
import { JournalDamage } from './journal-damage.ts'
import type { JournalEnvironment } from './journal-environment.ts'
import { derivedBody, isWhole, JOURNAL_FORMAT, NIL_UUID } from './journal-layout.ts'
import { encodeDerived, encodeHead, encodeNumber } from './journal-rows.ts'
import { syncFolder, writeSynced } from './synced-file.ts'

const SHARDS_DEFAULT = 32
const SHARDS_MAX = 4096
const STORE_FILE = 'store.json'
const IDENTITY_KEY = Buffer.from('identity')

/** The identity in the data file, or null when none was written yet. Throws JournalDamage. */
export function readIdentity(env: JournalEnvironment): StoreIdentity | null {
  const value = env.meta.get(IDENTITY_KEY)
  if (value === undefined) return null
  if (!isWhole(IDENTITY_KEY, value)) {
    throw new JournalDamage(
      `${env.file}: the row that says what this store is doesn't match its checksum. Nothing was ` +
        'changed. Way back: restore the data directory from a backup',
      { file: env.file, shard: null, offset: null },
    )
  }
  const identity = JSON.parse(derivedBody(value).toString()) as StoreIdentity
  if (identity.format > JOURNAL_FORMAT) {
    throw new Error(
      `${env.file}: the store's format is ${identity.format}, this version of Kontor reads up to ` +
        `${JOURNAL_FORMAT}: start the newer version`,
    )
  }
  return identity
}

/** Puts the identity; within a transaction. */
export function putIdentity(env: JournalEnvironment, identity: StoreIdentity): void {
  const body = Buffer.from(JSON.stringify(identity))
  const row = encodeDerived(new Arena(), IDENTITY_KEY, { shard: 0, offset: 0 }, body)
  env.meta.putSync(row.key, row.value)
}

/** What `store.json` says, or null when there is none. */
export function readStoreFile(dir: string): StoreIdentity | null {
  const path = join(dir, STORE_FILE)
  if (!existsSync(path)) return null
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as StoreIdentity
  } catch (error) {
    throw new Error(`${path} is not JSON: restore it, or delete it`, { cause: error })
  }
}

/** Writes `store.json` so that after a crash it is there whole or as it was. */
export function writeStoreFile(dir: string, identity: StoreIdentity): void {
  const path = join(dir, STORE_FILE)
  const text = `${JSON.stringify(identity, null, 2)}\n`
  if (existsSync(path) && readFileSync(path, 'utf8') === text) return
  const made = `${path}.new`
  writeSynced(made, text)
  renameSync(made, path)
  syncFolder(dir)
}

/**
 * The identity of the store, made now if this is a new one. Throws when `shards` is another number
 * than the store's, naming both.
 */
export function establishIdentity(
  env: JournalEnvironment,
  shards: number | null,
  newGeneration: () => string,
): StoreIdentity {
  const identity = readIdentity(env) ?? makeStore(env, shards ?? SHARDS_DEFAULT, newGeneration())
  if (shards !== null && shards !== identity.shards) {
    throw new Error(
      `${env.file}: the store was made with ${identity.shards} shards and ${shards} are ` +
        'configured (KONTOR_SHARDS): leave the setting out, or set it to what the store has',
    )
  }
  return identity
}

function makeStore(env: JournalEnvironment, shards: number, generation: string): StoreIdentity {
  if (shards < 1 || shards > SHARDS_MAX || (shards & (shards - 1)) !== 0) {
    throw new Error(`the number of shards must be a power of two up to ${SHARDS_MAX}: ${shards}`)
  }
  // Looked for again under the lock: another process may be making the same store.
  return env.root.transactionSync(() => {
    const there = readIdentity(env)
    if (there !== null) return there
    for (let shard = SYSTEM_SHARD; shard < shards; shard++) {
      const start = { epoch: 0, head: 0, groupCrc: 0, commitId: NIL_UUID }
      const head = encodeHead(new Arena(256), shard, start)
      env.heads.putSync(head.key, head.value, 0)
      env.epochs.putSync(head.key, encodeNumber(shard, 0).value, 0)
    }
    const identity = { format: JOURNAL_FORMAT, shards, generation }
    putIdentity(env, identity)
    return identity
  })
}
