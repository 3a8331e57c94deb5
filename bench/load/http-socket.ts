// One keep-alive HTTP/1.1 connection, as cheap as it can be: ready-made request bytes out, status
// and body end in. The generator shares two cores with what it measures, so it costs a few
// microseconds a request: node:http would cost as much as the server.

import type { Socket } from 'node:net'
import { openConnection } from './connection.ts'
import type { RequestKind } from './requests.ts'

const READ_BYTES = 64 * 1024
/** A head longer than this is not an answer that we wait for. */
const HEAD_BYTES_MAX = 64 * 1024

const HEAD_END = Buffer.from('\r\n\r\n')
const CONTENT_LENGTH = /\r\ncontent-length: *(\d+)/i
const CHUNKED = /\r\ntransfer-encoding: *chunked/i
const CR = 13

export interface SocketEvents {
  /** An answer is complete. */
  answered(socket: HttpSocket, status: number): void
  /** The connection is gone; what was under way is without an answer. */
  gone(socket: HttpSocket, why: string): void
  /** A piece of a body; the bytes are overwritten after the call. */
  body?(socket: HttpSocket, piece: Buffer): void
}

/** So much of a body that is kept is kept. */
const KEPT_CHARS_MAX = 2_000
const CODE = /"code":"(\w+)"/

type Reading = 'head' | 'fixed' | 'chunk-size' | 'chunk' | 'chunk-end' | 'trailer'

export class HttpSocket {
  /** True while an answer is awaited. */
  busy = false
  /** For the loops: when their request left or was due (performance.now()), and what it is. */
  sentAt = 0
  /** When it really left: later than `sentAt` where one was due and had no connection. */
  leftAt = 0
  kind: RequestKind = 'read'
  /** Whether the body of the next answer is kept, as far as `kept` goes; a refusal's always is. */
  keeps = false
  readonly #events: SocketEvents
  readonly #socket: Socket
  #reading: Reading = 'head'
  #head: Buffer | null = null
  #status = 0
  #kept = ''
  #left = 0
  #size = 0

  constructor(host: string, port: number, events: SocketEvents) {
    this.#events = events
    this.#socket = openConnection(
      { host, port, readBytes: READ_BYTES },
      {
        read: (buffer, length) => this.#read(buffer, length),
        gone: (why) => this.#gone(why),
      },
    )
  }

  /** Resolves when connected; rejects when it can't be. */
  opened(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#socket.once('connect', resolve)
      this.#socket.once('error', reject)
    })
  }

  /** Status of the last answer, with its error's code where it names one. */
  get said(): string {
    const code = CODE.exec(this.#kept)?.[1]
    return code === undefined ? String(this.#status) : `${this.#status} ${code}`
  }

  /** The beginning of the last answer's body, when it was a refusal or `keeps` was set. */
  get kept(): string {
    return this.#kept
  }

  send(bytes: Buffer | string): void {
    this.busy = true
    this.leftAt = performance.now()
    this.#socket.write(bytes)
  }

  close(): void {
    this.#open = false
    this.#socket.destroy()
  }

  #open = true

  #gone(why: string): void {
    if (!this.#open) return
    this.#open = false
    this.#socket.destroy()
    this.#events.gone(this, why)
  }

  #read(buffer: Buffer, length: number): void {
    let at = 0
    while (at < length && this.#open) at = this.#step(buffer, at, length)
  }

  /** Reads on in the present state; returns the place behind what it took. */
  #step(buffer: Buffer, at: number, length: number): number {
    switch (this.#reading) {
      case 'head':
        return this.#readHead(buffer, at, length)
      case 'fixed':
      case 'chunk':
        return this.#readBody(buffer, at, length)
      case 'chunk-size':
        return this.#readSize(buffer, at, length)
      case 'chunk-end':
        if (buffer[at] === 10) this.#startSize()
        return at + 1
      case 'trailer':
        return this.#readTrailer(buffer, at)
    }
  }

  #readHead(buffer: Buffer, at: number, length: number): number {
    // A head nearly always comes in one piece: then nothing is copied.
    const held = this.#head
    const bytes = held === null ? buffer : Buffer.concat([held, buffer.subarray(at, length)])
    const from = held === null ? at : 0
    const limit = held === null ? length : bytes.length
    const end = bytes.indexOf(HEAD_END, from)
    if (end === -1 || end + 4 > limit) {
      if (limit - from > HEAD_BYTES_MAX) this.#gone('an answer head without an end')
      this.#head = Buffer.from(bytes.subarray(from, limit))
      return length
    }
    this.#head = null
    this.#startBody(bytes.toString('latin1', from, end))
    return at + (end + 4 - from) - (held === null ? 0 : held.length)
  }

  #startBody(head: string): void {
    this.#status = Number(head.slice(9, 12))
    this.#kept = ''
    if (!head.startsWith('HTTP/1.1 ') || Number.isNaN(this.#status)) {
      this.#gone(`not an HTTP/1.1 answer: ${head.slice(0, 40)}`)
      return
    }
    const match = CONTENT_LENGTH.exec(head)
    if (match !== null) {
      this.#left = Number(match[1])
      this.#reading = 'fixed'
      if (this.#left === 0) this.#answered()
    } else if (CHUNKED.test(head)) {
      this.#startSize()
    } else if (this.#status === 204 || this.#status === 304) {
      this.#answered()
    } else {
      this.#gone('an answer of unknown length')
    }
  }

  #readBody(buffer: Buffer, at: number, length: number): number {
    const end = Math.min(length, at + this.#left)
    this.#events.body?.(this, buffer.subarray(at, end))
    if ((this.#status >= 400 || this.keeps) && this.#kept.length < KEPT_CHARS_MAX) {
      this.#kept += buffer.toString('latin1', at, end)
    }
    this.#left -= end - at
    if (this.#left === 0) {
      if (this.#reading === 'fixed') this.#answered()
      else this.#reading = 'chunk-end'
    }
    return end
  }

  #startSize(): void {
    this.#size = 0
    this.#reading = 'chunk-size'
  }

  #readSize(buffer: Buffer, at: number, length: number): number {
    for (let i = at; i < length; i++) {
      const byte = buffer[i]!
      if (byte === 10) {
        this.#left = this.#size
        // `#left` counts the bytes of a line from here on.
        this.#reading = this.#size === 0 ? 'trailer' : 'chunk'
        return i + 1
      }
      const digit = hexDigit(byte)
      // Chunk extensions are not used by what we talk to.
      if (digit === -1 && byte !== CR) this.#gone('a chunk size that is no number')
      if (digit >= 0) this.#size = this.#size * 16 + digit
    }
    return length
  }

  #readTrailer(buffer: Buffer, at: number): number {
    const byte = buffer[at]!
    if (byte === 10) {
      if (this.#left === 0) this.#answered()
      this.#left = 0
    } else if (byte !== CR) {
      this.#left++
    }
    return at + 1
  }

  #answered(): void {
    this.#reading = 'head'
    this.busy = false
    this.#events.answered(this, this.#status)
  }
}

function hexDigit(byte: number): number {
  if (byte >= 48 && byte <= 57) return byte - 48
  if (byte >= 97 && byte <= 102) return byte - 87
  return byte >= 65 && byte <= 70 ? byte - 55 : -1
}
