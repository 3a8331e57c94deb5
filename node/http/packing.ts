// Answers that are being packed with gzip, and how many bytes of them at once: all of them wait for
// the few threads of the pool, and meanwhile nobody counts them as unread. Source: CONTRACT 0
// "Bodies".

import { promisify } from 'node:util'
import { constants, gzip, gzipSync } from 'node:zlib'

const gzipAsync = promisify(gzip)
// Level 1 takes half the time of the default for a tenth more bytes.
const GZIP = { level: constants.Z_BEST_SPEED }
/** What one takes beside its own bytes: room for what comes out. */
const ROOM_BYTES = 16 * 1024

export class Packing {
  readonly #bytesMax: number
  #bytes = 0

  /** @param bytesMax of answers at once; a larger one has the pool to itself */
  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  /** A small one at once, on this thread. */
  packNow(payload: string | Uint8Array): Buffer {
    return gzipSync(payload, GZIP)
  }

  /** Null: there is no room, it goes as it is. */
  pack(payload: string | Uint8Array): Promise<Buffer> | null {
    const bytes = payload.length + ROOM_BYTES
    if (this.#bytes > 0 && this.#bytes + bytes > this.#bytesMax) return null
    this.#bytes += bytes
    return gzipAsync(payload, GZIP).finally(() => void (this.#bytes -= bytes))
  }
}
