// Secret registry values at rest: encrypted before they leave the member that was given them, and
// opened where they are used, so the log, what is derived from it, the wire and backups hold them
// sealed. AES-256-GCM with a random nonce of 96 bits for each value (NIST SP 800-38D 8.2.2) and the
// entry's key as associated data: a sealed value that is put elsewhere can't be opened. Source:
// CONTRACT 1.1 "Secrets".

import { createCipheriv, createDecipheriv, createHmac } from 'node:crypto'
import type { SystemEntry } from '../../cluster/actor-system.ts'
import type { Settings } from '../../config/settings.ts'
import { RequestError } from '../../protocol/errors.ts'
import type { FillRandom } from '../../protocol/ids.ts'
import type { SecretsKeyNames } from '../../storage/secrets-key.ts'
import type { RegistryEntry } from './entry.ts'

const CIPHER = 'aes-256-gcm'
const NONCE_BYTES = 12
const TAG_BYTES = 16
/** Of a key's name: tells keys apart, and nothing of them. */
const NAME_BYTES = 9

export class RegistrySecrets {
  readonly #current: string | null
  readonly #keys = new Map<string, Buffer>()
  readonly #random: FillRandom

  /** Keys as the settings have them, base64 of 32 bytes; none: secrets are kept as they are. */
  constructor({ key, oldKeys }: Settings['secrets'], random: FillRandom) {
    this.#random = random
    for (const text of [...oldKeys, ...(key === null ? [] : [key])]) {
      const bytes = Buffer.from(text, 'base64')
      this.#keys.set(nameOf(bytes), bytes)
    }
    this.#current = key === null ? null : nameOf(Buffer.from(key, 'base64'))
  }

  get names(): SecretsKeyNames {
    return { current: this.#current, known: [...this.#keys.keys()] }
  }

  /** Keys by name that this process doesn't have, with how many of these entries need each. */
  lacking(entries: Iterable<Pick<SystemEntry<RegistryEntry>, 'value'>>): Map<string, number> {
    const lacking = new Map<string, number>()
    for (const { value } of entries) {
      const name = value.sealed?.split('.')[0]
      if (name === undefined || this.#keys.has(name)) continue
      lacking.set(name, (lacking.get(name) ?? 0) + 1)
    }
    return lacking
  }

  /** The entry of a secret value: sealed when there is a key. */
  seal(path: string, value: unknown): RegistryEntry {
    const name = this.#current
    if (name === null) return { value, isSecret: true }
    const nonce = Buffer.alloc(NONCE_BYTES)
    this.#random(nonce)
    const cipher = createCipheriv(CIPHER, this.#keys.get(name)!, nonce)
    cipher.setAAD(boundTo(path))
    const text = Buffer.concat([cipher.update(JSON.stringify(value), 'utf8'), cipher.final()])
    const sealed = Buffer.concat([nonce, text, cipher.getAuthTag()]).toString('base64url')
    return { value: null, isSecret: true, sealed: `${name}.${sealed}` }
  }

  /**
   * The value of an entry, whether it is secret or not, sealed or from before there was a key.
   * Throws RequestError 503 UNAVAILABLE when it can't be opened: never anything but the value.
   */
  open(path: string, entry: RegistryEntry): unknown {
    if (entry.sealed === undefined) return entry.value
    const [name = '', text = ''] = entry.sealed.split('.')
    const key = this.#keys.get(name)
    if (key === undefined) {
      throw closed(
        path,
        `it is encrypted with the key ${name}, which this member doesn't have ` +
          '(KONTOR_SECRETS_KEY, KONTOR_SECRETS_KEYS_OLD)',
      )
    }
    const bytes = Buffer.from(text, 'base64url')
    try {
      const decipher = createDecipheriv(CIPHER, key, bytes.subarray(0, NONCE_BYTES))
      decipher.setAAD(boundTo(path))
      decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
      const sealed = bytes.subarray(NONCE_BYTES, -TAG_BYTES)
      return JSON.parse(decipher.update(sealed, undefined, 'utf8') + decipher.final('utf8'))
    } catch {
      throw closed(path, 'what is kept there was not encrypted for this key')
    }
  }
}

function closed(path: string, why: string): RequestError {
  return new RequestError('UNAVAILABLE', `the secret "${path}" can't be read: ${why}`)
}

/** Type and key name the actor; keys have no control characters. */
function boundTo(path: string): Buffer {
  return Buffer.from(`registry\n${path}`)
}

function nameOf(key: Buffer): string {
  const digest = createHmac('sha256', key).update('name of a Kontor secrets key').digest()
  return digest.subarray(0, NAME_BYTES).toString('base64url')
}
