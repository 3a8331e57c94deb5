// Which key a store's secrets are encrypted with, by its name: all members of a store have the same
// ones. The store's identity keeps the key's name. Source: ARCHITECTURE 2 "Secrets at rest".

/** The keys of a process, by name. */
export interface SecretsKeyNames {
  /** With which it encrypts; null: it doesn't. */
  readonly current: string | null
  /** All that it can read, that one too. */
  readonly known: readonly string[]
}

/** The process has another key than the members of the store: a setting is wrong, not the store. */
export class WrongSecretsKey extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'WrongSecretsKey'
  }
}

/**
 * The name that the store keeps from now on; null: none yet. A process with a newer key has to know
 * the store's as well, and makes its own the store's. Throws WrongSecretsKey.
 */
export function agreedKey(
  stored: string | null,
  { current, known }: SecretsKeyNames,
): string | null {
  if (stored === null || known.includes(stored)) return current ?? stored
  if (current === null) {
    throw new WrongSecretsKey(
      `the secrets of this store are encrypted with the key ${stored}, and this process has none: ` +
        'set KONTOR_SECRETS_KEY to what the store was last started with',
    )
  }
  throw new WrongSecretsKey(
    `the secrets of this store are encrypted with the key ${stored}, and this process has ` +
      `${known.join(', ')}: set KONTOR_SECRETS_KEY to what the store's members have, or, for a ` +
      'new key, name the former one in KONTOR_SECRETS_KEYS_OLD',
  )
}
