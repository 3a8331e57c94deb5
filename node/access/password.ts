// Passwords of people: how they are kept and checked, and which are refused. They are kept as
// argon2id with the parameters of the OWASP password storage cheat sheet (19 MiB, 2 passes), hashed
// on the thread pool. A check never says whether there is such a person, in words or in time; its
// lines, bounds and what follows wrong ones are those of client secrets (sign-ins.ts). Source:
// specification "Identity resources", CONTRACT 1.8 "Passwords", 1.11 "Wrong sign-ins".

import type * as Argon2 from '@node-rs/argon2'
import { LIMITS } from '../../config/limits.ts'
import { errorItem } from '../../protocol/errors.ts'
import type { ErrorItem } from '../../protocol/errors.ts'
import type { FillRandom } from '../../protocol/ids.ts'
import { foldedEmail } from './principal.ts'
import type { Principal } from './principal.ts'
import { weaknessOf } from './password-rules.ts'
import { SignIns } from './sign-ins.ts'
import type { SecretCheck, SignInAnswer } from './sign-ins.ts'
import type { WrongSignInsOptions } from './wrong-sign-ins.ts'

export interface PasswordsOptions {
  readonly random: FillRandom
  /** Wall clock, and one that only rises; milliseconds. */
  readonly nowMs: () => number
  readonly monotonicMs: () => number
  /** How many wrong ones are borne; absent: as LIMITS.access says. */
  readonly wrong?: WrongSignInsOptions
}

export interface PasswordSignIn {
  /** Who has the e-mail address; null: nobody, which takes as long as a wrong password. */
  readonly principal: Principal | null
  /** As it was typed. */
  readonly email: string
  readonly password: string
  /** Where it comes from; empty when nobody can tell. */
  readonly address: string
}

/** `temporary`: right, and good for nothing but choosing another one. */
export type PasswordAnswer = SignInAnswer | 'temporary'

const ARGON2ID = { algorithm: 2, memoryCost: 19_456, timeCost: 2, parallelism: 1 } as const

/** Letters and digits that nobody takes for another; a power of two, so that none is likelier. */
const ALPHABET = 'abcdefghjkmnpqrstuvwxyz23456789A'

const checks: SecretCheck = {
  // Of a password nothing is kept in memory.
  isKnown: () => false,
  atOnce: () => null,
  async matches([password], hashes) {
    let isRight = false
    for (const kept of hashes.length > 0 ? hashes : [await nobodys()]) {
      const { verify } = await argon2()
      isRight = await verify(kept, prepared(password))
    }
    return isRight && hashes.length > 0
  },
}

export class Passwords {
  readonly #options: PasswordsOptions
  readonly #signIns: SignIns

  constructor(options: PasswordsOptions) {
    this.#options = options
    const { wrong, monotonicMs: nowMs } = options
    this.#signIns = new SignIns({ secrets: checks, nowMs, ...(wrong && { wrong }) })
  }

  /** Whether it is the password of the principal. Of one that is suspended it never is. */
  async check({ principal, email, password, address }: PasswordSignIn): Promise<PasswordAnswer> {
    const kept = principal?.suspendedAt === null ? principal.password : null
    const { expiresAt = null } = kept ?? {}
    const isOver = expiresAt !== null && Date.parse(expiresAt) <= this.#options.nowMs()
    const answer = await this.#signIns.check({
      clientId: foldedEmail(email),
      secret: password,
      hashes: kept === null || isOver ? [] : [kept.hash],
      address,
    })
    return answer === 'right' && expiresAt !== null ? 'temporary' : answer
  }

  /** The form that is stored (PHC string, `$argon2id$v=19$...`). */
  async hash(password: string): Promise<string> {
    const { hash } = await argon2()
    return hash(prepared(password), ARGON2ID)
  }

  /** Why a password may not be chosen (422), or null. */
  fault(password: string, { properties }: Pick<Principal, 'properties'>): ErrorItem | null {
    const why = weaknessOf(prepared(password), [properties.name, properties.email])
    return why === null ? null : errorItem('WEAK_PASSWORD', `the password ${why}`)
  }

  /** A new temporary password: 100 random bits, in groups that can be read out. */
  temporary(): string {
    const bytes = Buffer.alloc(20)
    this.#options.random(bytes)
    const letters = Array.from(bytes, (byte) => ALPHABET[byte % ALPHABET.length])
    return letters.join('').replace(/.{5}(?=.)/g, '$&-')
  }

  /** When one that is made now ends. */
  temporaryUntil(): string {
    return new Date(this.#options.nowMs() + LIMITS.access.temporaryPasswordMs).toISOString()
  }
}

/** However a keyboard composes its letters (RFC 8265 4.2.2). */
function prepared(password: string): string {
  return password.normalize('NFC')
}

let ofNobody: Promise<string> | null = null

/** A hash that is checked for people who aren't there, to take the same time. */
function nobodys(): Promise<string> {
  return (ofNobody ??= argon2().then(({ hash }) => hash('nobody has this password', ARGON2ID)))
}

/** Loaded with the first password: threads that only fold need no native code. */
function argon2(): Promise<typeof Argon2> {
  return import('@node-rs/argon2')
}
