// Client secrets: how they are kept and checked. All are kept as salted scrypt, not as a plain
// digest, because an operator may choose a short one (KONTOR_BOOTSTRAP_SECRET). A check takes some
// 50 ms of a pool thread: it never blocks the loop, sign-ins.ts lets few run at once, and a secret
// that was right is remembered for as long as the process lives, so that a client that asks often
// costs microseconds.

import { createHash, createHmac, scrypt, timingSafeEqual } from 'node:crypto'
import { LIMITS } from '../../config/limits.ts'
import type { FillRandom } from '../../protocol/ids.ts'
import type { SecretCheck } from './sign-ins.ts'

/** log2 of scrypt's cost: 16 MiB and about 50 ms a check. */
const COST_LOG2 = 14
const BLOCK_SIZE = 8
const HASH_BYTES = 32

export class Secrets implements SecretCheck {
  readonly #random: FillRandom
  /** Key of the memory's digests: what is remembered is of no use outside this process. */
  readonly #key: Buffer
  readonly #right = new Set<string>()

  constructor(random: FillRandom) {
    this.#random = random
    this.#key = this.#bytes(32)
  }

  /** A new secret of 256 bits, base64url. */
  make(): string {
    return this.#bytes(32).toString('base64url')
  }

  /**
   * The form of a secret that was made here: with a mark of 8 of its 256 bits, by which it is told
   * which of a client's secrets one may be, so that a wrong one is checked once, not ten times.
   */
  async hashMade(secret: string): Promise<string> {
    return `${await this.hash(secret)}$${markOf(secret)}`
  }

  /** The form that is stored: `scrypt$<log2 cost>$<salt>$<hash>`. */
  async hash(secret: string): Promise<string> {
    const salt = this.#bytes(16)
    const hashed = await derive(secret, salt, COST_LOG2)
    return `scrypt$${COST_LOG2}$${salt.toString('base64url')}$${hashed.toString('base64url')}`
  }

  isKnown(secret: string, hashes: readonly string[]): boolean {
    return hashes.some((hash) => this.#right.has(this.#digest(secret, hash)))
  }

  /** Is it the secret of one of these hashes? An empty list takes as long as a wrong secret. */
  async matches(secret: string, hashes: readonly string[]): Promise<boolean> {
    for (const hash of thoseToCheck(secret, hashes)) {
      if (await matches(secret, hash)) {
        this.#remember(this.#digest(secret, hash))
        return true
      }
    }
    return false
  }

  #remember(digest: string): void {
    if (this.#right.size >= LIMITS.access.secretCacheMax) this.#right.clear()
    this.#right.add(digest)
  }

  #digest(secret: string, hash: string): string {
    return createHmac('sha256', this.#key).update(`${hash}\n${secret}`).digest('base64url')
  }

  #bytes(count: number): Buffer {
    const bytes = Buffer.alloc(count)
    this.#random(bytes)
    return bytes
  }
}

/** A hash that no secret has: checked for clients that aren't there, to take the same time. */
const NOBODYS = `scrypt$${COST_LOG2}$${'A'.repeat(22)}$${'A'.repeat(43)}`

/** Of these the ones that the secret may be of; where there is none, that of nobody. */
export function thoseToCheck(secret: string, hashes: readonly string[]): readonly string[] {
  const mark = markOf(secret)
  const own = hashes.filter((hash) => {
    const [, , , , kept] = hash.split('$')
    return kept === undefined || kept === mark
  })
  return own.length > 0 ? own : [NOBODYS]
}

function markOf(secret: string): string {
  return createHash('sha256').update(`mark of ${secret}`).digest('hex').slice(0, 2)
}

async function matches(secret: string, stored: string): Promise<boolean> {
  const [form, cost, salt, hash] = stored.split('$')
  if (form !== 'scrypt' || salt === undefined || hash === undefined) return false
  const derived = await derive(secret, Buffer.from(salt, 'base64url'), Number(cost))
  const kept = Buffer.from(hash, 'base64url')
  return kept.length === HASH_BYTES && timingSafeEqual(derived, kept)
}

function derive(secret: string, salt: Buffer, costLog2: number): Promise<Buffer> {
  const options = { N: 2 ** costLog2, r: BLOCK_SIZE, p: 1, maxmem: 64 * 1024 * 1024 }
  return new Promise((resolve, reject) => {
    scrypt(secret, salt, HASH_BYTES, options, (error, key) =>
      error ? reject(error) : resolve(key),
    )
  })
}
