// The embedded journal: the port on one LMDB data file. It stands between cluster/sharding and the
// data directory. One transaction at a time carries the waiting groups of all shards; each group's
// epoch and head are compared inside it, so that a second process on the same directory fences the
// first. Source: PROTOCOL 3.16, ARCHITECTURE 2.

import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { LIMITS } from '../../config/limits.ts'
import { uuidMaker, type FillRandom } from '../../protocol/ids.ts'
import type {
  AppendOutcome,
  ClaimedShard,
  DerivedRow,
  DerivedStore,
  Group,
  Journal,
  JournalReader,
  LogStore,
  StoreIdentity,
} from '../journal.ts'
import { checkTail, shardsOf } from './journal-check.ts'
import { Committer } from './journal-committer.ts'
import { ExpiryPass, type ClockOf } from './journal-expiry.ts'
import { JournalDamage, logDamage } from './journal-damage.ts'
import { DATA_FILE, openEnvironment, type JournalEnvironment } from './journal-environment.ts'
import { checkDataFile } from './journal-file.ts'
import {
  establishIdentity,
  readIdentity,
  readStoreFile,
  writeStoreFile,
} from './journal-identity.ts'
import { consumerKey, derivedOffset, imageKey, logKey, shardKey } from './journal-layout.ts'
import { acceptLoss } from './journal-loss.ts'
import { EmbeddedDerivedReader, EmbeddedLogReader, getDerived } from './journal-read.ts'
import { CLAIMS_KEY, newToken } from './journal-places.ts'
import { Reserve } from './journal-reserve.ts'
import { Room } from './journal-room.ts'
import { encodeNumber } from './journal-rows.ts'

/** What of a pino logger the journal uses. */
export interface JournalLog {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

export interface EmbeddedJournalOptions {
  /** Made when it is missing. */
  readonly dir: string
  /** null: as the store says, 32 for a new one. */
  readonly shards: number | null
  readonly log: JournalLog
  readonly random: FillRandom
  /** Milliseconds since 1970: for the generation's UUID. */
  readonly clock: () => number
  /** Monotonic milliseconds. */
  readonly now: () => number
  /** A commit has failed: ends the process at once. */
  readonly onFatal: (error: Error) => void
  /** `--accept-loss shard:offset`. */
  readonly acceptLoss?: readonly { readonly shard: number; readonly offset: number }[]
  /** LIMITS.journalReserveBytes unless said otherwise. */
  readonly reserveBytes?: number
  /** LIMITS.journalRoomBytes unless said otherwise. */
  readonly roomBytes?: number
}

/**
 * Opens the journal in `dir`, or makes one. Throws JournalDamage when it is not whole, and Error
 * when it is another store than it is configured as; nothing was changed then.
 */
export async function openEmbeddedJournal(options: EmbeddedJournalOptions): Promise<Journal> {
  const { dir } = options
  mkdirSync(dir, { recursive: true })
  refuseMissingFile(dir)
  const env = openEnvironment(dir, false)
  try {
    const identity = checkedIdentity(env, options)
    const bytes = options.reserveBytes ?? LIMITS.journalReserveBytes
    const reserve = new Reserve({ dir, bytes, random: options.random })
    await reserve.make()
    return new EmbeddedJournal(env, identity, reserve, options)
  } catch (error) {
    await env.root.close()
    throw error
  }
}

/**
 * Opens the journal in `dir` for reading, in another thread or process than the one that writes
 * it and has checked it. Every row is checked as it is read.
 */
export function openEmbeddedJournalReader(options: { readonly dir: string }): JournalReader {
  const { dir } = options
  if (!existsSync(join(dir, DATA_FILE))) throw new Error(`${dir} holds no journal`)
  const env = openEnvironment(dir, true)
  const identity = readIdentity(env)
  if (identity === null) throw new Error(`${dir} holds a journal that was never opened`)
  return {
    identity,
    log: new EmbeddedLogReader(env),
    derived: new EmbeddedDerivedReader(env),
    close: () => env.root.close(),
  }
}

/** A data file that is gone or empty is no new store when there was one. */
function refuseMissingFile(dir: string): void {
  const file = join(dir, DATA_FILE)
  const known = readStoreFile(dir)
  if (checkDataFile(file) || known === null) return
  throw new JournalDamage(
    `${file}: the store of ${known.shards} shards that store.json tells of is not there, every ` +
      'shard is lost from offset 1 on. Nothing was changed. Ways back: restore the data ' +
      'directory from a backup; or start with an empty directory',
    { file, shard: null, offset: null },
  )
}

function checkedIdentity(env: JournalEnvironment, options: EmbeddedJournalOptions): StoreIdentity {
  const newUuid = uuidMaker(options.random)
  const newGeneration = () => newUuid(options.clock())
  let identity = establishIdentity(env, options.shards, newGeneration)
  const accepted = options.acceptLoss ?? []
  for (const shard of shardsOf(identity)) {
    const finding = checkTail(env, identity, shard)
    if (finding === null) continue
    const damage = logDamage(finding.what, env.file, shard, finding.good)
    const isAccepted = accepted.some((at) => at.shard === shard && at.offset === finding.good)
    if (!isAccepted) throw damage
    identity = acceptLoss(env, identity, { shard, offset: finding.good }, newGeneration())
    options.log.warn({ shard, offset: finding.good }, `accepted a loss: ${damage.message}`)
  }
  writeStoreFile(options.dir, identity)
  return identity
}

class EmbeddedJournal implements Journal {
  readonly identity: StoreIdentity
  readonly log: LogStore
  readonly derived: DerivedStore
  readonly #env: JournalEnvironment
  readonly #committer: Committer

