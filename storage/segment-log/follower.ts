// Following the log from one position to a later one, in any thread: whole frames in order, file
// after file. Nothing is read short: what isn't as it was written is JournalDamage.

import type { Disk, DiskFile } from './disk.ts'
import { bodyIn, decodeParts, readFrame } from './frame.ts'
import type { Part, Place } from './frame.ts'
import { endOf, numberOf, openSegment, readHeader, segmentDamage } from './header.ts'
import type { ChainLink, Header } from './header.ts'
import { readLinks } from './scan.ts'
import type { LogGap, LogPosition } from './scan.ts'

/** One frame's parts; `next` is the position behind it. */
export interface FrameParts {
  readonly parts: readonly Part[]
  readonly next: LogPosition
  /** A group's body, as a view of the frame. */
  readonly body: (place: Place) => Buffer
  /** The header of the file, with the first of its frames. */
  readonly begun: Header | null
  /** Gaps between this frame and the one before it. */
  readonly passed: readonly LogGap[]
}

export interface FollowOptions {
  readonly generation: string
  /** null: the beginning of the log. */
  readonly from: LogPosition | null
  /** What was given up, and is passed over. */
  readonly gaps?: readonly LogGap[]
}

interface Opened {
  readonly header: Header
  readonly file: DiskFile
  position: number
  /** Of the frame before `position`; null: not known. */
  sequence: number | null
  isNew: boolean
  passed: LogGap[]
}

export class LogFollower {
  readonly #disk: Disk
  readonly #generation: string
  readonly #gaps: readonly LogGap[]
  readonly #from: LogPosition | null
  #opened: Opened | null = null
  /** Headers of the files behind the one that is open, as far as they were read. */
  #ahead: ChainLink[] = []

  constructor(disk: Disk, options: FollowOptions) {
    this.#disk = disk
    this.#generation = options.generation
    this.#from = options.from
    this.#gaps = options.gaps ?? []
  }

  /**
   * Goes on up to `until`: a position that is known to be synced, as the writer gives it
   * (`SegmentLog.end`). Throws JournalDamage.
   */
  *to(until: LogPosition): Generator<FrameParts> {
    this.#opened ??= this.#begin(until)
    if (numberOf(this.#opened.header.key.file) < numberOf(until.file)) this.#look(until)
    for (;;) {
      const [next] = this.#ahead
      const end = endOf(this.#opened.header, next ?? null) ?? until.position
      yield* this.#upTo(end, next ?? null)
      if (next === undefined) return
      // First opened, then closed: where that fails this one is still to be gone on from, and a
      // number that was closed may be another file's by then.
      const opened = this.#open(next, next.end)
      this.#opened.file.close()
      this.#opened = opened
      this.#ahead.shift()
    }
  }

  /** Up to here it has come; null: nothing was followed yet, from the beginning. */
  get at(): LogPosition | null {
    const opened = this.#opened
    return opened === null
      ? this.#from
      : { file: opened.header.key.file, position: opened.position }
  }

  close(): void {
    this.#opened?.file.close()
    this.#opened = null
  }

  #begin(until: LogPosition): Opened {
    const first = this.#from?.file ?? null
    const chain = readLinks(this.#disk, this.#generation, { first, last: this.#header(until) })
    const [header] = chain
    const position = this.#from?.position ?? 0
    // A position in a file says nothing of what that was rewritten to.
    if (position > 0 && first !== header!.key.file) throw this.#isGone(first!)
    return this.#open(header!, Math.max(position, header!.end))
  }

  #look(until: LogPosition): void {
    const first = this.#opened!.header.key.file
    const last = this.#header(until)
    const [own, ...ahead] = readLinks(this.#disk, this.#generation, { first, last })
    if (numberOf(own!.key.file) !== numberOf(first)) throw this.#isGone(first)
    this.#ahead = ahead
  }

  #isGone(file: number): Error {
    return segmentDamage(this.#disk, { file, position: 0, what: 'the file was rewritten' })
  }

  #header({ file }: LogPosition): Header {
    const header = readHeader(this.#disk, file, this.#generation)
    if (header !== null) return header
    throw segmentDamage(this.#disk, { file, position: 0, what: 'the header is missing' })
  }

  #open({ key }: ChainLink, position: number): Opened {
    const header = this.#header({ file: key.file, position: 0 })
    const file = openSegment(this.#disk, header.key.file)
    const sequence = position === header.end ? header.sequence : null
    return { header, file, position, sequence, isNew: position === header.end, passed: [] }
  }

  *#upTo(end: number, next: ChainLink | null): Generator<FrameParts> {
    const opened = this.#opened!
    while (opened.position < end) {
      const gap = this.#gapAt(opened)
      if (gap !== undefined) {
        opened.position = gap.next ?? end
        opened.passed.push(gap)
        opened.sequence = null
        continue
      }
      yield this.#frame(opened)
    }
    const { sequence, position } = opened
    const last = opened.header.rewritten?.sequence ?? next?.previous?.sequence
    if (sequence === null || last === undefined || sequence === last) return
    const { file } = opened.header.key
    throw segmentDamage(this.#disk, { file, position, what: 'frames are missing' })
  }

  #gapAt({ header, position }: Opened): LogGap | undefined {
    return this.#gaps.find((gap) => gap.file === header.key.file && gap.position === position)
  }

  #frame(opened: Opened): FrameParts {
    const { header, position, sequence, isNew, passed } = opened
    const { file } = header.key
    const found = readFrame(opened.file, header.key, position)
    if (found.is !== 'frame') {
      const what = found.is === 'damaged' ? found.what : 'a whole frame is missing'
      throw segmentDamage(this.#disk, { file, position, what })
    }
    const { frame } = found
    if (sequence !== null && frame.sequence !== sequence + 1) {
      throw segmentDamage(this.#disk, { file, position, what: 'a frame is out of sequence' })
    }
    opened.sequence = frame.sequence
    opened.position += frame.bytes
    opened.isNew = false
    opened.passed = []
    return {
      parts: decodeParts(file, frame),
      next: { file, position: opened.position },
      body: (place) => bodyIn(frame, place),
      begun: isNew ? header : null,
      passed,
    }
  }
}
