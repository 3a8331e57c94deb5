// A client of `/ws` for tests: frames as they come, and how the connection ended. Waiting is
// polling with a deadline.

import { Patience, tick } from './patience.ts'

export interface ReceivedFrame {
  readonly type: string
  readonly [member: string]: unknown
}

const WAIT_MS = 15_000

export class SocketClient {
  readonly frames: ReceivedFrame[] = []
  /** Code and reason of its end; null: it is open, or was never. */
  end: { readonly code: number; readonly reason: string } | null = null
  /** Whether `ping` frames are answered. */
  answersPings = true
  readonly #socket: WebSocket

  constructor(socket: WebSocket) {
    this.#socket = socket
    socket.addEventListener('message', ({ data }) => {
      const frame = JSON.parse(String(data)) as ReceivedFrame
      if (frame.type !== 'ping') this.frames.push(frame)
      else if (this.answersPings) this.send({ type: 'pong' })
    })
    socket.addEventListener('close', ({ code, reason }) => void (this.end = { code, reason }))
  }

  send(frame: unknown): void {
    this.#socket.send(typeof frame === 'string' ? frame : JSON.stringify(frame))
  }

  sendBytes(bytes: Uint8Array<ArrayBuffer>): void {
    this.#socket.send(bytes)
  }

  close(): void {
    this.#socket.close()
  }

  /** The first frame that fits, which is taken out. Rejects when none comes in time. */
  async frame(
    type: string,
    fits: (frame: ReceivedFrame) => boolean = () => true,
    waitMs = WAIT_MS,
  ): Promise<ReceivedFrame> {
    return this.#first(type, (frame) => frame.type === type && fits(frame), waitMs)
  }

  /** The first frame of one of these types. */
  async answer(...types: readonly string[]): Promise<ReceivedFrame> {
    return this.#first(types.join(' or '), ({ type }) => types.includes(type), WAIT_MS)
  }

  async #first(
    what: string,
    fits: (frame: ReceivedFrame) => boolean,
    waitMs: number,
  ): Promise<ReceivedFrame> {
    const patience = new Patience(waitMs)
    for (;;) {
      const at = this.frames.findIndex(fits)
      if (at >= 0) return this.frames.splice(at, 1)[0]!
      if (patience.isOver()) {
        throw new Error(`no ${what}: ${JSON.stringify([this.end, ...this.frames])}`)
      }
      await tick()
    }
  }

  /** How it ended. Rejects when it goes on. */
  async ended(): Promise<{ readonly code: number; readonly reason: string }> {
    const patience = new Patience(WAIT_MS)
    while (this.end === null) {
      if (patience.isOver()) throw new Error('the socket was not closed')
      await tick()
    }
    return this.end
  }
}

/** A node to connect to, whether a process or inside the test's own. */
export interface SocketNode {
  readonly port: number
  token(): Promise<string>
}

/** Opens a socket. Rejects when it is not let in. */
export function connect(
  node: Pick<SocketNode, 'port'>,
  path = '/ws',
  protocols: string[] = [],
): Promise<SocketClient> {
  const socket = new WebSocket(`ws://127.0.0.1:${node.port}${path}`, protocols)
  const client = new SocketClient(socket)
  return new Promise((resolve, reject) => {
    socket.addEventListener('open', () => resolve(client))
    socket.addEventListener('error', () => reject(new Error(`${path} lets no socket in`)))
  })
}

/** Opens one and says who it is. */
export async function signIn(node: SocketNode, token?: string): Promise<SocketClient> {
  const client = await connect(node)
  client.send({ type: 'auth', token: token ?? (await node.token()) })
  await client.frame('authenticated')
  return client
}
