// Bodies that come packed: few are unpacked at once, the others wait their turn. It stands between
// whole gzip bodies and the memory that they become. Source: CONTRACT 0 "Bodies".

import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { RequestError } from '../../protocol/errors.ts'

const gunzipAsync = promisify(gunzip)

/** The body, or the refusal to send. */
type Unpacked = Buffer | RequestError

export class Unpacking {
  readonly #atOnceMax: number
  readonly #waitingMax: number
  readonly #waiting: (() => void)[] = []
  #running = 0

  constructor(bounds: { readonly unpackingsMax: number; readonly unpackingsWaitingMax: number }) {
    this.#atOnceMax = bounds.unpackingsMax
    this.#waitingMax = bounds.unpackingsWaitingMax
  }

  /** Unpacks a gzip body within the bound; a bomb ends at the bound. */
  async unpack(bytes: Buffer, bytesMax: number): Promise<Unpacked> {
    if (this.#running >= this.#atOnceMax) {
      if (this.#waiting.length >= this.#waitingMax) {
        return new RequestError('TOO_BUSY', 'too many packed bodies at once; nothing was done')
      }
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    } else this.#running++
    try {
      return await gunzipAsync(bytes, { maxOutputLength: bytesMax })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ERR_BUFFER_TOO_LARGE') {
        return new RequestError('MALFORMED_REQUEST', 'the body is not valid gzip')
      }
      const message = `the unpacked body is larger than ${bytesMax} bytes`
      return new RequestError('TOO_LARGE', message, { bytesMax })
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#running--
      // The place is handed on: nobody who comes meanwhile gets before who waits.
      else setImmediate(next)
    }
  }
}
