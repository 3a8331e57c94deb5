// A Redis of a test's own making inside the process: the few commands that the wire uses, over a
// real socket, with a clock, ids and answers that a test decides. What no real server can be made
// to do at will (an answer that is cut off, ids that go back, a stream that vanishes between two
// commands) happens here when it is told to.

import { createServer } from 'node:net'
import type { AddressInfo, Server, Socket } from 'node:net'

/** What becomes of a command: done and answered; done, the answer cut off; cut off undone. */
export type Fate = 'answered' | 'unheard' | 'lost' | 'held' | { readonly error: string }

interface Stream {
  entries: { readonly id: string; readonly fields: readonly string[] }[]
  lastMs: number
  sequence: number
}

type Value = string | number | null | readonly Value[]

const LOOK_MS = 5

export class ScriptedRedis {
  readonly streams = new Map<string, Stream>()
  /** Every command as it came, but for those of the client library itself. */
  readonly commands: (readonly string[])[] = []
  /** Milliseconds since 1970: what TIME says and ids are made of. */
  nowMs = 1_700_000_000_000
  fate: ((command: readonly string[]) => Fate) | null = null
  /** Answers that wait for the test to let them go. */
  readonly held: (() => void)[] = []
  connections = 0
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

  private constructor() {
    this.#server = createServer((socket) => this.#serve(socket))
  }

  static async start(): Promise<ScriptedRedis> {
    const redis = new ScriptedRedis()
    await new Promise<void>((resolve) => redis.#server.listen(0, '127.0.0.1', resolve))
    return redis
  }

  get url(): string {
    return `redis://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** Cuts every connection. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  async stop(): Promise<void> {
    this.cut()
    await new Promise<void>((resolve) => void this.#server.close(() => resolve()))
  }

  /** Puts an entry there as another process would; `id` as it is to be, else the next. */
  add(key: string, fields: readonly string[], id?: string): string {
    const stream = this.streams.get(key) ?? { entries: [], lastMs: 0, sequence: 0 }
    this.streams.set(key, stream)
    if (id === undefined) {
      stream.sequence = stream.lastMs === this.nowMs ? stream.sequence + 1 : 0
      stream.lastMs = this.nowMs
      id = `${stream.lastMs}-${stream.sequence}`
    }
    stream.entries.push({ id, fields })
    return id
  }

  /** Names of the commands with that key, in their order. */
  sentTo(key: string, name: string): readonly (readonly string[])[] {
    return this.commands.filter((command) => command[0] === name && command[1] === key)
  }

  #serve(socket: Socket): void {
    this.connections++
    this.#sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => this.#sockets.delete(socket))
    let rest = Buffer.alloc(0)
    let before = Promise.resolve()
    socket.on('data', (chunk) => {
      rest = Buffer.concat([rest, chunk])
      for (;;) {
        const read = readCommand(rest)
        if (read === null) return
        rest = rest.subarray(read.bytes)
        before = before.then(() => this.#run(socket, read.command))
      }
    })
  }

  async #run(socket: Socket, sent: readonly string[]): Promise<void> {
    const command = [sent[0]!.toLowerCase(), ...sent.slice(1)]
    const [name] = command
    if (['info', 'client', 'hello', 'select'].includes(name!)) {
      socket.write(name === 'info' ? encode('loading:0\r\n') : '+OK\r\n')
      return
    }
    if (socket.destroyed) return
    this.commands.push(command)
    if (name === 'xread') await this.#block(command[6]!, socket)
    const fate = this.fate?.(command) ?? 'answered'
    if (fate === 'lost') return void socket.destroy()
    if (fate === 'held') await new Promise<void>((resolve) => void this.held.push(resolve))
    if (typeof fate === 'object') return void socket.write(`-${fate.error}\r\n`)
    const answer = this.#answer(command)
    if (fate === 'unheard') socket.destroy()
    else if (!socket.destroyed) socket.write(encode(answer))
  }

  #answer(command: readonly string[]): Value {
    const [name, key = ''] = command
    switch (name) {
      case 'pexpire':
        return this.streams.has(key) ? 1 : 0
      case 'time':
        return [String(Math.floor(this.nowMs / 1_000)), String((this.nowMs % 1_000) * 1_000)]
      case 'xadd': {
        const isOnlyThere = command[2] === 'NOMKSTREAM'
        if (isOnlyThere && !this.streams.has(key)) return null
        return this.add(key, command.slice(isOnlyThere ? 4 : 3))
      }
      case 'xtrim':
        return this.#trim(key, command[3]!)
      case 'xread':
        return this.#read(command)
      case 'unlink':
        return this.streams.delete(key) ? 1 : 0
      default:
        return 'OK'
    }
  }

  #trim(key: string, minId: string): number {
    const stream = this.streams.get(key)
    if (!stream) return 0
    const before = stream.entries.length
    stream.entries = stream.entries.filter(({ id }) => !isBelow(id, minId))
    return before - stream.entries.length
  }

  /** As long as there is nothing, but not for a second of the test's time. */
  async #block(key: string, socket: Socket): Promise<void> {
    for (let waits = 0; waits < 4 && !this.streams.get(key)?.entries.length; waits++) {
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
      if (socket.destroyed) return
    }
  }

  #read(command: readonly string[]): Value {
    const [count, key] = [Number(command[2]), command[6]!]
    const entries = this.streams.get(key)?.entries.slice(0, count) ?? []
    return entries.length === 0 ? null : [[key, entries.map(({ id, fields }) => [id, fields])]]
  }
}

function isBelow(id: string, other: string): boolean {
  const [a, b] = [id, other].map((text) => text.split('-').map(BigInt))
  return a![0]! < b![0]! || (a![0] === b![0] && a![1]! < b![1]!)
}

/** RESP2. */
function encode(value: Value): string {
  if (value === null) return '$-1\r\n'
  if (typeof value === 'number') return `:${value}\r\n`
  if (typeof value === 'string') return `$${Buffer.byteLength(value)}\r\n${value}\r\n`
  return `*${value.length}\r\n${value.map(encode).join('')}`
}

/** One command out of what has arrived; null: it isn't whole yet. */
function readCommand(bytes: Buffer): { command: readonly string[]; bytes: number } | null {
  let at = 0
  const line = (): number | null => {
    const end = bytes.indexOf('\r\n', at)
    if (end < 0) return null
    const count = Number(bytes.toString('latin1', at + 1, end))
    at = end + 2
    return count
  }
  const parts = line()
  if (parts === null) return null
  const command: string[] = []
  for (let i = 0; i < parts; i++) {
    const length = line()
    if (length === null || bytes.length < at + length + 2) return null
    command.push(bytes.toString('utf8', at, at + length))
    at += length + 2
  }
  return { command, bytes: at }
}
