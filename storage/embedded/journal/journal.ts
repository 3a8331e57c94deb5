// The embedded journal: the port on a log of segment files and one LMDB data file. The log is the
// store: an entry is written there once and stays; the data file has where it lies, and what is
// small by nature, and is made anew from the log when it is lost. Source: PROTOCOL 3.16,
// ARCHITECTURE 2.

import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { LIMITS } from '../../../config/limits.ts'
import { uuidMaker, type FillRandom } from '../../../protocol/ids.ts'
import type {
  AppendOutcome,
  DerivedRow,
  DerivedStore,
  Journal,
  JournalReader,
} from '../../journal.ts'
import type { LogStore, StoreIdentity } from '../../journal.ts'
import { makeStoreSecret } from '../../secret.ts'
import type { Disk } from '../../segment-log/disk.ts'
import type { SecretsKeyNames } from '../../secrets-key.ts'
import { listFiles } from '../../segment-log/header.ts'
import { missingManifest, readManifest, writeManifest } from '../../segment-log/manifest.ts'
import { NodeDisk } from '../../segment-log/node-disk.ts'
import { PlaceReader } from '../../segment-log/place-reader.ts'
import { SegmentLog } from '../../segment-log/segment-log.ts'
import { ShardHeads } from '../../segment-log/shard-heads.ts'
import { catchUp, checkLogId } from './catch-up.ts'
import { getCovered } from '../../lmdb/covered.ts'
import { JournalDamage } from '../../damage.ts'
import { DATA_FILE, openEnvironment, type JournalEnvironment } from '../../lmdb/environment.ts'
import { ExpiryPass, type ClockOf } from '../../lmdb/expiry.ts'
import { checkDataFile } from '../../lmdb/pages.ts'
import { establishIdentity, readIdentity, STORE_FILE, writeIdentity } from './identity.ts'
import type { EmbeddedIdentity } from './identity.ts'
import { imageKey } from '../../lmdb/layout.ts'
import { EmbeddedLog, FrameIntake } from './log.ts'
import { dropLost, identityWithout, lossDamage, lossIn } from './loss.ts'
import { EmbeddedDerivedReader, EmbeddedLogReader, type LogSource } from './read.ts'
import { Room, roomKept } from '../../lmdb/room.ts'
import { JournalWriter } from '../../lmdb/writer.ts'
import { UpkeepThrottle, UpkeepStopped } from '../log/upkeep-throttle.ts'
import { LogTail } from '../../segment-log/tail.ts'
import { LogUpkeep, type UpkeepReport } from '../log/upkeep.ts'
import { LogView } from '../log/view.ts'
import { refuseMoved } from '../moved-store.ts'
import { NoRoomToTurn } from '../../lmdb/place-turner.ts'
import { SharedEnd } from '../log/shared-end.ts'
import { shardsOf } from '../store-shards.ts'

/** Folder of the segment files in the data directory. */
export const LOG_FOLDER = 'log'

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
  /** null, the default: secrets are not read. */
  readonly secretsKeys?: SecretsKeyNames | null
  readonly log: JournalLog
  readonly random: FillRandom
  /** Milliseconds since 1970: for the generation's UUID. */
  readonly clock: () => number
  /** A commit has failed: ends the process at once. */
  readonly onFatal: (error: Error) => void
  /** `--accept-loss shard:offset`. */
  readonly acceptLoss?: readonly { readonly shard: number; readonly offset: number }[]
  /** What `roomKept` says unless said otherwise. */
  readonly roomBytes?: number
  /** LIMITS.segmentLog.fileBytes unless said otherwise. */
  readonly segmentBytes?: readonly number[]
  /** Waits between steps of the upkeep; timers unless said otherwise. */
  readonly pause?: (ms: number) => Promise<void>
}

/** What another thread of the process needs in order to read the journal. */
export interface JournalAccess {
  readonly dir: string
  /** Of SharedEnd. */
  readonly end: SharedArrayBuffer
}

