// What a form of the sign-in pages carries from one page to the next: sealed, so that nobody reads
// or changes it, bound to a cookie of the browser that got the page, so that it is of no use in
// another one (CSRF), and good for a short while. The store keeps nothing, and any member takes any
// member's form. AES-256-GCM with a random nonce of 96 bits (NIST SP 800-38D 8.2.2) and the cookie
// as associated data. Source: CONTRACT 1.11 "Pages", RFC 6749 10.12.

import { createCipheriv, createDecipheriv, hash } from 'node:crypto'
import { LIMITS } from '../../../config/limits.ts'
import type { FillRandom } from '../../../protocol/ids.ts'
import type { Journey } from '../external/provider.ts'
import type { AuthorizeRequest } from './authorize-request.ts'

const CIPHER = 'aes-256-gcm'
const NONCE_BYTES = 12
const TAG_BYTES = 16
const COOKIE_BYTES = 32
const COOKIE = /^[A-Za-z0-9_-]{43}$/

/** Who has shown the password, and what must not have changed since. */
export interface SignedIn {
  readonly principalId: string
  readonly epoch: number
}

/**
 * What a page is about; `who` is there once somebody has signed in. `external` is no page's: the
 * provider sends it back, with its journey.
 */
export interface FormState {
  readonly step: 'sign-in' | 'password' | 'consent' | 'external'
  readonly request: AuthorizeRequest
  readonly who?: SignedIn
  /** Of a consent: a digest of what the page says. */
  readonly shown?: string
  readonly journey?: Journey
}

interface Sealed extends FormState {
  readonly untilMs: number
}

export interface FormSealOptions {
  /** The store's secret, the same on all members. */
  readonly secret: string
  readonly random: FillRandom
  /** Wall clock, milliseconds. */
  readonly nowMs: () => number
  /** Public address: over https the cookie is `__Host-` and Secure. */
  readonly baseUrl: string
}

export class FormSeal {
  readonly #options: FormSealOptions
  readonly #key: Buffer
  readonly #isSecure: boolean

  constructor(options: FormSealOptions) {
    this.#options = options
    this.#key = hash('sha256', `sign-in form ${options.secret}`, 'buffer')
    this.#isSecure = options.baseUrl.startsWith('https:')
  }

  get cookieName(): string {
    return this.#isSecure ? '__Host-kontor-sign-in' : 'kontor-sign-in'
  }

  /** The browser's cookie out of a `Cookie` header; null: it has none that could be ours. */
  cookieOf(header: string): string | null {
    for (const part of header.split(';')) {
      const equals = part.indexOf('=')
      if (equals < 0 || part.slice(0, equals).trim() !== this.cookieName) continue
      const value = part.slice(equals + 1).trim()
      if (COOKIE.test(value)) return value
    }
    return null
  }

  makeCookie(): string {
    return this.#bytes(COOKIE_BYTES).toString('base64url')
  }

  /** `Set-Cookie`. Lax: sent when an application leads here, not with a form of another site. */
  setCookie(value: string): string {
    const secure = this.#isSecure ? '; Secure' : ''
    return `${this.cookieName}=${value}; Path=/; HttpOnly; SameSite=Lax${secure}`
  }

  seal(state: FormState, cookie: string): string {
    const untilMs = this.#options.nowMs() + LIMITS.access.signInFormMs
    const nonce = this.#bytes(NONCE_BYTES)
    const cipher = createCipheriv(CIPHER, this.#key, nonce).setAAD(Buffer.from(cookie))
    const text = JSON.stringify({ ...state, untilMs } satisfies Sealed)
    const parts = [nonce, cipher.update(text, 'utf8'), cipher.final()]
    return Buffer.concat([...parts, cipher.getAuthTag()]).toString('base64url')
  }

  /** null: made for another browser, changed, or too old. */
  open(form: string, cookie: string): FormState | null {
    const bytes = Buffer.from(form, 'base64url')
    if (bytes.length < NONCE_BYTES + TAG_BYTES) return null
    const decipher = createDecipheriv(CIPHER, this.#key, bytes.subarray(0, NONCE_BYTES))
      .setAAD(Buffer.from(cookie))
      .setAuthTag(bytes.subarray(-TAG_BYTES))
    let text: string
    try {
      const opened = decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES))
      text = Buffer.concat([opened, decipher.final()]).toString('utf8')
    } catch {
      return null
    }
    const { untilMs, ...state } = JSON.parse(text) as Sealed
    return untilMs > this.#options.nowMs() ? state : null
  }

  #bytes(count: number): Buffer {
    const bytes = Buffer.alloc(count)
    this.#options.random(bytes)
    return bytes
  }
}
