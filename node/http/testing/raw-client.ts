// A client that says exactly what it is told, byte for byte, and reads answers as they come. For
// the tests of this folder, where a well-behaved client would hide what is tested.

import { connect } from 'node:net'
import type { Socket } from 'node:net'

export interface RawResponse {
  readonly status: number
  /** By lower-case name; a repeated one is joined by `, `. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

/** Longest wait for anything that a test expects; only a failing test meets it. */
export const DEADLINE_MS = 20_000
const STALLED_MS = 300

export class RawClient {
  readonly socket: Socket
  private received: Buffer = Buffer.alloc(0)
  private ended = false
  private wake: (() => void) | null = null

  constructor(port: number) {
    this.socket = connect({ port, host: '127.0.0.1', noDelay: true, allowHalfOpen: true })
    this.socket.on('data', (chunk: Buffer) => {
      this.received = Buffer.concat([this.received, chunk])
      this.wake?.()
    })
    for (const event of ['end', 'close', 'error']) {
      this.socket.on(event, () => {
        this.ended = true
        this.wake?.()
      })
    }
  }

  send(text: string | Buffer): this {
    this.socket.write(text)
    return this
  }

  /** The next answer on this connection; `method` HEAD has no body. */
  async response(method = 'GET'): Promise<RawResponse> {
    const headEnd = await this.until(
      () => this.received.indexOf('\r\n\r\n'),
      'the head of an answer',
    )
    const head = this.take(headEnd + 4).toString('latin1')
    const [first = '', ...lines] = head.trimEnd().split('\r\n')
    const headers: Record<string, string> = {}
    for (const line of lines) {
      const colon = line.indexOf(':')
      const name = line.slice(0, colon).toLowerCase()
      const value = line.slice(colon + 1).trim()
      headers[name] = headers[name] === undefined ? value : `${headers[name]}, ${value}`
    }
    const status = Number(first.split(' ')[1])
    return { status, headers, body: await this.readBody(method, status, headers) }
  }

  /** Resolves when the server has closed or ended the connection. */
  async closed(): Promise<void> {
    await this.until(() => (this.ended ? 0 : -1), 'the end of the connection', true)
  }

  /** Bytes that came and were not taken as an answer. */
  get rest(): Buffer {
    return this.received
  }

  destroy(): void {
    this.socket.destroy()
  }

  private async readBody(
    method: string,
    status: number,
    headers: Readonly<Record<string, string>>,
  ): Promise<Buffer> {
    if (method === 'HEAD' || status === 204 || status === 304) return Buffer.alloc(0)
    if (headers['transfer-encoding'] !== 'chunked') {
      const length = Number(headers['content-length'] ?? 0)
      await this.until(() => (this.received.length >= length ? 0 : -1), `${length} bytes of a body`)
      return this.take(length)
    }
    const pieces: Buffer[] = []
    for (;;) {
      const lineEnd = await this.until(() => this.received.indexOf('\r\n'), 'a chunk')
      const size = Number.parseInt(this.take(lineEnd + 2).toString('latin1'), 16)
      await this.until(() => (this.received.length >= size + 2 ? 0 : -1), 'a whole chunk')
      if (size > 0) pieces.push(this.take(size))
      this.take(2)
      if (size === 0) return Buffer.concat(pieces)
    }
  }

  private take(bytes: number): Buffer {
    const taken = this.received.subarray(0, bytes)
    this.received = this.received.subarray(bytes)
    return taken
  }

  /**
   * Waits until `found` gives an index; fails at the deadline, and at the end of the connection.
   */
  private async until(found: () => number, what: string, endIsFine = false): Promise<number> {
    const deadline = performance.now() + DEADLINE_MS
    for (;;) {
      const index = found()
      if (index >= 0) return index
      const soFar = JSON.stringify(this.received.subarray(0, 200).toString('latin1'))
      if (this.ended && !endIsFine) throw new Error(`closed before ${what}; got ${soFar}`)
      const left = deadline - performance.now()
      if (left <= 0) throw new Error(`no ${what} in time; got ${soFar}`)
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, left)
        this.wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
  }
}

/** Waits until `reading` has been the same for a while: what drove it is held back. */
export async function stalls(reading: () => number, what: string): Promise<void> {
  let last = reading()
  let since = performance.now()
  await eventually(() => {
    if (reading() !== last) {
      last = reading()
      since = performance.now()
    }
    return performance.now() - since > STALLED_MS
  }, what)
}

/** Polls until `holds`, at most to the deadline. */
export async function eventually(holds: () => boolean, what: string): Promise<void> {
  const deadline = performance.now() + DEADLINE_MS
  while (!holds()) {
    if (performance.now() > deadline) throw new Error(`not in time: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
