// The path `/graphql` for sockets: GraphQL by the subprotocol graphql-transport-ws, beside the same
// path over HTTP. What may come in is counted together with `/ws`. Source: CONTRACT 1.4.1, 1.10,
// https://github.com/enisdenjo/graphql-ws/blob/master/PROTOCOL.md.

import type { Clock } from '../../../cluster/clock.ts'
import { LIMITS } from '../../../config/limits.ts'
import type { RequestError } from '../../../protocol/errors.ts'
import type { Log } from '../../../protocol/log.ts'
import type { GraphQl } from '../../graph/graphql/loader.ts'
import type { Socket, SocketHandler, SocketPath } from '../../http/socket/sockets.ts'
import type { SocketStation } from '../socket/socket-station.ts'
import { type ConnectionShared, GraphQlConnection } from './graphql-connection.ts'
import { MessageTurns } from './message-turns.ts'
import type { ListOptions } from './subscribed-list.ts'

export interface GraphQlStationOptions {
  readonly graphql: GraphQl
  readonly lists: ListOptions
  /** What is shared with it: who is there, and whose tokens stand. */
  readonly sockets: Pick<SocketStation, 'admission' | 'book' | 'counts'>
  readonly clock: Clock
  readonly log: Log
}

export class GraphQlStation implements SocketPath {
  readonly path = '/graphql'
  readonly protocols = ['graphql-transport-ws']
  readonly opensOthers = true
  readonly frameBytesMax: number = LIMITS.live.frameBytesMax
  readonly #options: GraphQlStationOptions
  readonly #shared: ConnectionShared
  #server: ReturnType<ConnectionShared['server']> | null = null
  #lastId = 0

  constructor(options: GraphQlStationOptions) {
    const { sockets, clock, log } = options
    const { book, counts } = sockets
    this.#options = options
    const turns = new MessageTurns(clock)
    const server = () => (this.#server ??= this.#load())
    this.#shared = { book, counts, clock, log, turns, server }
  }

  admit(address: string): RequestError | null {
    return this.#options.sockets.admission.admit(address)
  }

  open(socket: Socket): SocketHandler {
    const place = this.#options.sockets.admission.enter(socket.address)
    return new GraphQlConnection(++this.#lastId, { socket, place }, this.#shared)
  }

  /** What is shared is looked at by its own station. */
  sweep(): void {}

  async #load(): ReturnType<ConnectionShared['server']> {
    const { graphql, lists } = this.#options
    const [{ graphqlServer }, service] = await Promise.all([
      import('./graphql-server.ts'),
      graphql.service(),
    ])
    return graphqlServer({ service, lists })
  }
}
