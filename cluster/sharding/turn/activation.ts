// An activation: one actor loaded in its shard's owner, with its speculative state (the newest
// decided one), its marks and its mailbox. loading.ts fills it. Source: PROTOCOL 3.6, 3.10, 3.12.

import { LIMITS } from '../../../config/limits.ts'
import type { Behaviour } from '../../../protocol/behaviour.ts'
import { isEnd, metaOf, recordsOf } from '../../../protocol/entry/entry.ts'
import type { AnyEntry, EntryHead } from '../../../protocol/entry/entry.ts'
import { moveOver, successionOf } from '../../../protocol/entry/succession.ts'
import { CREATE_KEY_SUFFIX, type DerivedRow } from '../../../storage/journal.ts'
import { Marks, markOf } from './marks.ts'
import type { Mark } from './marks.ts'
import { idOf } from '../keys/keys.ts'
import type { Work } from './work.ts'

const NO_KEYS: readonly string[] = []

/** A natural key that this actor holds, and the message that took it. */
export interface StashKey {
  readonly keyType: string
  readonly key: string
  readonly messageId: string
}

/**
 * The place of a relayed message in its source shard: offset, index of the effect, and of the
 * message in it where it isn't the first.
 */
export type RelayPlace = readonly [offset: number, index: number, message?: number]

/** Whether the place stands behind the last one that was taken. */
export function isBefore(last: RelayPlace | undefined, place: RelayPlace): boolean {
  if (last === undefined) return true
  const [offset, index, message = 0] = place
  if (offset !== last[0]) return offset > last[0]
  return index === last[1] ? message > (last[2] ?? 0) : index > last[1]
}

/** What a snapshot needs, held by reference: states are replaced, never changed. */
export interface SnapshotCapture {
  readonly activation: Activation
  readonly state: unknown
  readonly version: number
  readonly n: number
  readonly timeMs: number
  readonly offset: number
  /** The window as it was: those that leave it before the snapshot is written are still in it. */
  readonly marks: readonly Mark[]
  readonly held: readonly StashKey[]
  readonly relays: readonly (readonly [number, RelayPlace])[]
  /** 0: it stays. */
  readonly forgottenFrom: number
}

export class Activation {
  readonly behaviour: Behaviour
  readonly id: string
  /** Natural key of an actor of the `system` shard. */
  readonly key: string | null
  /** null: the actor was never made. */
  state: unknown = null
  /** Number of its records, those included that could not be applied. */
  version = 0
  /** Highest number of its entries. */
  n = 0
  lastTimeMs = 0
  /** Offset of its newest decided entry with records, or of its snapshot. */
  recordedAt = 0
  /** Offset of its newest decided entry. */
  newest = 0
  keys: readonly string[] = NO_KEYS
  readonly marks: Marks
  readonly held = new Map<string, StashKey>()
  /** Per source shard the last relayed message taken. */
  readonly relays = new Map<number, RelayPlace>()
  /**
   * Why it can't be written (a record that the reducer can't apply); reads of its last good state
   * go on, and so does the count of what is recorded of it.
   */
  quarantined: string | null = null
  /** When it may be forgotten, by the shard's clock (`Entry.f`); 0: that was never said. */
  forgottenFrom = 0
  /** Offsets of records that were passed over: leftovers of an abandoned timeline. */
  readonly strays: number[] = []

  /** Entries waiting for their turn. */
  readonly mailbox: Work[] = []
  running: Work | null = null
  /** Questions about its keys that came while a turn waits, and wait for the store themselves. */
  readonly questions = new Set<Work>()
  loaded = false

