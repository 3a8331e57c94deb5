// Sales channels as orders ask for them. The registry keeps channels under `channels/<key>`; the
// order domain checks inventories and countries against them. Kept in a map that follows the
// registry: a command costs a look-up. Source: CONTRACT 1.1 "Channel fields".

import type { SystemEntry, SystemView } from '../../cluster/actor-system.ts'
import type { Channel, ChannelView } from '../../commerce/order/channels.ts'
import { RequestError } from '../../protocol/errors.ts'
import type { RegistryEntry } from './entry.ts'

const PREFIX = 'channels/'

type OpenEntry = (path: string, entry: RegistryEntry) => unknown

/** The channels of a registry, followed from now on. */
export class RegistryChannels implements ChannelView {
  readonly #channels = new Map<string, Channel>()
  /** They are there, and what they are can't be read. */
  readonly #closed = new Set<string>()
  readonly #open: OpenEntry

  /**
   * `open` answers an entry's value, or null when it can't be read; then it stays as it was, and
   * one that never was binds orders as well: they are refused until it can be read.
   */
  constructor(open: OpenEntry = (_, { value }) => value) {
    this.#open = open
  }

  /** Takes in what is there. Call it once, when the system maps are there. */
  follow(system: SystemView): void {
    for (const entry of system.withPrefix<RegistryEntry>('registry', PREFIX)) {
      this.#learn(entry.key, entry)
    }
    system.onChange('registry', (key, entry) =>
      this.#learn(key, entry as SystemEntry<RegistryEntry> | null),
    )
  }

  any(): boolean {
    return this.#channels.size > 0 || this.#closed.size > 0
  }

  /** Throws RequestError 503 UNAVAILABLE for one that can't be read. */
  get(key: string): Channel | null {
    if (this.#closed.has(key)) {
      const text = `the channel "${key}" is secret and can't be read here; nothing was done`
      throw new RequestError('UNAVAILABLE', text)
    }
    return this.#channels.get(key) ?? null
  }

  #learn(path: string, entry: SystemEntry<RegistryEntry> | null): void {
    if (!path.startsWith(PREFIX)) return
    const key = path.slice(PREFIX.length)
    // Apps may keep more below a channel.
    if (key.includes('/')) return
    if (entry === null) {
      this.#channels.delete(key)
      this.#closed.delete(key)
      return
    }
    // Checked when it was written (well-known.ts).
    const value = this.#open(path, entry.value) as {
      currencyCode: string
      inventories?: string[]
      countries?: object
    } | null
    if (value === null) {
      if (!this.#channels.has(key)) this.#closed.add(key)
      return
    }
    this.#closed.delete(key)
    this.#channels.set(key, {
      currencyCode: value.currencyCode,
      inventories: value.inventories ?? [],
      countries: Object.keys(value.countries ?? {}),
    })
  }
}
