// What the store is: its identity in `store.json`, beside the log that it names. Source: PROTOCOL
// 3.0, 3.16.

import { existsSync, readFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import type { StoreIdentity } from '../../journal.ts'
import { agreedKey, type SecretsKeyNames } from '../../secrets-key.ts'
import type { LogGap } from '../../segment-log/scan.ts'
import { JournalDamage } from '../../damage.ts'
import { JOURNAL_FORMAT } from '../../lmdb/layout.ts'
import { syncFolder, writeSynced } from '../synced-file.ts'

const SHARDS_DEFAULT = 32
const SHARDS_MAX = 4096
export const STORE_FILE = 'store.json'

/** The identity of an embedded store. */
export interface EmbeddedIdentity extends StoreIdentity {
  /** UUID of the log: every segment file names it. It stays when losses are accepted. */
  readonly log: string
  /** Where in the log nothing can be read, as was accepted with the losses. */
  readonly gaps: readonly LogGap[]
}

/** What `store.json` says, or null when there is none. Throws JournalDamage, and Error. */
export function readIdentity(dir: string): EmbeddedIdentity | null {
  const path = join(dir, STORE_FILE)
  if (!existsSync(path)) return null
  const { check, ...identity } = parsed(path)
  const isWhole = check === checkOf(identity)
  // The first form had no checksum.
  if (check !== undefined && !isWhole) throw damaged(path, "it isn't what was written")
  if (identity.format !== JOURNAL_FORMAT) throw new Error(otherFormat(path, identity.format))
  if (!isWhole) throw damaged(path, "it isn't what was written")
  // The first stores had no secret; who opens one for writing gives it one.
  return { ...identity, secret: identity.secret ?? '' }
}

type Written = Omit<EmbeddedIdentity, 'secret'> & {
  readonly secret?: string
  readonly check?: number
}

function parsed(path: string): Written {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Written
  } catch {
    throw damaged(path, 'it is not JSON')
  }
}

function damaged(path: string, what: string): JournalDamage {
  return new JournalDamage(
    `${path}: ${what}: nothing of the store can be read, every shard from offset 1 on. Nothing ` +
      'was changed. Way back: restore the file from a backup',
    { file: path, shard: null, offset: null },
  )
}

function otherFormat(path: string, format: unknown): string {
  if (typeof format === 'number' && format > JOURNAL_FORMAT) {
    return (
      `${path}: the store's format is ${format}, this version of Kontor reads ` +
      `${JOURNAL_FORMAT}: start the newer version`
    )
  }
  return (
    `${path}: the store's format is ${String(format)}, this version of Kontor reads ` +
    `${JOURNAL_FORMAT}: start the version that made it, or an empty directory`
  )
}

function checkOf(identity: object): number {
  return crc32(JSON.stringify(identity))
}

/** Writes `store.json` so that after a crash it is there whole or as it was. */
export function writeIdentity(dir: string, identity: EmbeddedIdentity): void {
  const path = join(dir, STORE_FILE)
  const made = `${path}.new`
  writeSynced(made, `${JSON.stringify({ ...identity, check: checkOf(identity) }, null, 2)}\n`)
  renameSync(made, path)
  syncFolder(dir)
}

export interface NewStore {
  /** null: as the store says, or the default. */
  readonly shards: number | null
  readonly newUuid: () => string
  readonly newSecret: () => string
  /** null: secrets are not read. */
  readonly secretsKeys?: SecretsKeyNames | null
  /** Before it is a store, so that one without a log has lost it. */
  readonly beginLog: (identity: EmbeddedIdentity) => Promise<void>
}

/**
 * The identity of the store, made now if this is a new one. Throws when `shards` is another number
 * than the store's, naming both.
 */
export async function establishIdentity(
  dir: string,
  { shards, newUuid, newSecret, secretsKeys = null, beginLog }: NewStore,
): Promise<EmbeddedIdentity> {
  const there = readIdentity(dir)
  if (there === null) {
    const bare = newIdentity(shards ?? SHARDS_DEFAULT, newUuid, newSecret())
    const made = withKey(bare, secretsKeys)
    await beginLog(made)
    writeIdentity(dir, made)
    return made
  }
  if (shards !== null && shards !== there.shards) {
    throw new Error(
      `${dir}: the store was made with ${there.shards} shards and ${shards} are ` +
        'configured (KONTOR_SHARDS): leave the setting out, or set it to what the store has',
    )
  }
  const bare = there.secret === '' ? { ...there, secret: newSecret() } : there
  const whole = withKey(bare, secretsKeys)
  if (whole !== there) writeIdentity(dir, whole)
  return whole
}

/** Throws WrongSecretsKey. */
function withKey(
  identity: EmbeddedIdentity,
  secretsKeys: SecretsKeyNames | null,
): EmbeddedIdentity {
  const stored = identity.secretsKey ?? null
  const name = secretsKeys === null ? stored : agreedKey(stored, secretsKeys)
  return name === null || name === stored ? identity : { ...identity, secretsKey: name }
}

function newIdentity(shards: number, newUuid: () => string, secret: string): EmbeddedIdentity {
  if (shards < 1 || shards > SHARDS_MAX || (shards & (shards - 1)) !== 0) {
    throw new Error(`the number of shards must be a power of two up to ${SHARDS_MAX}: ${shards}`)
  }
  const [generation, log] = [newUuid(), newUuid()]
  return { format: JOURNAL_FORMAT, shards, generation, secret, log, gaps: [] }
}