  /** Bytes of entries since the last snapshot, and of that snapshot: when the next one is due. */
  bytesSinceSnapshot = 0
  entriesSinceSnapshot = 0
  snapshotBytes = 0
  /** Bytes of its state when it was measured last, and of entries that changed it since. */
  stateBytes = 0
  grownBytes = 0
  /** At most so many bytes its state takes: measured only when this passes the bound. */
  stateBytesBound = 0
  /** Set at each use, cleared by the sweep: what is still clear then may be put to rest. */
  used = true
  /** When a sweep last found it in use, monotonic milliseconds. */
  idleSinceMs = Infinity
  /** Weight as its shard has counted it. */
  counted = 0
  /** An entry says that there were records before it. */
  #hadVersion = false
  /** Told of marks that leave the window while entries are replayed. */
  onSpilled: ((marks: readonly Mark[]) => void) | null = null

  /** @param edgeMarkMs as `Marks` takes it */
  constructor(behaviour: Behaviour, id: string, key: string | null, edgeMarkMs?: number) {
    this.behaviour = behaviour
    this.id = id
    this.key = key
    this.marks = new Marks(edgeMarkMs)
  }

  /**
   * About how much memory it takes. What its entries took counts until the state is measured anew:
   * an order that is changed by the hundred becomes no larger by them.
   */
  get weight(): number {
    return 1_000 + this.stateBytes + this.grownBytes + this.marks.bytes
  }

  get isIdle(): boolean {
    const isAsked = this.questions.size > 0 || this.mailbox.length > 0
    return this.running === null && !isAsked && this.loaded
  }

  /**
   * The natural key as this actor holds it; undefined when it hasn't got it. What it remembers and
   * its state doesn't have was left behind by an older version, and may be another's by now.
   */
  holding(keyType: string, key: string): StashKey | undefined {
    const held = this.held.get(idOf(keyType, key))
    if (held === undefined || this.state === null) return undefined
    const has = this.behaviour.naturalKeys(this.state).some((one) => {
      return one.key === key && one.keyType === keyType
    })
    return has ? held : undefined
  }

  /** Takes over an entry that was decided here; the state is the decision's. */
  decided(entry: EntryHead, offset: number, bytes: number, state: unknown): readonly Mark[] {
    if (entry.r.length > 0) {
      this.state = state
      this.#grown(bytes)
      this.stateBytesBound += bytes * LIMITS.sharding.stateGrowthMax
      const keys = this.behaviour.keys(state)
      if (!sameKeys(keys, this.keys)) this.keys = keys
    }
    return this.#advance(entry, offset, bytes)
  }

