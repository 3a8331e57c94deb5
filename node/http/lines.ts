// Lines out of chunks: a streamed body arrives in pieces, its operation takes it line by line. A
// line longer than the bound is told, not kept.

export interface Line {
  /** From 1; empty lines count though they are skipped. */
  readonly number: number
  readonly bytes: Buffer | 'too-large'
}

const NEWLINE = 0x0a
const RETURN = 0x0d
const EMPTY = Buffer.alloc(0)

export class LineSplitter {
  private readonly lineBytesMax: number
  private chunk: Buffer = EMPTY
  private at = 0
  /** The beginning of a line whose end is in a later chunk. */
  private parts: Buffer[] = []
  private partBytes = 0
  private number = 0

  constructor(lineBytesMax: number) {
    this.lineBytesMax = lineBytesMax
  }

  /** Gives the next chunk; only when `take` has said null. The splitter keeps it. */
  push(chunk: Buffer): void {
    this.chunk = chunk
    this.at = 0
  }

  /** The next line that ended, or null: more bytes are needed. */
  take(): Line | null {
    for (;;) {
      const end = this.chunk.indexOf(NEWLINE, this.at)
      if (end < 0) {
        this.keep(this.chunk.subarray(this.at))
        this.chunk = EMPTY
        this.at = 0
        return null
      }
      const rest = this.chunk.subarray(this.at, end)
      this.at = end + 1
      const line = this.finish(rest)
      if (line !== null) return line
    }
  }

  /** The last line, when the body didn't end with a newline. */
  end(): Line | null {
    return this.partBytes === 0 ? null : this.finish(EMPTY)
  }

  /** Bytes that are kept of a line whose end is still to come. */
  get heldBytes(): number {
    return this.parts.length === 0 ? 0 : this.partBytes
  }

  private keep(part: Buffer): void {
    if (part.length === 0) return
    this.partBytes += part.length
    if (this.partBytes > this.lineBytesMax + 1) this.parts = []
    else this.parts.push(part)
  }

  private finish(rest: Buffer): Line | null {
    this.number++
    const size = this.partBytes + rest.length
    let bytes = rest
    // One byte more is allowed for a carriage return, which is not of the line.
    if (this.partBytes > 0) {
      bytes = size > this.lineBytesMax + 1 ? EMPTY : Buffer.concat([...this.parts, rest], size)
      this.parts = []
      this.partBytes = 0
    }
    if (size > this.lineBytesMax + 1) return { number: this.number, bytes: 'too-large' }
    if (bytes[bytes.length - 1] === RETURN) bytes = bytes.subarray(0, bytes.length - 1)
    if (bytes.length > this.lineBytesMax) return { number: this.number, bytes: 'too-large' }
    return bytes.length === 0 ? null : { number: this.number, bytes }
  }
}
