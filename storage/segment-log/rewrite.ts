// Some files of the log, one behind the other, written anew as one, without what nobody needs any
// more. Sealed files never change. The new file stands for them: same shards, same offsets, same
// groups in the same order of each shard, only that a body may have become shorter, or be gone.
//
// The order makes it safe at any point: the file is written under a name that means nothing, and is
// on the disk, before it gets its own by a link. From then on it is the newest round of its number,
// and whoever reads the chain reads it instead of its sources, which say the same and stay until
// whoever has places in them has those of the new file (embedded/place-turner.ts).
//
// What isn't carried over: a claim behind which no group of its shard came before the next one, and
// of groups that are gone altogether all but one that covers them.

import { randomBytes } from 'node:crypto'
import type { Group } from '../journal.ts'
import type { Disk, DiskFile } from './disk.ts'
import { COMMIT_KIND, encodeFrame, encodeParts, frameBytes, type Claim } from './frame.ts'
import type { FileKey, GroupPart } from './frame.ts'
import { LogFollower } from './follower.ts'
import { encodeHeader, endOf, fileName, firstOf, inRound, numberOf, roundOf } from './header.ts'
import type { Header, HeaderText, Rewritten } from './header.ts'
import type { LogPosition } from './scan.ts'
import { REWRITE_PREFIX } from './spare.ts'

export interface RewriteOptions {
  readonly disk: Disk
  readonly generation: string
  /** The sources, oldest first, and the header of the file behind them. */
  readonly sources: readonly Header[]
  readonly next: Header
  /** What is left of a group's body: itself, a shorter one, or nothing. */
  readonly keep: (group: GroupPart, body: Buffer) => Uint8Array
  /** Asked before so many bytes are read; what it rejects with ends the rewriting. */
  readonly throttle: (bytes: number) => Promise<void>
  /** A frame gets no longer, but by a body that is. */
  readonly frameBytesMax: number
  /** Entries that one group covers without a body: whoever reads it gets one for each. */
  readonly erasedMax: number
}

/** The new file's header. Rejects with JournalDamage of a source, and with the disk's errors. */
export async function rewriteSegments(options: RewriteOptions): Promise<Header> {
  const { disk, generation, sources } = options
  const last = sources.at(-1)!
  const number = numberOf(last.key.file)
  const file = inRound(number, roundOf(last.key.file) + 1)
  const salt = randomBytes(16)
  const name = `${REWRITE_PREFIX}${salt.toString('hex')}`
  const opened = await disk.create(name, 0)
  try {
    const header = headerOf(options, { number, salt })
    const target = new Target(opened, { file, salt }, header)
    for (const source of header.rewritten.sources) await carryOver(options, source, target)
    const written = await target.end()
    await disk.link(name, fileName(file))
    const { end, sequence, headerBytes } = written
    const rewritten: Rewritten = { ...header.rewritten, end, sequence }
    const text = { ...header, rewritten, bytes: end, format: 1, generation }
    const key = { file, salt }
    const first = (header.previous?.sequence ?? 0) + 1
    return { ...text, key, end: headerBytes, sequence: first }
  } finally {
    opened.close()
    disk.remove(name)
  }
}

type NewHeader = Omit<HeaderText, 'format' | 'rewritten'> & { readonly rewritten: Rewritten }

/** Its numbers that aren't known yet are at their longest. */
function headerOf(
  { generation, sources, next }: RewriteOptions,
  { number, salt }: { readonly number: number; readonly salt: Buffer },
): NewHeader {
  const { previous, shards } = sources[0]!
  const most = Number.MAX_SAFE_INTEGER
  const rewritten: Rewritten = {
    first: firstOf(sources[0]!),
    sources: sources.map((source, i) => {
      return { file: source.key.file, position: endOf(source, sources[i + 1] ?? next)! }
    }),
    of: { ...next.previous!, file: number },
    end: most,
    sequence: most,
  }
  return { generation, salt: salt.toString('hex'), bytes: most, previous, shards, rewritten }
}