  /** Measured once what has come is as much again: so it costs little beside what has come. */
  #grown(bytes: number): void {
    this.grownBytes += bytes
    const isMany = this.grownBytes > Math.max(LIMITS.sharding.weighedAnewBytes, this.stateBytes)
    // What was just made mostly goes to rest at once.
    if (!isMany || this.n === 0 || this.state === null) return
    this.stateBytes = Buffer.byteLength(JSON.stringify(this.behaviour.toSnapshot(this.state)))
    this.grownBytes = 0
  }

  /** Was read from a snapshot with its marks. */
  restoredFrom(bytes: number): void {
    this.snapshotBytes = bytes
    this.stateBytesBound = bytes
    this.stateBytes = Math.max(0, bytes - this.marks.bytes)
    this.grownBytes = 0
  }

  /**
   * Takes an entry read from the journal. A record that the reducer can't apply, or that is missing
   * before this one, quarantines the actor: its state stays the last good one, and everything else
   * is counted on, so that what is recorded from now on goes on from where the actor really is.
   */
  replay(entry: AnyEntry, offset: number, bytes: number): void {
    const succession = successionOf(this, entry, offset)
    if (succession === 'stray') {
      this.strays.push(offset)
      this.n = Math.max(this.n, entry.n)
      return
    }
    if (succession === 'gap') this.#quarantine(gapOf(this, entry))
    // Whatever is missing before its end, there is nothing of it any more.
    if (isEnd(entry)) this.quarantined = null
    const state = this.#folded(entry)
    const spilled =
      this.quarantined === null
        ? this.decided(entry, offset, bytes, state)
        : this.#advance(entry, offset, bytes)
    if (spilled.length > 0) this.onSpilled?.(spilled)
  }

  /** Of an actor that is forgotten nothing older is believed: what can't be read may be its end. */
  #quarantine(why: string): void {
    this.quarantined ??= why
    if (this.behaviour.countsUntilMs !== undefined) this.state = null
  }

  #folded(entry: AnyEntry): unknown {
    let { state } = this
    if (this.quarantined !== null) return state
    try {
      for (const [i, record] of recordsOf(entry, this.behaviour).entries()) {
        state = this.behaviour.evolve(state, record, metaOf(entry, i))
      }
    } catch (error) {
      this.#quarantine(`record of entry ${entry.n} can't be applied: ${String(error)}`)
    }
    return state
  }

  #advance(entry: EntryHead, offset: number, bytes: number): readonly Mark[] {
    if (entry.v > 0) this.#hadVersion = true
    moveOver(this, entry, offset)
    // What has no records may stand behind entries of a later offset, and before such of a lower.
    this.n = Math.max(this.n, entry.n)
    this.lastTimeMs = Math.max(this.lastTimeMs, entry.t)
    this.newest = Math.max(this.newest, offset)
    this.bytesSinceSnapshot += bytes
    this.entriesSinceSnapshot++
    if (entry.f !== undefined) this.#hasEnded(entry, entry.f)
    if (entry.k) this.#remember(entry)
    if (entry.s) {
      const [shard, ...place] = entry.s
      if (isBefore(this.relays.get(shard), place)) this.relays.set(shard, place)
    }
    return this.marks.add(markOf(entry, offset, this.keys))
  }

  /** Also where its end is missing, and only what refused something after it says so. */
  #hasEnded({ r }: EntryHead, from: number): void {
    this.forgottenFrom = Math.max(this.forgottenFrom, from)
    if (r.length === 0) this.state = null
  }

  #remember(entry: EntryHead): void {
    for (const { keyType, key, change } of entry.k!) {
      if (keyType.endsWith(CREATE_KEY_SUFFIX)) continue
      if (change === 'take' || change === 'claim') {
        this.held.set(idOf(keyType, key), { keyType, key, messageId: entry.m })
      } else if (change === 'free') this.held.delete(idOf(keyType, key))
    }
  }

  /**
   * An actor that was never made has no state to keep, but a load must not read refusals for ever.
   * Where anything says that it had records none may be hidden, also if they are missing now.
   */
  get #snapshotEntriesMin(): number {
    if (this.state !== null) return LIMITS.sharding.snapshotEntriesMin
    const isUnmade = this.version === 0 && !this.#hadVersion && this.strays.length === 0
    return isUnmade ? LIMITS.sharding.unmadeSnapshotEntriesMin : Infinity
  }

  /** What a snapshot taken now would need, when one is due; else null. */
  snapshotDue(): SnapshotCapture | null {
    if (this.forgottenFrom > 0) return this.#isAskedFor() ? this.#capture() : null
    // In quarantine the state is behind the version.
    if (
      this.quarantined !== null ||
      this.entriesSinceSnapshot < this.#snapshotEntriesMin ||
      this.bytesSinceSnapshot < Math.max(LIMITS.sharding.snapshotEntryBytesMin, this.snapshotBytes)
    ) {
      return null
    }
    return this.#capture()
  }

  /** It has ended, so its entries may go; somebody may still repeat what came before the last. */
  #isAskedFor(): boolean {
    const marks = this.marks.window()
    const last = marks.at(-1)
    return marks.some((mark) => mark !== last && this.marks.isAlive(mark, last!.clock))
  }

  #capture(): SnapshotCapture {
    this.bytesSinceSnapshot = 0
    this.entriesSinceSnapshot = 0
    return {
      activation: this,
      state: this.state,
      version: this.version,
      n: this.n,
      timeMs: this.lastTimeMs,
      offset: this.newest,
      marks: this.marks.window(),
      held: [...this.held.values()],
      relays: [...this.relays],
      forgottenFrom: this.forgottenFrom,
    }
  }
}

