// Streamed operations: lines in, lines out, with back-pressure both ways. The socket is paused
// while the operation is slow; the operation waits while the client reads slowly; what waits in
// between is bounded (CONTRACT 0 "Bulk").

import { Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { RequestError } from '../../protocol/errors.ts'
import { errorBody } from './answer.ts'
import { holdPart } from './arriving.ts'
import { LineSplitter } from './lines.ts'
import type { Line } from './lines.ts'
import type { Exchange } from './exchange.ts'
import type { LineStream } from './operation.ts'

const UNZIP_CHUNK_BYTES = 64 * 1024
const PROBE_MS_MIN = 5
const PROBE_MS_MAX = 100

const NDJSON = { 'Content-Type': 'application/x-ndjson' }
const STREAM_HEAD = { status: 200, headers: NDJSON, raw: '' }
const LAST_STREAM_HEAD = { status: 200, headers: { ...NDJSON, Connection: 'close' }, raw: '' }

/** Serves `x` by its operation's `stream`. */
export function serveStream(
  x: Exchange,
  how: {
    readonly present: boolean
    /** The body is gzip. */
    readonly packed: boolean
    /** The token is still being looked up; the operation starts after it. */
    readonly admitted: Promise<void> | null
  },
): void {
  x.hold()
  x.streaming = true
  const source = new ChunkSource(x, how.present)
  const writer = new LineWriter(x)
  x.onGone = () => {
    source.stop()
    writer.stop()
  }
  const chunks: Chunks = how.packed ? new Inflated(source) : source
  const stream: LineStream = {
    lines: { [Symbol.asyncIterator]: () => new LineIterator(x, chunks) },
    write: (line) => writer.write(line),
    identityNow: () => x.identityNow(),
  }
  const run = async (): Promise<void> => {
    if (how.admitted !== null) await how.admitted
    if (!x.done) await x.route!.operation.stream!(x, stream)
  }
  run()
    .then(
      () => writer.end(null),
      (error: unknown) => writer.end(error),
    )
    .finally(() => chunks.stop())
}

interface Chunks {
  /** The next piece of the body; null at its end, and after the client has gone. */
  pull(): Buffer | null | Promise<Buffer | null>
  stop(): void
}

/** The body as it arrives: a queue that pauses the socket when it is full. */
class ChunkSource implements Chunks {
  private readonly x: Exchange
  private readonly queue: Buffer[] = []
  private queuedBytes = 0
  private ended: boolean
  private waiting: ((chunk: Buffer | null) => void) | null = null

  constructor(x: Exchange, present: boolean) {
    this.x = x
    this.ended = !present
    if (present) x.res.onData((chunk, last) => this.arrive(chunk, last))
  }

  pull(): Buffer | null | Promise<Buffer | null> {
    const chunk = this.queue.shift()
    if (chunk === undefined) {
      if (this.ended) return null
      return new Promise((resolve) => {
        this.waiting = resolve
      })
    }
    this.count(-chunk.length)
    // Half empty: asking at every chunk would pause and resume around each of them.
    if (this.x.paused && this.queuedBytes <= this.x.core.limits.streamReadAheadBytesMax / 2) {
      this.x.readOn()
    }
    return chunk
  }

  stop(): void {
    this.ended = true
    this.queue.length = 0
    this.count(-this.queuedBytes)
    this.hand(null)
  }

  private count(bytes: number): void {
    this.queuedBytes += bytes
    this.x.core.readAheadBytes += bytes
  }

  private get isFull(): boolean {
    const { limits, readAheadBytes } = this.x.core
    if (this.queuedBytes >= limits.streamReadAheadBytesMax) return true
    return (
      readAheadBytes >= limits.streamsReadAheadBytesMax &&
      this.queuedBytes >= limits.linePartFreeBytes
    )
  }

  private arrive(chunk: ArrayBuffer, last: boolean): void {
    const { x } = this
    x.lastByteMs = x.core.clock.monotonicMs()
    x.received += chunk.byteLength
    if (last) x.bodyPending = false
    if (this.ended) return
    if (last) this.ended = true
    if (chunk.byteLength > 0) {
      // The bytes are the socket's own and end with this call.
      const bytes = Buffer.from(chunk.slice(0))
      if (this.waiting !== null) {
        this.hand(bytes)
        return
      }
      this.queue.push(bytes)
      this.count(bytes.length)
      if (!last && this.isFull) x.readNoFurther()
      return
    }
    if (last) this.hand(null)
  }

  private hand(chunk: Buffer | null): void {
    const waiting = this.waiting
    this.waiting = null
    waiting?.(chunk)
  }
}

/** A gzip body, unpacked as far as it is read: a bomb is only ever as large as what waits. */
class Inflated implements Chunks {
  private readonly source: ChunkSource
  private readonly unzip = createGunzip({ chunkSize: UNZIP_CHUNK_BYTES })
  private readonly pieces: AsyncIterator<Buffer>

  constructor(source: ChunkSource) {
    this.source = source
    const packed = Readable.from(piecesOf(source), { objectMode: false })
    // An abort ends the source; what is left of the gzip text then fails, and nobody reads it.
    this.unzip.on('error', () => source.stop())
    packed.pipe(this.unzip)
    this.pieces = this.unzip[Symbol.asyncIterator]() as AsyncIterator<Buffer>
  }

  async pull(): Promise<Buffer | null> {
    try {
      const piece = await this.pieces.next()
      return piece.done === true ? null : piece.value
    } catch {
      throw new RequestError('MALFORMED_REQUEST', 'the body is not valid gzip')
    }
  }

  stop(): void {
    this.source.stop()
    this.unzip.destroy()
  }
}

async function* piecesOf(source: ChunkSource): AsyncGenerator<Buffer> {
  for (;;) {
    const chunk = await source.pull()
    if (chunk === null) return
    yield chunk
  }
}

class LineIterator implements AsyncIterator<Line> {
  private readonly x: Exchange
  private readonly chunks: Chunks
  private readonly splitter: LineSplitter
  private ended = false

  constructor(x: Exchange, chunks: Chunks) {
    this.x = x
    this.chunks = chunks
    this.splitter = new LineSplitter(x.core.limits.bulkLineBytesMax)
  }

  async next(): Promise<IteratorResult<Line>> {
    for (;;) {
      // A line that the client cut off in the middle is no line.
      if (this.x.gone) return END
      const line = this.ended ? this.splitter.end() : this.splitter.take()
      if (line !== null) return { done: false, value: line }
      if (this.ended) return END
      if (!holdPart(this.x, this.splitter.heldBytes)) throw tooManyParts()
      const pulled = this.chunks.pull()
      const chunk = pulled instanceof Promise ? await pulled : pulled
      if (chunk === null) this.ended = true
      else this.splitter.push(chunk)
    }
  }

  return(): Promise<IteratorResult<Line>> {
    holdPart(this.x, 0)
    this.chunks.stop()
    return Promise.resolve(END)
  }
}

function tooManyParts(): RequestError {
  return new RequestError(
    'TOO_BUSY',
    'too many long lines are arriving at once; the lines before were done, the rest were not',
  )
}

const END: IteratorReturnResult<undefined> = { done: true, value: undefined }

/** Answer lines, gathered for a turn of the event loop and written in one piece. */
class LineWriter {
  private readonly x: Exchange
  private pending = ''
  private started = false
  private scheduled = false
  private bytes = 0
  /** Set while the socket takes no more. */
  private full: Promise<void> | null = null
  private drained: (() => void) | null = null
  private probeMs = 0
  private probing: NodeJS.Timeout | undefined = undefined

  constructor(x: Exchange) {
    this.x = x
  }

  write(line: string): Promise<void> | void {
    if (this.x.gone || this.x.done) return undefined
    this.pending += `${line}\n`
    if (this.full !== null) return this.full
    if (this.pending.length >= this.x.core.limits.streamWriteBytes) {
      this.flush()
      return this.full ?? undefined
    }
    if (!this.scheduled) {
      this.scheduled = true
      setImmediate(() => {
        this.scheduled = false
        if (this.full === null && !this.x.done) this.flush()
      })
    }
    return undefined
  }

  /** Ends the answer; after lines were written an error can only be one more line. */
  async end(error: unknown): Promise<void> {
    const { x } = this
    if (x.done) return
    if (error !== null && !this.started && this.pending === '') {
      x.fail(error)
      return
    }
    if (error !== null) this.pending += `${JSON.stringify(this.lastWords(error))}\n`
    // What is pending waits here and not in the socket: a slow reader holds its own request.
    for (;;) {
      while (this.full !== null) await this.full
      if (this.pending === '' || x.gone || x.done) break
      this.flush()
    }
    x.endStream(() => this.head(), this.bytes)
  }

  stop(): void {
    this.pending = ''
    this.release()
  }

  private lastWords(error: unknown): unknown {
    const { x } = this
    if (error instanceof RequestError) return errorBody(error, x.requestId)
    x.logFault(error)
    const ours = new RequestError('INTERNAL_ERROR', 'a mistake of the server ended the answer here')
    return errorBody(ours, x.requestId)
  }

  private flush(): void {
    const { x } = this
    if (this.pending === '' || x.gone) return
    const text = this.pending
    this.pending = ''
    this.bytes += text.length
    let room = true
    x.corked(() => {
      this.head()
      room = x.res.write(text)
    })
    if (!room) this.wait()
  }

  private wait(): void {
    const { x } = this
    this.full = new Promise((resolve) => {
      this.drained = resolve
    })
    x.fullSinceMs = x.core.clock.monotonicMs()
    x.stayPaused()
    x.res.onWritable(() => {
      // While this is set uWebSockets.js drains nothing by itself: what it still has follows a
      // write.
      if (this.full !== null && (this.pending !== '' || this.hasRoom())) this.release()
      return true
    })
    this.probeMs = PROBE_MS_MIN
    this.probing = setTimeout(() => this.probe(), this.probeMs)
  }

  /**
   * A paused socket never says that it is writable (uWebSockets.js stops looking at it altogether),
   * so it is tried now and then: by a space, which before a JSON value means nothing.
   */
  private probe(): void {
    const { x } = this
    if (this.full === null || x.gone || x.done) return
    const room = x.paused && this.hasRoom()
    x.stayPaused()
    if (room) {
      this.release()
      return
    }
    this.probeMs = Math.min(PROBE_MS_MAX, this.probeMs * 2)
    this.probing = setTimeout(() => this.probe(), this.probeMs)
  }

  /** Tries the socket by a space. */
  private hasRoom(): boolean {
    let room = false
    this.x.corked(() => {
      room = this.x.res.write(' ')
    })
    return room
  }

  private head(): void {
    if (this.started) return
    this.started = true
    const { closesAfter, core } = this.x
    this.x.writeHead(closesAfter || core.closing ? LAST_STREAM_HEAD : STREAM_HEAD, null)
  }

  private release(): void {
    const drained = this.drained
    this.full = null
    this.x.fullSinceMs = null
    clearTimeout(this.probing)
    this.drained = null
    drained?.()
    if (this.pending !== '') this.flush()
  }
}