export interface EmbeddedJournal extends Journal {
  readonly access: JournalAccess
  /**
   * Gives back what the log holds of entries that have had their time, as `derived.expire` has it
   * done in the background; resolves when nothing more is to be done now.
   */
  giveBack(clockOf: ClockOf): Promise<UpkeepReport>
}

/**
 * Opens the journal in `dir`, or makes one. Throws JournalDamage when it is not whole, and Error
 * when it is another store than it is configured as; nothing was changed then.
 */
export async function openEmbeddedJournal(
  options: EmbeddedJournalOptions,
): Promise<EmbeddedJournal> {
  const { dir, shards, secretsKeys = null, random, clock } = options
  mkdirSync(dir, { recursive: true })
  refuseMoved(dir)
  refuseMissingStore(dir)
  const disk = (): NodeDisk => new NodeDisk(join(dir, LOG_FOLDER))
  const makeUuid = uuidMaker(random)
  const newUuid = (): string => makeUuid(clock())
  const newSecret = (): string => makeStoreSecret(random)
  const beginLog = ({ log: generation }: EmbeddedIdentity): Promise<void> => {
    return writeManifest(disk(), { generation, last: 0, end: null })
  }
  const given = { shards, newUuid, newSecret, secretsKeys, beginLog }
  const made = await establishIdentity(dir, given)
  const log = disk()
  if (readManifest(log, made.log) === null) throw missingManifest(log)
  const env = openData(options)
  try {
    checkLogId(env, made)
    const identity = withoutLoss(options, { identity: made, disk: log, env }, newUuid)
    return await openStores(options, { identity, disk: log, env })
  } catch (error) {
    await env.root.close()
    throw error
  }
}

/**
 * Opens the journal for reading, in another thread than the one that writes it and has checked it.
 * Everything is checked as it is read.
 */
export function openEmbeddedJournalReader({ dir, end: buffer }: JournalAccess): JournalReader {
  const identity = readIdentity(dir)
  if (identity === null) throw new Error(`${dir} holds no journal`)
  const env = openEnvironment(dir, true)
  const disk = new NodeDisk(join(dir, LOG_FOLDER))
  const places = new PlaceReader(disk)
  const { log: generation, gaps } = identity
  const view = new LogView({ env, disk, generation, gaps, end: new SharedEnd(buffer) })
  const tail = (): LogTail => view.tail()
  return {
    identity,
    log: new EmbeddedLogReader({
      ...{ env, places, tail },
      status: (shard) => view.status(shard),
      renew: () => view.renew(),
    }),
    derived: new EmbeddedDerivedReader(env, places),
    async close() {
      view.close()
      places.close()
      await env.root.close()
    },
  }
}

/** A log without the file that says what store it is, or the other way round, is no new store. */
function refuseMissingStore(dir: string): void {
  const log = join(dir, LOG_FOLDER)
  const hasLog = existsSync(log) && listFiles(new NodeDisk(log)).length > 0
  const hasData = existsSync(join(dir, DATA_FILE))
  const file = join(dir, STORE_FILE)
  if (existsSync(file) || (!hasLog && !hasData)) return
  throw new JournalDamage(
    `${file}: the file that says what store this is is not there, nothing of any shard can be ` +
      'read, from offset 1 on. Nothing was changed. Ways back: restore the file from a backup; or ' +
      'start with an empty directory',
    { file, shard: null, offset: null },
  )
}

/** The data file; one that can't be used goes: it is made anew from the log. */
function openData({ dir, log }: EmbeddedJournalOptions): JournalEnvironment {
  const file = join(dir, DATA_FILE)
  try {
    checkDataFile(file)
  } catch (error) {
    if (!(error instanceof JournalDamage)) throw error
    log.error({ file }, `what is derived from the log is made anew: ${error.message}`)
    for (const name of [DATA_FILE, 'lock.mdb']) rmSync(join(dir, name), { force: true })
  }
  return openEnvironment(dir, false)
}

