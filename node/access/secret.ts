// Client secrets: how they are kept and checked. One that is made here has 256 random bits: it is
// kept as a salted SHA-256, for nobody guesses it however fast they check. One that an operator
// chose (KONTOR_BOOTSTRAP_SECRET) may be a phrase: it is kept as scrypt, as all were by older
// programs. Such a check takes some 33 ms of a pool thread, so sign-ins.ts lets few run at once;
// once the right one was seen, this process tells right from wrong by a digest as well. Source:
// CONTRACT 1.11 "Wrong sign-ins", NIST SP 800-63B 5.1.2.2 (look-up secrets of 112 bits and more).

import { createHmac, hash, scrypt, timingSafeEqual } from 'node:crypto'
import { LIMITS } from '../../config/limits.ts'
import type { FillRandom } from '../../protocol/ids.ts'
import type { Readings, SecretCheck } from './sign-ins.ts'

/** log2 of scrypt's cost: 16 MiB and about 33 ms a check. */
const COST_LOG2 = 14
const BLOCK_SIZE = 8
const SALT_BYTES = 16
const HASH_BYTES = 32
const MADE = 'sha256$'
const CHOSEN = 'scrypt$'

/** SHA-256 of a salt and a secret. */
export type Digest = (salt: Buffer, secret: string) => Buffer

export const sha256: Digest = (salt, secret) =>
  hash('sha256', Buffer.concat([salt, Buffer.from(secret)]), 'buffer')

export class Secrets implements SecretCheck {
  readonly #random: FillRandom
  readonly #digestOf: Digest
  /** Key of the memory's digests: what is remembered is of no use outside this process. */
  readonly #key: Buffer
  /** Digests of secrets that were right, by the stored form that they are of. */
  readonly #right = new Map<string, Buffer>()

  constructor(random: FillRandom, digest: Digest = sha256) {
    this.#random = random
    this.#digestOf = digest
    this.#key = this.#bytes(HASH_BYTES)
  }

  /** A new secret of 256 bits, base64url. */
  make(): string {
    return this.#bytes(HASH_BYTES).toString('base64url')
  }

  /** The form in which one that was made here is stored: `sha256$<salt>$<hash>`. */
  hashMade(secret: string): string {
    const salt = this.#bytes(SALT_BYTES)
    const hashed = this.#digestOf(salt, secret)
    return `${MADE}${salt.toString('base64url')}$${hashed.toString('base64url')}`
  }

  /** The form in which one that somebody chose is stored: `scrypt$<log2 cost>$<salt>$<hash>`. */
  async hashChosen(secret: string): Promise<string> {
    const salt = this.#bytes(SALT_BYTES)
    const hashed = await derive(secret, salt, COST_LOG2)
    const texts = [COST_LOG2, salt.toString('base64url'), hashed.toString('base64url')]
    const stored = `${CHOSEN}${texts.join('$')}`
    this.#remember(stored, this.#digest(secret))
    return stored
  }

  isKnown(readings: Readings, hashes: readonly string[]): boolean {
    const all = padded(hashes)
    return readings.some((secret) => {
      const digest = this.#digest(secret)
      return all.some((stored) => timingSafeEqual(digest, this.#right.get(stored) ?? NOTHING))
    })
  }

  /**
   * As many digests are made for a client that isn't there as for one with all the secrets that it
   * may have, and for right ones as for wrong ones.
   */
  atOnce(readings: Readings, hashes: readonly string[]): boolean | null {
    const all = padded(hashes)
    if (readings.filter((secret) => this.#isRight(secret, all)).length > 0) return true
    return this.#slow(readings[0], all).length > 0 ? null : false
  }

  #isRight(secret: string, all: readonly string[]): boolean {
    const digest = this.#digest(secret)
    const right = all.filter((stored) => {
      const isMade = this.#isDigestOf(secret, stored)
      return timingSafeEqual(digest, this.#right.get(stored) ?? NOTHING) || isMade
    })
    for (const stored of right) this.#remember(stored, digest)
    return right.length > 0
  }

  async matches(readings: Readings, hashes: readonly string[]): Promise<boolean> {
    const answer = this.atOnce(readings, hashes)
    if (answer !== null) return answer
    const [secret] = readings
    for (const stored of this.#slow(secret, hashes)) {
      if (await isScryptOf(secret, stored)) {
        this.#remember(stored, this.#digest(secret))
        return true
      }
    }
    return false
  }

  /** What is stored otherwise costs a digest, too. */
  #isDigestOf(secret: string, stored: string): boolean {
    const form = stored.startsWith(MADE) ? stored : NOBODYS
    const [salt, digest] = form.slice(MADE.length).split('$')
    const kept = Buffer.from(digest ?? '', 'base64url')
    const own = this.#digestOf(Buffer.from(salt ?? '', 'base64url'), secret)
    return kept.length === HASH_BYTES && timingSafeEqual(own, kept)
  }

  /** Those of which scrypt alone can say whether it is their secret. */
  #slow(secret: string, hashes: readonly string[]): readonly string[] {
    return hashes.filter((stored) => !this.#right.has(stored) && mayBeScryptOf(secret, stored))
  }

  /** Past its bound the one that was right first is forgotten. */
  #remember(stored: string, digest: Buffer): void {
    this.#right.delete(stored)
    if (this.#right.size >= LIMITS.access.secretCacheMax) {
      this.#right.delete(this.#right.keys().next().value!)
    }
    this.#right.set(stored, digest)
  }

  #digest(secret: string): Buffer {
    return createHmac('sha256', this.#key).update(secret).digest()
  }

  #bytes(count: number): Buffer {
    const bytes = Buffer.alloc(count)
    this.#random(bytes)
    return bytes
  }
}

/** Nobody's digest, and nobody's stored form: no secret is known that has them. */
const NOTHING = Buffer.alloc(HASH_BYTES)
const NOBODYS = `${MADE}${'A'.repeat(22)}$${'A'.repeat(43)}`

const ALL_NOBODYS: readonly string[] = Array.from(
  { length: LIMITS.access.secretsOfClientMax },
  () => NOBODYS,
)

/** As many as a client has at most. */
function padded(hashes: readonly string[]): readonly string[] {
  return hashes.concat(ALL_NOBODYS.slice(hashes.length))
}

/**
 * Older programs kept what they had made as `scrypt$<log2 cost>$<salt>$<hash>$<mark>`, with 8 of
 * its 256 bits, by which most wrong ones are told.
 */
function mayBeScryptOf(secret: string, stored: string): boolean {
  if (!stored.startsWith(CHOSEN)) return false
  const [, , , , mark] = stored.split('$')
  if (mark === undefined) return true
  const own = hash('sha256', `mark of ${secret}`, 'hex').slice(0, 2)
  return mark === own
}

async function isScryptOf(secret: string, stored: string): Promise<boolean> {
  const [, cost, salt, derivedOf] = stored.split('$')
  if (salt === undefined || derivedOf === undefined) return false
  const derived = await derive(secret, Buffer.from(salt, 'base64url'), Number(cost))
  const kept = Buffer.from(derivedOf, 'base64url')
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
