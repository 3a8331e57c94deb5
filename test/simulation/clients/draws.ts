// What clients ask for: messages to ledgers and flags as the seed draws them, many of which are
// refused by the state, with keys of their own, keys that others use too, and keys that they have
// used before. Source: PROTOCOL 4.1, F30, F31, F34.

import type { OperationHistory, Operation, OperationMessage } from './operation-history.ts'
import type { LedgerBody } from './ledger.ts'
import type { Scheduler } from '../scheduler/scheduler.ts'

export interface DrawsOptions {
  /** Natural keys that they choose from. */
  readonly numbers: number
}

export interface Drawn {
  readonly what: Pick<Operation, 'type' | 'address' | 'messages'>
  readonly more: { readonly key?: string; readonly preview?: boolean }
}

/** What the clients know of each other and of themselves. */
interface Known {
  /** UUIDs of ledgers. */
  readonly ledgers: readonly string[]
  readonly history: OperationHistory
}

/** Two bytes a character: what is bounded by bytes is not bounded by characters. */
const FAT = 'ä'
const FAT_CHARS = 200

export class Draws {
  readonly #scheduler: Scheduler
  readonly #options: DrawsOptions
  readonly #known: Known
  /** Share of changes that are large: of some seeds so many that ledgers are full. */
  readonly #fat: number
  #tokens = 0

  constructor(scheduler: Scheduler, options: DrawsOptions, known: Known) {
    this.#scheduler = scheduler
    this.#options = options
    this.#known = known
    this.#fat = scheduler.one([0.02, 0.02, 0.4])
  }

  next(client: string): Drawn {
    const { chance, one } = this.#chances()
    if (chance() < 0.08) return this.#flag(client)
    if (chance() < 0.1) return this.#open(client)
    const isByNumber = chance() < 0.15
    const address = isByNumber ? this.#number() : one(this.#known.ledgers)
    const what = { type: 'ledger', address }
    if (chance() < 0.18) {
      return { what: { ...what, messages: [{ type: 'read', body: {} }] }, more: {} }
    }
    const messages = [this.#message()]
    while (chance() < 0.15) messages.push(this.#message())
    if (chance() < 0.07) return { what: { ...what, messages }, more: { preview: true } }
    // A key belongs to the actor: repeated by a number it may meet another one (CONTRACT 0).
    return this.#keyed(client, { ...what, messages }, isByNumber ? 0 : 0.65)
  }

  #chances() {
    const { chance } = this.#scheduler
    return { chance, one: <T>(all: readonly T[]): T => this.#scheduler.one(all) }
  }

  #flag(client: string): Drawn {
    const isDropped = this.#scheduler.chance() < 0.3
    const type = isDropped ? 'drop' : 'put'
    const messages = [{ type, body: isDropped ? {} : { token: this.#token() } }]
    const what = { type: 'flag', address: `flag-${this.#scheduler.pick(5)}`, messages }
    return this.#keyed(client, what, 0.5)
  }

  /**
   * Of a UUID that the client has chosen, or of a new one; with a number of its own, or without.
   */
  #open(client: string): Drawn {
    const { chance, one } = this.#chances()
    const address = chance() < 0.5 ? 'new' : one(this.#known.ledgers)
    const hasNumber = chance() < 0.6
    const body: LedgerBody = {
      ...(hasNumber ? { number: this.#number() } : null),
      ...(hasNumber && chance() < 0.25 ? { through: this.#numbers() } : null),
      ...(chance() < 0.5 ? { token: this.#token() } : null),
      ...(chance() < 0.15 ? { waits: true } : null),
    }
    const what = { type: 'ledger', address, messages: [{ type: 'open', body }] }
    return this.#keyed(client, what, 0.8)
  }

  #message(): OperationMessage {
    const { chance, one } = this.#chances()
    const token = this.#token()
    const more = {
      ...(chance() < 0.08 ? { waits: true } : null),
      ...(chance() < 0.12 ? { long: true } : null),
      ...(chance() < 0.05 ? { refused: true } : null),
    }
    if (chance() < this.#fat) {
      const marks = chance() < 0.1 ? { marks: 2 + this.#scheduler.pick(5) } : null
      return { type: 'append', body: { token: token + FAT.repeat(FAT_CHARS), ...marks } }
    }
    const share = chance()
    if (share < 0.34) return { type: 'append', body: { token, ...more } }
    if (share < 0.52) {
      return { type: 'append', body: { token, atLeast: this.#scheduler.pick(40), ...more } }
    }
    if (share < 0.64) {
      return { type: 'append', body: { token, below: this.#scheduler.pick(8), ...more } }
    }
    if (share < 0.72) {
      return { type: 'append', body: { token, marks: 2 + this.#scheduler.pick(3) } }
    }
    if (share < 0.85) return { type: 'send', body: { token, ...this.#sent(), ...more } }
    if (share < 0.9) return { type: 'strike', body: {} }
    if (share < 0.975) return this.#renumber()
    if (share < 0.985) return { type: 'explode', body: {} }
    return one([
      { type: 'delete', body: {} },
      { type: 'strike', body: {} },
    ])
  }

  #sent(): LedgerBody {
    const { chance, one } = this.#chances()
    const { ledgers } = this.#known
    return {
      ...(chance() < 0.15 ? { toNumber: this.#number() } : { to: one(ledgers) }),
      ...(chance() < 0.4 ? { relays: 2 + this.#scheduler.pick(2) } : null),
      ...(chance() < 0.05 ? { explodes: true } : null),
    }
  }

  #renumber(): OperationMessage {
    const { chance } = this.#chances()
    const through = chance() < 0.4 ? { through: this.#numbers() } : null
    const waits = chance() < 0.08 ? { waits: true } : null
    return { type: 'renumber', body: { number: this.#number(), ...through, ...waits } }
  }

  #numbers(): readonly string[] {
    return Array.from({ length: 1 + this.#scheduler.pick(2) }, () => this.#number())
  }

  /** Now and then one that would else be generated. */
  #number(): string {
    const { chance } = this.#chances()
    if (chance() < 0.15) return `G${1 + this.#scheduler.pick(24)}`
    return `N${this.#scheduler.pick(this.#options.numbers)}`
  }

  #token(): string {
    return `t${this.#tokens++}`
  }

  /**
   * Under a key of its own, one that others take too, or one that it has taken before; then with a
   * body that nobody else has sent: what is alike would be a repeat.
   */
  #keyed(client: string, what: Drawn['what'], share: number): Drawn {
    const { chance, one } = this.#chances()
    if (chance() >= share) return { what, more: {} }
    const kind = chance()
    const { operations } = this.#known.history
    const own = operations.filter((before) => before.client === client && before.key !== null)
    let key: string | null = null
    if (kind < 0.08) key = `key-of-many-${this.#scheduler.pick(6)}`
    else if (kind < 0.14 && own.length > 0) key = one(own).key
    if (key === null) return { what, more: { key: `key-${this.#token()}` } }
    const nonce = this.#token()
    const messages = what.messages.map(({ type, body }) => ({ type, body: { ...body, nonce } }))
    return { what: { ...what, messages }, more: { key } }
  }
}