/** The store without what is lost at the end of its log, if that is accepted; throws if not. */
function withoutLoss(
  { dir, log, acceptLoss = [] }: EmbeddedJournalOptions,
  { identity, disk, env }: Opened,
  newUuid: () => string,
): EmbeddedIdentity {
  const loss = lossIn(disk, identity, getCovered(env))
  if (loss === null) return identity
  const damage = lossDamage(disk, loss)
  const isAccepted = loss.shards.every(({ shard, offset }) => {
    return acceptLoss.some((at) => at.shard === shard && at.offset === offset)
  })
  // Where nothing of any shard is lost, as of a claim, there is nothing to be accepted.
  if (!isAccepted) throw damage
  const isLess = loss.shards.length > 0
  const next = identityWithout(identity, loss, isLess ? newUuid() : identity.generation)
  dropLost(env, loss)
  writeIdentity(dir, next)
  log.warn({ shards: loss.shards }, `${isLess ? 'accepted a loss' : 'lost'}: ${damage.message}`)
  return next
}

interface Opened {
  readonly identity: EmbeddedIdentity
  readonly disk: Disk
  readonly env: JournalEnvironment
}

async function openStores(
  options: EmbeddedJournalOptions,
  { identity, disk, env }: Opened,
): Promise<EmbeddedJournal> {
  const { dir, random, log, segmentBytes, roomBytes = roomKept(identity.shards + 1) } = options
  const onFatal = (error: Error): void => {
    log.error({ err: error }, `${dir}: a commit failed, what is on disk is unknown`)
    options.onFatal(error)
  }
  const room = new Room(dir, env.file)
  let intake: FrameIntake | null = null
  const segments = await SegmentLog.open(disk, {
    generation: identity.log,
    gaps: identity.gaps,
    onFatal,
    onCommitted: (frame) => intake!.take(frame),
    synced: getCovered(env),
    // A file ahead must not take what is kept back for finishing what is committed.
    mayMake: (bytes) => room.left() - bytes >= roomBytes,
    ...(segmentBytes && { segmentBytes }),
  })
  const tail = new LogTail()
  const places = new PlaceReader(disk)
  const source: LogSource = {
    ...{ env, places, tail: () => tail },
    status: (shard) => segments.status(shard),
  }
  const reader = new EmbeddedLogReader(source)
  const writer = new JournalWriter({
    ...{ env, room, roomBytes, random, tail, onFatal },
    epochOf: (shard) => segments.status(shard).epoch,
    placeOf: (shard, row) => reader.entryPlace(shard, row),
    onFull: (isFull) => {
      if (isFull) log.error({ file: env.file }, 'the disk is full: writes are refused')
      else log.info({ file: env.file }, 'the disk has room again')
    },
  })
  const end = new SharedEnd()
  intake = new FrameIntake({ tail, end, writer, segments })
  const heads = new ShardHeads(segments.shards().map((shard) => [shard, segments.status(shard)]))
  try {
    await catchUp({ env, room, disk, identity, until: segments.end, heads })
  } catch (error) {
    await segments.close()
    throw error
  }
  end.store(segments.end)
  let seen = segments.end.position
  const throttle = new UpkeepThrottle({
    pause: options.pause ?? pause,
    isBusy: () => {
      const before = seen
      seen = segments.end.position
      return seen !== before
    },
  })
  const upkeep = new LogUpkeep({
    ...{ env, disk, identity, places, reader, writer, throttle },
    end: () => segments.end,
    mayTake: (bytes) => room.left() - bytes >= roomBytes,
    fileBytes: (segmentBytes ?? LIMITS.segmentLog.fileBytes).at(-1)!,
  })
  const parts = { dir, identity, env, places, segments, writer, source, end, upkeep, throttle, log }
  return new OpenedJournal(parts)
}