async function carryOver(
  options: RewriteOptions,
  until: LogPosition,
  target: Target,
): Promise<void> {
  const { disk, generation, keep, throttle, frameBytesMax, erasedMax } = options
  const from = { file: until.file, position: 0 }
  const follower = new LogFollower(disk, { generation, from })
  try {
    for (const { parts, body } of follower.to(until)) {
      await throttle(parts.reduce((sum, part) => sum + lengthOf(part), 0))
      for (const part of parts) {
        if (part.kind === 'claim') target.claim(part)
        else target.group(part, keep(part, body(part.place)), erasedMax)
      }
      if (target.waitingBytes >= frameBytesMax) await target.write()
    }
  } finally {
    follower.close()
  }
}

function lengthOf(part: Claim | GroupPart): number {
  return 'place' in part ? part.place.length : 0
}

/** What a shard has before its next group with a body: a claim, then entries that are gone. */
interface Held {
  claim: Claim | null
  gone: Omit<Group, 'body'> | null
}

const NO_BODY = new Uint8Array(0)

class Target {
  waitingBytes = 0
  readonly #file: DiskFile
  readonly #key: FileKey
  readonly #header: NewHeader
  readonly #headerBytes: number
  readonly #held = new Map<number, Held>()
  #parts: (Group | Claim)[] = []
  #position: number
  #sequence: number

  constructor(file: DiskFile, key: FileKey, header: NewHeader) {
    this.#file = file
    this.#key = key
    this.#header = header
    const chunks = encodeHeader(key.file, header)
    this.#headerBytes = chunks.reduce((sum, { length }) => sum + length, 0)
    this.#position = this.#headerBytes
    this.#sequence = (header.previous?.sequence ?? 0) + 1
  }

  claim({ shard, epoch }: Claim): void {
    const held = this.#heldOf(shard)
    held.claim = { shard, epoch }
    // The claim goes before them.
    if (held.gone !== null) held.gone = { ...held.gone, epoch }
  }

  group({ shard, epoch, head, count, commitId }: GroupPart, body: Uint8Array, most: number): void {
    const held = this.#heldOf(shard)
    if (body.length > 0) {
      this.#give(shard)
      this.#parts.push({ shard, epoch, head, count, commitId, body })
      this.waitingBytes += body.length
      return
    }
    if (held.gone !== null && held.gone.count + count > most) this.#give(shard)
    const { gone } = held
    const from = gone === null ? { head, count } : { head: gone.head, count: gone.count + count }
    held.gone = { shard, epoch, commitId, ...from }
  }

  #heldOf(shard: number): Held {
    const known = this.#held.get(shard) ?? { claim: null, gone: null }
    this.#held.set(shard, known)
    return known
  }

  #give(shard: number): void {
    const held = this.#heldOf(shard)
    if (held.claim !== null) this.#parts.push(held.claim)
    if (held.gone !== null) this.#parts.push({ ...held.gone, body: NO_BODY })
    held.claim = null
    held.gone = null
  }

  async write(): Promise<void> {
    if (this.#parts.length > 0) await this.#frame()
  }

  async #frame(): Promise<void> {
    const parts = this.#parts
    const bodies = parts.flatMap((part) => ('body' in part ? [part.body] : []))
    const at = { file: this.#key.file, position: this.#position }
    const { heads } = encodeParts(at, parts)
    const frame = { position: this.#position, sequence: this.#sequence + 1, kind: COMMIT_KIND }
    await this.#file.writeSynced(this.#position, encodeFrame(this.#key, frame, heads, bodies))
    const bytes = bodies.reduce((sum, body) => sum + body.length, 0)
    this.#position += frameBytes(heads.length, bytes)
    this.#sequence++
    this.#parts = []
    this.waitingBytes = 0
  }

  /**
   * What is held goes at the end, then the header: a file that has one is whole. Whoever follows
   * the log hears of a file with its first frame, so there is one.
   */
  async end(): Promise<{ end: number; sequence: number; headerBytes: number }> {
    for (const shard of this.#held.keys()) this.#give(shard)
    const isFirst = this.#position === this.#headerBytes
    if (isFirst || this.#parts.length > 0) await this.#frame()
    const [end, sequence] = [this.#position, this.#sequence]
    const rewritten = { ...this.#header.rewritten, end, sequence }
    const header = encodeHeader(
      this.#key.file,
      { ...this.#header, bytes: end, rewritten },
      this.#headerBytes,
    )
    await this.#file.writeSynced(0, header)
    return { end, sequence, headerBytes: this.#headerBytes }
  }
}
