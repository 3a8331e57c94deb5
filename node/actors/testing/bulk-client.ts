// A client of a bulk request to actors of type order, as tests make it: it sends lines and reads
// answers when it is told to. The actor system is a twin, the clock the test's.

import type { World } from '../../../cluster/clock.ts'
import { OWNER_ACL } from '../../../protocol/ace.ts'
import type { Acl } from '../../../protocol/ace.ts'
import type { RequestError } from '../../../protocol/errors.ts'
import type { Identity } from '../../access/identity.ts'
import type { LineStream, OperationRequest } from '../../http/operation.ts'
import { ActorSystemTwin } from '../../testing/actor-system-twin.ts'
import { noteOrder } from '../../testing/note-order.ts'
import { actorOperations } from '../routes.ts'
import { SOMEBODY } from '../../access/testing/sessions.ts'

export interface AnswerLine {
  readonly id: string | null
  readonly paths: string[]
  readonly data: unknown
  readonly results: { success: boolean; data?: unknown }[]
  readonly errors?: { code: string; message: string; details?: Record<string, unknown> }[]
  readonly consistency?: string
}

/** A client that sends lines when it is told to, and reads when it is told to. */
class Client implements LineStream {
  readonly answers: AnswerLine[] = []
  /** Lines that the run has asked for. */
  taken = 0
  readonly #queue: (Buffer | 'too-large')[] = []
  #ended = false
  #arrived: (() => void) | null = null
  readonly #readers: (() => void)[] = []
  reading = true
  /** Who calls, as looked up for each line. */
  who: Identity | RequestError
  readonly lines: LineStream['lines'] = { [Symbol.asyncIterator]: () => this.#iterate() }

  constructor(acl: Acl) {
    this.who = { ...SOMEBODY, id: 'shop', sessionId: '', acl }
  }

  identityNow(): ReturnType<LineStream['identityNow']> {
    return this.who
  }

  send(...lines: (object | string)[]): this {
    for (const line of lines) {
      const text = typeof line === 'string' ? line : JSON.stringify(line)
      this.#queue.push(line === 'too-large' ? 'too-large' : Buffer.from(text))
    }
    this.#arrived?.()
    return this
  }

  end(): this {
    this.#ended = true
    this.#arrived?.()
    return this
  }

  /** Takes answers again after `reading = false`. */
  read(): void {
    this.reading = true
    for (const resume of this.#readers.splice(0)) resume()
  }

  write(line: string): Promise<void> | undefined {
    this.answers.push(JSON.parse(line) as AnswerLine)
    if (this.reading) return undefined
    return new Promise((resume) => this.#readers.push(resume))
  }

  async *#iterate(): AsyncGenerator<{ number: number; bytes: Buffer | 'too-large' }> {
    for (;;) {
      const bytes = this.#queue.shift()
      if (bytes !== undefined) {
        yield { number: ++this.taken, bytes }
        continue
      }
      if (this.#ended) return
      await new Promise<void>((arrived) => (this.#arrived = arrived))
    }
  }
}

interface Bulk {
  readonly system: ActorSystemTwin
  readonly client: Client
  readonly clock: { nowMs: number; timers: { at: number; run: () => void }[] }
  readonly done: Promise<void>
}

export function bulk(options: { acl?: Acl; query?: string; type?: string } = {}): Bulk {
  const system = new ActorSystemTwin([noteOrder])
  const clock: Bulk['clock'] = { nowMs: 0, timers: [] }
  const world: World = {
    clock: {
      nowMs: () => clock.nowMs,
      monotonicMs: () => clock.nowMs,
      after: (ms, run) => {
        clock.timers.push({ at: clock.nowMs + ms, run })
        return () => {}
      },
      defer: (run) => run(),
    },
    random: (bytes) => void bytes.fill(128),
  }
  const operation = actorOperations({
    actorSystem: system,
    consistency: { encode: (at) => at.map((p) => `${p.shard}:${p.offset}`).join() },
    world,
  }).find((one) => one.path === '/resources/actors/{type}')!
  const client = new Client(options.acl ?? OWNER_ACL)
  const request = {
    identity: client.who,
    params: { type: options.type ?? 'order' },
    query: new URLSearchParams(options.query ?? ''),
    requestId: 'r-1',
  } as unknown as OperationRequest
  const done = (async () => operation.stream!(request, client))()
  return { system, client, clock, done }
}

/** Lets everything that can go on go on. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 5; i++) await new Promise((next) => setImmediate(next))
}

/** A latch that holds requests, by the note they carry, until it is opened for them. */
export function latch(system: ActorSystemTwin): { held: string[]; open(note: string): void } {
  const held = new Map<string, () => void>()
  system.before = (request) => {
    const { note } = (request.messages[0]!.body ?? {}) as { note?: string }
    if (note === undefined) return null
    return new Promise((resume) => held.set(note, () => resume(null)))
  }
  return {
    get held() {
      return [...held.keys()]
    },
    open(note) {
      held.get(note)!()
      held.delete(note)
    },
  }
}

export const create = (orderNumber?: string): object => ({
  id: 'new',
  messages: [{ type: 'create', body: { orderNumber } }],
})
export const note = (id: string, text: string): object => ({
  id,
  messages: [{ type: 'note', body: { note: text } }],
})
export const read = (id: string): object => ({ id, messages: [{ type: 'read' }] })