  constructor(
    env: JournalEnvironment,
    identity: StoreIdentity,
    reserve: Reserve,
    options: EmbeddedJournalOptions,
  ) {
    this.#env = env
    this.identity = identity
    this.#committer = new Committer({
      env,
      reserve,
      room: new Room(options.dir, env.file),
      roomBytes: options.roomBytes ?? LIMITS.journalRoomBytes,
      now: options.now,
      random: options.random,
      onFatal: (error) => {
        options.log.error(
          { err: error },
          `${env.file}: a commit failed, what is on disk is unknown`,
        )
        options.onFatal(error)
      },
      onFull: (isFull) => {
        if (isFull) options.log.error({ file: env.file }, 'the disk is full: writes are refused')
        else options.log.info({ file: env.file }, 'the disk has room again')
      },
    })
    this.log = new EmbeddedLog(env, this.#committer, options.random)
    this.derived = new EmbeddedDerived(env, this.#committer, identity)
  }

  /** Writes what waits, then closes the data file. */
  async close(): Promise<void> {
    await this.#committer.close()
    await this.#env.root.close()
  }
}

/** The row of claims says all by its version. */
const NO_BYTES = Buffer.alloc(1)
/** Rows that one transaction of a trim deletes: appends wait for it. */
const TRIM_ROWS = 1_000

class EmbeddedLog extends EmbeddedLogReader implements LogStore {
  readonly appendsMax = 1
  readonly groupsMax = Number.MAX_SAFE_INTEGER
  readonly #committer: Committer
  readonly #random: FillRandom

  constructor(env: JournalEnvironment, committer: Committer, random: FillRandom) {
    super(env)
    this.#committer = committer
    this.#random = random
  }

  append(groups: readonly Group[]): Promise<readonly AppendOutcome[]> {
    return this.#committer.append(groups)
  }

  async claim(shard: number): Promise<ClaimedShard> {
    const { epochs } = this.env
    const key = shardKey(shard)
    for (let attempt = 0; attempt < LIMITS.claimAttemptsMax; attempt++) {
      const epoch = this.epochNow(shard) + 1
      let isMine = false
      const written = await this.#committer.essential(() => {
        const isIn = epochs.ifVersion(key, epoch - 1, () => {
          void epochs.put(key, encodeNumber(shard, epoch).value, epoch)
          // Whoever commits under the conditions of before must look again.
          void epochs.put(CLAIMS_KEY, NO_BYTES, newToken(this.#random))
        })
        return [isIn.then((is) => (isMine = is))]
      })
      if (written !== 'committed') {
        const why = written === 'full' ? 'the disk is full' : 'an earlier commit failed'
        throw new Error(`${this.env.file}: shard ${shard} can't be claimed: ${why}`)
      }
      if (!isMine) continue
      const flush = getDerived(this.env, this.env.consumers, consumerKey(shard, 'flush'))
      const { head } = this.head(shard)
      return { epoch, head, flush: flush === null ? 0 : derivedOffset(flush) }
    }
    throw new Error(
      `${this.env.file}: shard ${shard} can't be claimed: another process keeps claiming it`,
    )
  }

  async trim(shard: number, epoch: number, upTo: number): Promise<void> {
    const { epochs, log, trims, root } = this.env
    const range = { start: logKey(shard, 0), end: logKey(shard, upTo + 1), limit: TRIM_ROWS }
    for (;;) {
      root.resetReadTxn()
      const keys = [...log.getKeys(range)]
      const last = keys.at(-1)
      if (last === undefined) return
      const trimmed = Buffer.from(last).readUIntBE(2, 6)
      let isMine = false
      const written = await this.#committer.essential(() => {
        const isIn = epochs.ifVersion(shardKey(shard), epoch, () => {
          for (const key of keys) void log.remove(key)
          void trims.put(shardKey(shard), encodeNumber(shard, trimmed).value)
        })
        return [isIn.then((is) => (isMine = is))]
      })
      if (written !== 'committed' || !isMine || keys.length < TRIM_ROWS) return
    }
  }
}

class EmbeddedDerived extends EmbeddedDerivedReader implements DerivedStore {
  readonly #committer: Committer
  readonly #identity: StoreIdentity

  constructor(env: JournalEnvironment, committer: Committer, identity: StoreIdentity) {
    super(env)
    this.#committer = committer
    this.#identity = identity
  }

  write(shard: number, epoch: number, rows: readonly DerivedRow[]): Promise<AppendOutcome> {
    return this.#committer.write(shard, epoch, rows)
  }

  async expire(clockOf: ClockOf): Promise<void> {
    const shards = [...shardsOf(this.#identity)]
    for (const shard of shards) {
      const clock = clockOf(shard)
      if (clock !== null) this.#committer.tell(shard, clock)
    }
    const options = { env: this.env, identity: this.#identity, clockOf }
    const pass = new ExpiryPass(options, this.env.lives!, shards)
    while ((await this.#committer.remove(() => pass.next())) === 'removed');
  }

  async trimImages(): Promise<void> {
    const newest = this.imageBefore(Number.MAX_SAFE_INTEGER)
    const kept = newest === null ? null : this.imageBefore(newest)
    if (kept === null) return
    const keys = [...this.env.images.getKeys({ end: imageKey(kept, 0) })]
    await this.#committer.essential(() => {
      for (const key of keys) void this.env.images.remove(key)
      return []
    })
  }
}
