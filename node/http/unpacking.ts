// Bodies that come packed: few are unpacked at once, the others wait, and callers take turns.
// Source: CONTRACT 0 "Bodies".

import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { RequestError } from '../../protocol/errors.ts'
import { FairQueue } from '../queues/fair-queue.ts'
import type { Flow } from '../queues/fair-queue.ts'

const gunzipAsync = promisify(gunzip)

/** The body, or the refusal to send. */
type Unpacked = Buffer | RequestError

export class Unpacking {
  readonly #atOnceMax: number
  readonly #waiting: FairQueue<(mayGo: boolean) => void>
  #running = 0

  constructor(bounds: { readonly unpackingsMax: number; readonly unpackingsWaitingMax: number }) {
    this.#atOnceMax = bounds.unpackingsMax
    const max = bounds.unpackingsWaitingMax
    this.#waiting = new FairQueue({ max, groupMax: max })
  }

  /** Unpacks a gzip body within the bound; a bomb ends at the bound. Callers take turns. */
  async unpack(bytes: Buffer, bytesMax: number, caller: Flow): Promise<Unpacked> {
    if (!(await this.#enter(caller))) {
      return new RequestError('TOO_BUSY', 'too many packed bodies at once; nothing was done')
    }
    try {
      return await gunzipAsync(bytes, { maxOutputLength: bytesMax })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ERR_BUFFER_TOO_LARGE') {
        return new RequestError('MALFORMED_REQUEST', 'the body is not valid gzip')
      }
      const message = `the unpacked body is larger than ${bytesMax} bytes`
      return new RequestError('TOO_LARGE', message, { bytesMax })
    } finally {
      const next = this.#waiting.take()
      if (next === null) this.#running--
      // The place is handed on: nobody who comes meanwhile gets before who waits.
      else setImmediate(next, true)
    }
  }

  /** False: there is no room, for it or by now, as whoever has most waiting has to go first. */
  async #enter(caller: Flow): Promise<boolean> {
    if (this.#running < this.#atOnceMax) {
      this.#running++
      return true
    }
    return new Promise((resolve) => this.#waiting.push(caller, resolve)?.(false))
  }
}
