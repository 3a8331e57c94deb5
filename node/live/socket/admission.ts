// Who may come in over a socket, by whatever path: how many there are, of an address, and of those
// that have not said who they are. Source: CONTRACT 1.10.

import { LIMITS } from '../../../config/limits.ts'
import { RequestError } from '../../../protocol/errors.ts'
import { networkOf } from '../../access/network.ts'

/** Sockets of one address. */
interface Counted {
  all: number
  strangers: number
}

/** The place of one socket that is in. */
export interface Place {
  /** It has said who it is. */
  known(): void
  /** It is no more. */
  leave(): void
}

export class Admission {
  readonly #byNetwork = new Map<string, Counted>()
  readonly #all: Counted = { all: 0, strangers: 0 }

  get sockets(): number {
    return this.#all.all
  }

  get strangers(): number {
    return this.#all.strangers
  }

  /** null: there is room. */
  admit(address: string): RequestError | null {
    const { socketsMax, socketsOfAddressMax, strangersMax, strangersOfAddressMax } = LIMITS.live
    const own = this.#byNetwork.get(networkOf(address).own) ?? { all: 0, strangers: 0 }
    if (this.sockets >= socketsMax) return busy('too many sockets')
    if (own.all >= socketsOfAddressMax) return busy('too many sockets of one address')
    if (this.strangers >= strangersMax || own.strangers >= strangersOfAddressMax) {
      return busy('too many sockets that have not said who they are')
    }
    return null
  }

  enter(address: string): Place {
    const network = networkOf(address).own
    const own = this.#byNetwork.get(network) ?? { all: 0, strangers: 0 }
    this.#byNetwork.set(network, own)
    let isStranger = true
    for (const counted of [own, this.#all]) {
      counted.all++
      counted.strangers++
    }
    const known = (): void => {
      if (!isStranger) return
      isStranger = false
      own.strangers--
      this.#all.strangers--
    }
    return {
      known,
      leave: () => {
        known()
        own.all--
        this.#all.all--
        if (own.all === 0) this.#byNetwork.delete(network)
      },
    }
  }
}

function busy(what: string): RequestError {
  return new RequestError('TOO_BUSY', `${what}; nothing was done`)
}
