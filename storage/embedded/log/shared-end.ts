// Where the log ends, for the other threads of a process: one number that the writer stores and
// readers load. What lies before it is on the disk.

import type { LogPosition } from '../../segment-log/scan.ts'

/** Positions are below this; files are few enough for the rest of 63 bits. */
const POSITION_BITS = 40n
const POSITION_MASK = (1n << POSITION_BITS) - 1n

export class SharedEnd {
  readonly buffer: SharedArrayBuffer
  readonly #cell: BigInt64Array

  constructor(buffer = new SharedArrayBuffer(8)) {
    this.buffer = buffer
    this.#cell = new BigInt64Array(buffer)
  }

  store({ file, position }: LogPosition): void {
    Atomics.store(this.#cell, 0, (BigInt(file) << POSITION_BITS) | BigInt(position))
  }

  /** null: nothing was stored yet. */
  load(): LogPosition | null {
    const packed = Atomics.load(this.#cell, 0)
    if (packed === 0n) return null
    return { file: Number(packed >> POSITION_BITS), position: Number(packed & POSITION_MASK) }
  }
}
