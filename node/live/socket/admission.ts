// Who may come in over a socket, by whatever path: how many there are, of an address, and of those
// that have not said who they are. No address has more than is free, so that none keeps others out.
// Source: CONTRACT 1.10.

import { LIMITS } from '../../../config/limits.ts'
import { RequestError } from '../../../protocol/errors.ts'
import { networkOf } from '../../access/network.ts'
import { FairRoom } from '../../queues/fair-room.ts'

/** The place of one socket that is in. */
export interface Place {
  /** It has said who it is. */
  known(): void
  /** It is no more. */
  leave(): void
}

export class Admission {
  readonly #all = new FairRoom(() => LIMITS.live.socketsMax)
  readonly #strangers = new FairRoom(() => LIMITS.live.strangersMax)

  get sockets(): number {
    return this.#all.taken
  }

  get strangers(): number {
    return this.#strangers.taken
  }

  /** null: there is room. */
  admit(address: string): RequestError | null {
    const network = networkOf(address).own
    if (!this.#all.hasRoom(network, 1)) return busy('too many sockets of one address')
    if (this.#strangers.hasRoom(network, 1)) return null
    return busy('too many sockets of one address that have not said who they are')
  }

  enter(address: string): Place {
    const network = networkOf(address).own
    this.#all.add(network, 1)
    this.#strangers.add(network, 1)
    let isStranger = true
    const known = (): void => {
      if (isStranger) this.#strangers.add(network, -1)
      isStranger = false
    }
    return {
      known,
      leave: () => {
        known()
        this.#all.add(network, -1)
      },
    }
  }
}

function busy(what: string): RequestError {
  return new RequestError('TOO_BUSY', `${what}; nothing was done`)
}
