// One socket of `/ws` (RFC 6455), as cheap as it can be: small text frames out, whole frames in.
// The generator shares two cores with what it measures: a thousand of these take a thousand frames
// a second in some milliseconds.

import type { Socket } from 'node:net'
import { openConnection } from './connection.ts'

const READ_BYTES = 16 * 1024
const HEAD_END = '\r\n\r\n'
const ACCEPTED = 'HTTP/1.1 101 '
/** Any 16 bytes do: nothing between us and the server caches. */
const KEY = Buffer.alloc(16, 7).toString('base64')
const TEXT = 0x81
const CLOSE = 0x88
const MASKED = 0x80
/** A mask of zeros leaves the bytes as they are; browsers draw one, for the sake of proxies. */
const MASK = Buffer.alloc(4)

export interface WebSocketEvents {
  /** A text frame is complete; the bytes are overwritten after the call. */
  frame(payload: Buffer): void
  /** The connection is gone. */
  gone(why: string): void
}

export class WebSocketClient {
  readonly #events: WebSocketEvents
  readonly #socket: Socket
  readonly #opened: Promise<void>
  /** What came of a frame that is not whole. */
  #rest: Buffer | null = null
  #isUpgraded = false
  #isOpen = true
  #accept!: () => void
  #refuse!: (error: Error) => void

  constructor({ host, port }: { host: string; port: number }, events: WebSocketEvents) {
    this.#events = events
    this.#opened = new Promise((resolve, reject) => {
      this.#accept = resolve
      this.#refuse = reject
    })
    // Who never waits for it hears of it by `gone`.
    this.#opened.catch(() => {})
    this.#socket = openConnection(
      { host, port, readBytes: READ_BYTES },
      {
        read: (buffer, length) => this.#read(buffer.subarray(0, length)),
        gone: (why) => this.#gone(why),
      },
    )
    this.#socket.write(
      `GET /ws HTTP/1.1\r\nHost: ${host}:${port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
        `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${KEY}\r\n\r\n`,
    )
  }

  /** Resolves when frames can be sent; rejects when it was not let in. */
  opened(): Promise<void> {
    return this.#opened
  }

  send(frame: object): void {
    const payload = Buffer.from(JSON.stringify(frame))
    const { length } = payload
    const size = length < 126 ? [MASKED | length] : [MASKED | 126, length >> 8, length & 255]
    this.#socket.write(Buffer.concat([Buffer.from([TEXT, ...size]), MASK, payload]))
  }

  close(): void {
    this.#isOpen = false
    this.#socket.destroy()
  }

  #gone(why: string): void {
    if (!this.#isOpen) return
    this.close()
    this.#refuse(new Error(`no socket: ${why}`))
    this.#events.gone(why)
  }

  #read(piece: Buffer): void {
    // Frames nearly always come whole: then nothing is copied.
    let bytes = this.#rest === null ? piece : Buffer.concat([this.#rest, piece])
    if (!this.#isUpgraded) {
      const end = bytes.indexOf(HEAD_END)
      if (end >= 0 && !bytes.toString('latin1', 0, ACCEPTED.length).startsWith(ACCEPTED)) {
        this.#gone(bytes.toString('latin1', 0, 200))
      } else if (end >= 0) {
        this.#isUpgraded = true
        bytes = bytes.subarray(end + HEAD_END.length)
        this.#accept()
      }
    }
    let at = 0
    while (this.#isUpgraded && this.#isOpen) {
      const next = this.#frame(bytes, at)
      if (next === at) break
      at = next
    }
    this.#rest = at === bytes.length ? null : Buffer.from(bytes.subarray(at))
  }

  /** Takes the frame that begins there; returns the place behind it, or the same: not whole yet. */
  #frame(bytes: Buffer, at: number): number {
    if (bytes.length < at + 2) return at
    const short = bytes[at + 1]!
    const head = short < 126 ? 2 : short === 126 ? 4 : 10
    if (bytes.length < at + head) return at
    const length =
      head === 2
        ? short
        : head === 4
          ? bytes.readUInt16BE(at + 2)
          : Number(bytes.readBigUInt64BE(at + 2))
    const [from, end] = [at + head, at + head + length]
    if (bytes.length < end) return at
    if (bytes[at] === TEXT) this.#events.frame(bytes.subarray(from, end))
    else if (bytes[at] === CLOSE) this.#gone(`closed: ${bytes.toString('utf8', from + 2, end)}`)
    return end
  }
}
