// The path `/ws`: who may come in, how many, and the connections that are there. Source: CONTRACT
// 1.10.

import type { SystemView } from '../../../cluster/actor-system.ts'
import type { Clock } from '../../../cluster/clock.ts'
import { LIMITS } from '../../../config/limits.ts'
import { RequestError } from '../../../protocol/errors.ts'
import type { Log } from '../../../protocol/log.ts'
import { networkOf } from '../../access/network.ts'
import type { Authenticate } from '../../http/core.ts'
import type { Socket, SocketHandler, SocketPath } from '../../http/socket/sockets.ts'
import type { Metrics } from '../../metrics.ts'
import { AccessBook } from './caller-access.ts'
import { SocketConnection } from './connection.ts'
import type { ConnectionContext } from './connection.ts'
import { frameType } from './frames.ts'
import type { FrameType } from './frames.ts'

export interface SocketStationOptions {
  readonly system: SystemView
  readonly authenticate: Authenticate
  /** Whether this member may go by the system maps now. */
  readonly isKnown: () => boolean
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  /** 0 to 1. */
  readonly chance: () => number
  readonly frames: readonly FrameType[]
}

const PING = frameType('ping', {}, (connection, { requestId }) => {
  connection.send({ type: 'pong', ...(requestId !== undefined && { requestId }) })
})

/** Sockets of one address. */
interface Counted {
  all: number
  strangers: number
}

export class SocketStation implements SocketPath {
  readonly path = '/ws'
  readonly protocols: readonly string[] = []
  readonly frameBytesMax: number = LIMITS.live.frameBytesMax
  readonly #context: ConnectionContext
  readonly #book: AccessBook
  readonly #connections = new Set<SocketConnection>()
  readonly #byNetwork = new Map<string, Counted>()
  #strangers = 0
  #lastId = 0

  constructor(options: SocketStationOptions) {
    const { system, authenticate, isKnown, clock, log, chance } = options
    this.#book = new AccessBook({ system, authenticate, isKnown, clock })
    const frames = new Map([...options.frames, PING].map((row) => [row.type, row]))
    this.#context = {
      frames,
      book: this.#book,
      clock,
      log,
      chance,
      counts: { framesIn: 0, framesOut: 0 },
      known: (connection) => this.#known(connection),
      closed: (connection) => this.#closed(connection),
    }
    this.#collect(options.metrics)
  }

  admit(address: string): RequestError | null {
    const { socketsMax, socketsOfAddressMax, strangersMax, strangersOfAddressMax } = LIMITS.live
    const own = this.#byNetwork.get(networkOf(address).own)
    const [all, strangers] = [own?.all ?? 0, own?.strangers ?? 0]
    if (this.#connections.size >= socketsMax) return busy('too many sockets')
    if (all >= socketsOfAddressMax) return busy('too many sockets of one address')
    if (this.#strangers >= strangersMax || strangers >= strangersOfAddressMax) {
      return busy('too many sockets that have not said who they are')
    }
    return null
  }

  open(socket: Socket): SocketHandler {
    const connection = new SocketConnection(++this.#lastId, socket, this.#context)
    this.#connections.add(connection)
    this.#strangers++
    const network = networkOf(socket.address).own
    const own = this.#byNetwork.get(network) ?? { all: 0, strangers: 0 }
    own.all++
    own.strangers++
    this.#byNetwork.set(network, own)
    return connection
  }

  sweep(): void {
    this.#book.sweep()
  }

  stop(): void {
    this.#book.stop()
  }

  #known({ address }: SocketConnection): void {
    this.#strangers--
    this.#byNetwork.get(networkOf(address).own)!.strangers--
  }

  #closed(connection: SocketConnection): void {
    this.#connections.delete(connection)
    const network = networkOf(connection.address).own
    const own = this.#byNetwork.get(network)!
    own.all--
    if (connection.isStranger) {
      this.#strangers--
      own.strangers--
    }
    if (own.all === 0) this.#byNetwork.delete(network)
  }

  #collect(metrics: Metrics): void {
    const { counts } = this.#context
    const gauge = (name: string, help: string, value: number) =>
      ({ name, help, type: 'gauge', value }) as const
    const counter = (name: string, help: string, value: number) =>
      ({ name, help, type: 'counter', value }) as const
    metrics.collect(() => [
      gauge('kontor_sockets', 'Open sockets.', this.#connections.size),
      gauge('kontor_socket_strangers', 'Of them those without a token yet.', this.#strangers),
      counter('kontor_socket_frames_in_total', 'Frames of clients.', counts.framesIn),
      counter('kontor_socket_frames_out_total', 'Frames to clients.', counts.framesOut),
    ])
  }
}

function busy(what: string): RequestError {
  return new RequestError('TOO_BUSY', `${what}; nothing was done`)
}
