// The seal of an entry: a keyed digest by which a member knows that another one of this store wrote
// it, for this inbox, and that it is new. Whoever else can write to Redis could write to any actor
// without. Source: PROTOCOL 3.6 "Wire".
//
// One digest covers all that a member has for another in one tick, so it costs some microseconds an
// entry, however many messages are in it. `n` rises with every entry of a sender and begins with
// its clock: an entry that was seen, or any older one, is not taken again, and none that was held
// back for long. An entry that overtakes another one is as good as lost, which the edges mend.

import { hash, timingSafeEqual } from 'node:crypto'
import { assert } from '../../protocol/errors.ts'
import { LIMITS } from '../../config/limits.ts'
import { senderOf } from './entry.ts'

export interface SealOptions {
  /** StoreIdentity.secret. */
  readonly secret: string
  /** Wall clock, milliseconds. */
  readonly nowMs: () => number
}

/** Steps of `n` in a millisecond of the sender's clock. */
const STEPS_A_MS = 1_000

/**
 * HMAC-SHA256 (RFC 2104), with a key of at most 64 ASCII characters. Two calls of `hash` take a
 * third of the time of node's Hmac objects.
 */
function hmacOf(key: string): (text: string) => Buffer {
  const padded = Buffer.alloc(BLOCK_BYTES)
  assert(key.length <= BLOCK_BYTES && !/[^ -~]/.test(key), 'a key of one block of ASCII')
  padded.write(key, 'latin1')
  // Both stay ASCII: as text in front of the text they are the bytes that they should be.
  const inner = Buffer.from(padded.map((byte) => byte ^ 0x36)).toString('latin1')
  const outer = Buffer.alloc(BLOCK_BYTES + HASH_BYTES)
  outer.set(padded.map((byte) => byte ^ 0x5c))
  return (text) => {
    outer.set(hash('sha256', inner + text, 'buffer'), BLOCK_BYTES)
    return hash('sha256', outer, 'buffer')
  }
}

/** Of SHA-256. */
const BLOCK_BYTES = 64
const HASH_BYTES = 32

export class Seal {
  readonly #options: SealOptions
  readonly #hmac: (text: string) => Buffer
  #last = 0
  /** Highest `n` by sender, those heard of lately last. */
  readonly #seen = new Map<string, number>()

  constructor(options: SealOptions) {
    this.#options = options
    this.#hmac = hmacOf(options.secret)
  }

  /** Senders that are remembered. */
  get senders(): number {
    return this.#seen.size
  }

  /** The fields of an entry for the inbox of this name, sealed. */
  close(inbox: string, fields: readonly string[]): string[] {
    this.#last = Math.max(this.#last + 1, Math.floor(this.#options.nowMs() * STEPS_A_MS))
    const n = String(this.#last)
    return [...fields, 'n', n, 'm', this.#digest(inbox, n, fields).toString('base64')]
  }

  /** Null for an entry that a member wrote for this inbox and that is new; else what it is not. */
  fault(inbox: string, fields: readonly string[]): string | null {
    const end = fields.length - 4
    if (end < 0 || fields[end] !== 'n' || fields[end + 2] !== 'm') return 'it is not sealed'
    const n = fields[end + 1]!
    const sealed = Buffer.from(fields[end + 3]!, 'base64')
    const right = this.#digest(inbox, n, fields.slice(0, end))
    if (sealed.length !== right.length || !timingSafeEqual(sealed, right)) {
      return 'its seal is not that of a member of this store'
    }
    const sender = senderOf(fields)
    return sender === null ? 'it names no sender' : this.#replay(sender, Number(n))
  }

  #replay(sender: string, n: number): string | null {
    const last = this.#seen.get(sender) ?? 0
    if (n <= last) return 'it was here already, or a later one was'
    const ageMs = this.#options.nowMs() - n / STEPS_A_MS
    if (ageMs > LIMITS.redis.sealAgeMs) return `it was sealed ${Math.round(ageMs / 1_000)} s ago`
    this.#seen.delete(sender)
    this.#seen.set(sender, n)
    if (this.#seen.size > LIMITS.redis.sendersMax) {
      this.#seen.delete(this.#seen.keys().next().value!)
    }
    return null
  }

  /** Each field with its length: no two entries read alike. */
  #digest(inbox: string, n: string, fields: readonly string[]): Buffer {
    let text = `${inbox.length} ${inbox} ${n}`
    for (const field of fields) text += ` ${field.length} ${field}`
    return this.#hmac(text)
  }
}
