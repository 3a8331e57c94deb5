// The path `/ws`: who may come in, how many, and the connections that are there. Source: CONTRACT
// 1.10.

import type { SystemView } from '../../../cluster/actor-system.ts'
import type { Clock } from '../../../cluster/clock.ts'
import { LIMITS } from '../../../config/limits.ts'
import type { RequestError } from '../../../protocol/errors.ts'
import type { Log } from '../../../protocol/log.ts'
import type { Authenticate } from '../../http/core.ts'
import type { Socket, SocketHandler, SocketPath } from '../../http/socket/sockets.ts'
import type { Metrics } from '../../metrics.ts'
import { FairRoom } from '../../queues/fair-room.ts'
import { Admission } from './admission.ts'
import { AccessBook } from './caller-access.ts'
import { SocketConnection } from './connection.ts'
import type { ConnectionContext, SocketCounts } from './connection.ts'
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

export class SocketStation implements SocketPath {
  readonly path = '/ws'
  readonly protocols: readonly string[] = []
  readonly frameBytesMax: number = LIMITS.live.frameBytesMax
  /** Of all sockets, also those of other paths. */
  readonly admission = new Admission()
  readonly book: AccessBook
  readonly counts: SocketCounts = { framesIn: 0, framesOut: 0 }
  readonly #context: ConnectionContext
  #lastId = 0

  constructor(options: SocketStationOptions) {
    const { system, authenticate, isKnown, clock, log, chance } = options
    this.book = new AccessBook({ system, authenticate, isKnown, clock })
    const frames = new Map([...options.frames, PING].map((row) => [row.type, row]))
    this.#context = {
      frames,
      book: this.book,
      clock,
      log,
      chance,
      counts: this.counts,
      waiting: new FairRoom(() => LIMITS.live.framesWaitingCharsMax),
    }
    this.#collect(options.metrics)
  }

  admit(address: string): RequestError | null {
    return this.admission.admit(address)
  }

  open(socket: Socket): SocketHandler {
    const place = this.admission.enter(socket.address)
    return new SocketConnection(++this.#lastId, { socket, place }, this.#context)
  }

  sweep(): void {
    this.book.sweep()
  }

  stop(): void {
    this.book.stop()
  }

  #collect(metrics: Metrics): void {
    const { admission, counts } = this
    const gauge = (name: string, help: string, value: number) =>
      ({ name, help, type: 'gauge', value }) as const
    const counter = (name: string, help: string, value: number) =>
      ({ name, help, type: 'counter', value }) as const
    metrics.collect(() => [
      gauge('kontor_sockets', 'Open sockets.', admission.sockets),
      gauge('kontor_socket_strangers', 'Of them those without a token yet.', admission.strangers),
      counter('kontor_socket_frames_in_total', 'Frames of clients.', counts.framesIn),
      counter('kontor_socket_frames_out_total', 'Frames to clients.', counts.framesOut),
    ])
  }
}