/** What is missing before an entry. */
export function gapOf({ version }: Activation, { n, v }: EntryHead): string {
  return `entry ${n} goes on from version ${v}, what is there before it ends at ${version}`
}

function sameKeys(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((key, i) => key === b[i])
}

/** Format numbers of snapshots; a newer one than these is refused with a clear message. */
const SNAPSHOT_FORMAT = 1
/** Of an actor that was never made: without a state. */
const UNMADE_FORMAT = 2

interface SnapshotBody {
  readonly format: number
  readonly type: string
  readonly version: number
  readonly n: number
  readonly offset: number
  readonly timeMs: number
  /** null: the actor was never made. */
  readonly state: unknown
  readonly marks: readonly Mark[]
  readonly spilled: boolean
  readonly held: readonly StashKey[]
  readonly relays: readonly (readonly [number, RelayPlace])[]
  /** As an entry's: of an actor that has ended. */
  readonly f?: number
}

/** One blob: on equal timestamps two columns could come from two writers (PROTOCOL 3.0). */
export function encodeSnapshot(capture: SnapshotCapture, clock: number): Buffer {
  const { activation, state } = capture
  const isMade = state !== null
  const body: SnapshotBody = {
    format: isMade ? SNAPSHOT_FORMAT : UNMADE_FORMAT,
    type: activation.behaviour.type,
    version: capture.version,
    n: capture.n,
    offset: capture.offset,
    timeMs: capture.timeMs,
    state: isMade ? activation.behaviour.toSnapshot(state) : null,
    marks: capture.marks.filter((mark) => activation.marks.isAlive(mark, clock)),
    spilled: activation.marks.spilled,
    held: capture.held,
    relays: capture.relays,
    ...(capture.forgottenFrom > 0 && { f: capture.forgottenFrom }),
  }
  return Buffer.from(JSON.stringify(body))
}

export type SnapshotRow = Extract<DerivedRow, { kind: 'snapshot' }>

export function snapshotRow(capture: SnapshotCapture, actorId: string, clock: number): SnapshotRow {
  const { offset, forgottenFrom } = capture
  const row: SnapshotRow = {
    kind: 'snapshot',
    actorId,
    offset,
    body: encodeSnapshot(capture, clock),
  }
  return forgottenFrom > 0 ? { ...row, passesFrom: forgottenFrom } : row
}

/** A snapshot as the projector and the activation read it. */
export function decodeSnapshot(bytes: Uint8Array): SnapshotBody {
  const body = JSON.parse(Buffer.from(bytes).toString()) as SnapshotBody
  if (body.format !== SNAPSHOT_FORMAT && body.format !== UNMADE_FORMAT) {
    throw new Error(
      `snapshot format ${body.format} is not readable by this version (${UNMADE_FORMAT}): ` +
        'it was written by a newer Kontor; start that version',
    )
  }
  return body
}

export function restore(activation: Activation, bytes: Uint8Array): void {
  const body = decodeSnapshot(bytes)
  if (body.state !== null) {
    activation.state = activation.behaviour.fromSnapshot(body.state)
    activation.keys = activation.behaviour.keys(activation.state)
  }
  activation.version = body.version
  activation.n = body.n
  activation.newest = body.offset
  activation.recordedAt = body.offset
  activation.lastTimeMs = body.timeMs
  activation.forgottenFrom = body.f ?? 0
  for (const mark of body.marks) activation.marks.add(mark)
  activation.restoredFrom(bytes.length)
  activation.marks.spilled ||= body.spilled
  for (const held of body.held) {
    // Snapshots of older versions list the keys of creates as well.
    if (held.keyType.endsWith(CREATE_KEY_SUFFIX)) continue
    activation.held.set(idOf(held.keyType, held.key), held)
  }
  for (const [shard, at] of body.relays) activation.relays.set(shard, at)
}
