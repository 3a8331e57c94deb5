// The trace of a run: a line for everything that happened, as a hash, and as text for whoever looks
// for a mistake. Two runs of one seed must have the same. Source: PROTOCOL 4.1.

import { createHash } from 'node:crypto'

const PIECE_CHARS = 64 * 1024

export class Trace {
  readonly #hash = createHash('sha256')
  readonly #show: ((line: string) => void) | null
  #piece = ''
  #digest: string | null = null

  constructor(show: ((line: string) => void) | null = null) {
    this.#show = show
  }

  add(line: string): void {
    this.#piece += `${line}\n`
    if (this.#show) this.#show(line)
    if (this.#piece.length < PIECE_CHARS) return
    this.#hash.update(this.#piece)
    this.#piece = ''
  }

  /** Ends the trace. */
  digest(): string {
    this.#digest ??= this.#hash.update(this.#piece).digest('hex')
    return this.#digest
  }
}