interface Parts {
  readonly dir: string
  readonly identity: EmbeddedIdentity
  readonly env: JournalEnvironment
  readonly places: PlaceReader
  readonly segments: SegmentLog
  readonly writer: JournalWriter
  readonly source: LogSource
  readonly end: SharedEnd
  readonly upkeep: LogUpkeep
  readonly throttle: UpkeepThrottle
  readonly log: JournalLog
}

class OpenedJournal implements EmbeddedJournal {
  readonly identity: StoreIdentity
  readonly access: JournalAccess
  readonly log: LogStore
  readonly derived: DerivedStore
  readonly #parts: Parts
  readonly #log: EmbeddedLog
  #givingBack: Promise<UpkeepReport> | null = null

  constructor(parts: Parts) {
    const { dir, identity, env, places, segments, writer, source, end } = parts
    this.#parts = parts
    this.identity = identity
    this.access = { dir, end: end.buffer }
    this.#log = new EmbeddedLog(source, segments, writer)
    this.log = this.#log
    const onExpire = (clockOf: ClockOf): void => this.#giveBackBeside(clockOf)
    this.derived = new EmbeddedDerived(env, { places, writer, identity, onExpire })
  }

  giveBack(clockOf: ClockOf): Promise<UpkeepReport> {
    this.#givingBack ??= this.#parts.upkeep.run(clockOf).finally(() => (this.#givingBack = null))
    return this.#givingBack
  }

  /** What fails is tried again with the next expiry: nothing waits for it. */
  #giveBackBeside(clockOf: ClockOf): void {
    if (this.#givingBack !== null) return
    const { log } = this.#parts
    this.giveBack(clockOf).then(
      (report) => {
        if (report.replaced > 0) log.info(report, 'the log has given room back')
      },
      (error: unknown) => {
        const isAwaited = error instanceof UpkeepStopped || error instanceof NoRoomToTurn
        if (!isAwaited) log.error({ err: error }, 'the log could not give room back')
      },
    )
  }

  /** Writes what waits, then closes the files. */
  async close(): Promise<void> {
    const { env, places, segments, writer, throttle } = this.#parts
    throttle.stop()
    this.#log.end()
    await this.#givingBack?.catch(() => {})
    await segments.close()
    await writer.close()
    places.close()
    await env.root.close()
  }
}

class EmbeddedDerived extends EmbeddedDerivedReader implements DerivedStore {
  readonly #writer: JournalWriter
  readonly #identity: StoreIdentity
  readonly #onExpire: (clockOf: ClockOf) => void

  constructor(
    env: JournalEnvironment,
    parts: {
      readonly places: PlaceReader
      readonly writer: JournalWriter
      readonly identity: StoreIdentity
      readonly onExpire: (clockOf: ClockOf) => void
    },
  ) {
    super(env, parts.places)
    this.#onExpire = parts.onExpire
    this.#writer = parts.writer
    this.#identity = parts.identity
  }

  write(shard: number, epoch: number, rows: readonly DerivedRow[]): Promise<AppendOutcome> {
    return this.#writer.write(shard, epoch, rows)
  }

  async expire(clockOf: ClockOf): Promise<void> {
    const shards = [...shardsOf(this.#identity)]
    for (const shard of shards) {
      const clock = clockOf(shard)
      if (clock !== null) this.#writer.tell(shard, clock)
    }
    const options = { env: this.env, identity: this.#identity, clockOf }
    const pass = new ExpiryPass(options, this.env.lives!, shards)
    while ((await this.#writer.change(() => pass.next())) === 'changed');
    this.#onExpire(clockOf)
  }

  async trimImages(): Promise<void> {
    await this.#writer.change(() => {
      const newest = this.imageBefore(Number.MAX_SAFE_INTEGER)
      const kept = newest === null ? null : this.imageBefore(newest)
      if (kept === null) return null
      const { images } = this.env
      const keys = [...images.getKeys({ end: imageKey(kept, 0) })]
      return { notes: [], rows: keys.map((key) => ({ table: images, key })) }
    })
  }
}
