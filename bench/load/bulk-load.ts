// Bulk: order lines over streamed requests, a window of unanswered lines a connection. Latency is
// a line's, from when it was handed to the socket to when its answer line is there. See load.ts
// for the other loops.

import { HttpSocket } from './http-socket.ts'
import { DRAIN_MS, loadResult, type LoadOptions, type LoadResult } from './load.ts'
import { Recorder } from './recorder.ts'
import { bulkHead } from './requests.ts'

/** Lines sent and not answered, a connection. */
const WINDOW_LINES = 512
/** Lines that leave together in one chunk of the request. */
const CHUNK_LINES = 32
const LAST_CHUNK = '0\r\n\r\n'
const TICK_MS = 5

export interface BulkLoadOptions extends Omit<LoadOptions, 'next'> {
  readonly line: () => Buffer
  /** End after so many lines, before the seconds are over. */
  readonly lines?: number
  /** Called with each answer line. */
  readonly answer?: (line: string) => void
}

export function bulkLoad(options: BulkLoadOptions): Promise<LoadResult> {
  return new BulkLoad(options).run()
}

class BulkLoad {
  readonly recorder = new Recorder()
  readonly #o: BulkLoadOptions
  #left: number
  running = true

  constructor(options: BulkLoadOptions) {
    this.#o = options
    this.#left = options.lines ?? Number.MAX_SAFE_INTEGER
  }

  async run(): Promise<LoadResult> {
    const { connections, warmUpSeconds, seconds, readings } = this.#o
    const streams = Array.from({ length: connections }, () => new BulkStream(this, this.#o))
    await Promise.all(streams.map((stream) => stream.opened()))
    const measureFrom = performance.now() + warmUpSeconds * 1000
    const until = measureFrom + seconds * 1000
    this.recorder.startMeasuring(measureFrom)
    for (const stream of streams) stream.fill()
    let measuring = false
    for (;;) {
      const now = performance.now()
      if (!measuring && now >= measureFrom) {
        measuring = true
        readings.started()
      }
      if (now >= until || streams.every((stream) => stream.over)) break
      await new Promise((resolve) => setTimeout(resolve, TICK_MS))
    }
    const end = performance.now()
    this.recorder.stopMeasuring(end)
    readings.ended()
    this.running = false
    const drained = end + DRAIN_MS
    for (const stream of streams) stream.finish()
    while (!streams.every((stream) => stream.over) && performance.now() < drained) {
      await new Promise((resolve) => setTimeout(resolve, TICK_MS))
    }
    for (const stream of streams) stream.close()
    return loadResult(this.recorder, end - measureFrom)
  }

  /** The next line, or null when there is none to send any more. */
  next(): Buffer | null {
    if (!this.running || this.#left === 0) return null
    this.#left--
    return this.#o.line()
  }

  answered(line: string, sentAt: number): void {
    if (line.includes('"errors"')) {
      const { errors } = JSON.parse(line) as { errors?: readonly { code: string }[] }
      if (errors !== undefined && errors.length > 0) {
        this.recorder.failure(errors[0]!.code)
        return
      }
    }
    this.recorder.success('create', sentAt, performance.now())
    this.#o.answer?.(line)
  }
}

class BulkStream {
  /** The answer is complete, or will never be. */
  over = false
  readonly #load: BulkLoad
  readonly #socket: HttpSocket
  readonly #head: string
  /** When each unanswered line was sent, oldest first, in a ring. */
  readonly #sent = new Float64Array(WINDOW_LINES)
  #first = 0
  #count = 0
  #rest = ''
  #started = false
  #finished = false

  constructor(load: BulkLoad, options: BulkLoadOptions) {
    this.#load = load
    this.#head = bulkHead(options.to)
    this.#socket = new HttpSocket(options.to.host, options.to.port, {
      answered: (_, status) => this.#end(status === 200 ? null : String(status)),
      gone: (_, why) => this.#end(why),
      body: (_, piece) => this.#read(piece),
    })
  }

  opened(): Promise<void> {
    return this.#socket.opened()
  }

  /** Sends lines while the window has room for a chunk of them. */
  fill(): void {
    while (!this.over && !this.#finished && this.#count + CHUNK_LINES <= WINDOW_LINES) {
      const lines: Buffer[] = []
      for (let i = 0; i < CHUNK_LINES; i++) {
        const line = this.#load.next()
        if (line === null) break
        lines.push(line)
      }
      if (lines.length > 0) this.#send(lines)
      if (lines.length < CHUNK_LINES) this.finish()
    }
  }

  finish(): void {
    if (this.#finished || this.over) return
    this.#finished = true
    if (this.#started) this.#socket.send(LAST_CHUNK)
    else this.#end(null)
  }

  close(): void {
    if (!this.over) this.#end('no answer')
    this.#socket.close()
  }

  #send(lines: readonly Buffer[]): void {
    if (!this.#started) {
      this.#started = true
      this.#socket.send(this.#head)
    }
    const now = performance.now()
    let length = 0
    for (const line of lines) {
      length += line.length
      this.#sent[(this.#first + this.#count++) % WINDOW_LINES] = now
    }
    const size = Buffer.from(`${length.toString(16)}\r\n`)
    this.#socket.send(Buffer.concat([size, ...lines, CRLF]))
  }

  #read(piece: Buffer): void {
    const lines = (this.#rest + piece.toString()).split('\n')
    this.#rest = lines.pop()!
    for (const line of lines) {
      this.#load.answered(line, this.#sent[this.#first]!)
      this.#first = (this.#first + 1) % WINDOW_LINES
      this.#count--
    }
    this.fill()
  }

  #end(why: string | null): void {
    if (this.over) return
    this.over = true
    const reason = why ?? (this.#count > 0 ? 'the answer ended early' : null)
    for (let i = 0; i < this.#count; i++) this.#load.recorder.failure(reason!)
    if (reason !== null && this.#count === 0) this.#load.recorder.failure(reason)
  }
}

const CRLF = Buffer.from('\r\n')
