// The connections of a load: opened together, replaced when one breaks. The loops care for
// requests.

import { HttpSocket } from './http-socket.ts'
import type { Recorder } from './recorder.ts'
import type { Destination } from './requests.ts'
import type { AnswerSample } from './sample.ts'

/** A connection that broke is opened again after this. */
const REOPEN_MS = 50

export interface PoolOptions {
  readonly to: Destination
  readonly connections: number
  readonly recorder: Recorder
  readonly sample: AnswerSample | undefined
  /** A socket has its answer: count it, use the socket again. */
  readonly answered: (socket: HttpSocket, status: number) => void
  /** A new socket in the place of a broken one. */
  readonly reopened: (socket: HttpSocket) => void
}

export class Pool {
  readonly sockets: HttpSocket[] = []
  readonly #o: PoolOptions
  #closed = false

  constructor(options: PoolOptions) {
    this.#o = options
  }

  async open(): Promise<void> {
    for (let i = 0; i < this.#o.connections; i++) this.sockets.push(this.#socket())
    await Promise.all(this.sockets.map((socket) => socket.opened()))
  }

  get busy(): number {
    return this.sockets.reduce((n, socket) => n + (socket.busy ? 1 : 0), 0)
  }

  /** Waits for the answers under way, then closes; what has none by then counts as failed. */
  async drain(withinMs: number): Promise<void> {
    const until = performance.now() + withinMs
    while (this.busy > 0 && performance.now() < until) {
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    this.#closed = true
    for (const socket of this.sockets) {
      if (socket.busy) this.#o.recorder.failure('no answer')
      socket.close()
    }
  }

  #socket(): HttpSocket {
    return new HttpSocket(this.#o.to.host, this.#o.to.port, {
      answered: (socket, status) => {
        this.#keep(socket, status)
        this.#o.answered(socket, status)
      },
      gone: (socket, why) => this.#gone(socket, why),
    })
  }

  /** Gives the sample an answer that was kept for it, and asks whether it wants the next. */
  #keep(socket: HttpSocket, status: number): void {
    const { sample } = this.#o
    if (sample === undefined) return
    if (socket.keeps && status === 200) sample.add(socket.kept)
    socket.keeps = sample.wantsNext()
  }

  #gone(socket: HttpSocket, why: string): void {
    if (socket.busy) this.#o.recorder.failure(why)
    socket.busy = false
    setTimeout(() => {
      const at = this.sockets.indexOf(socket)
      if (this.#closed || at === -1) return
      const fresh = this.#socket()
      this.sockets[at] = fresh
      fresh.opened().then(
        () => this.#o.reopened(fresh),
        // `gone` was told of it and tries again.
        () => {},
      )
    }, REOPEN_MS)
  }
}
