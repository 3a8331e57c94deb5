// An actor system in memory, for tests of the stations: it runs real behaviours, one message after
// the other, keeps nothing, and can be told to be busy, slow or away. It stands in for cluster/.

import type {
  ActorRequest,
  ActorSystem,
  SystemEntry,
  SystemView,
} from '../../cluster/actor-system.ts'
import type {
  RuntimeCall,
  Behaviour,
  Decision,
  Effect,
  SystemState,
  Turn,
} from '../../protocol/behaviour.ts'
import { RequestError, errorItem } from '../../protocol/errors.ts'
import type { ErrorItem } from '../../protocol/errors.ts'
import { turnIds } from '../../protocol/checkpoint.ts'
import { isUuid, uuidMaker } from '../../protocol/ids.ts'
import type { Position } from '../../protocol/ids.ts'
import type { Message, MessageResult, Reply } from '../../protocol/message.ts'

interface Kept {
  readonly id: string
  /** Key of an actor of the system shard, else null. */
  readonly key: string | null
  state: unknown
  version: number
}

type Changed = (key: string, entry: SystemEntry | null) => void

/** Runs before a request is served; a reply that it gives is the answer instead. */
export type Before = (request: ActorRequest) => Promise<Reply | null> | Reply | null

const RELAYED = {
  ...{ idempotencyKey: null, bodyHash: '', by: 'system', preview: false },
  ...{ budgetMs: 1_000, trace: 'relay' },
}

export class ActorSystemTwin implements ActorSystem {
  readonly behaviours: ReadonlyMap<string, Behaviour>
  readonly system: SystemView
  /** Requests in the order in which they came. */
  readonly asked: ActorRequest[] = []
  before: Before = () => null
  nowMs = 1_700_000_000_000
  /** The outbox works at once. */
  relays = true
  readonly #actors = new Map<string, Kept>()
  readonly #keys = new Map<string, string>()
  readonly #maps = new Map<string, Map<string, SystemEntry>>()
  readonly #listeners = new Map<string, Set<Changed>>()
  readonly #newId: (nowMs: number) => string
  /** What the outbox would send. */
  readonly #effects: Effect[] = []
  #seed = 1
  #offset = 0
  #numbers = 0

  constructor(behaviours: readonly Behaviour[]) {
    this.behaviours = new Map(behaviours.map((b) => [b.type, b]))
    this.#newId = uuidMaker((bytes) => {
      for (let i = 0; i < bytes.length; i++)
        bytes[i] = (this.#seed = (this.#seed * 69069 + 1) >>> 0) >>> 24
    })
    this.system = {
      get: (type, key) => (this.#maps.get(type)?.get(key) ?? null) as never,
      find: (type, name) => this.#find(type, name) as never,
      all: (type) => [...(this.#maps.get(type)?.values() ?? [])] as never,
      withPrefix: (type, prefix) => this.#withPrefix(type, prefix) as never,
      size: (type) => this.#maps.get(type)?.size ?? 0,
      onChange: (type, changed) => {
        const all = this.#listeners.get(type) ?? new Set()
        this.#listeners.set(type, all.add(changed))
        return () => all.delete(changed)
      },
    }
  }

  heads(): readonly Position[] {
    return [{ shard: 0, offset: this.#offset }]
  }

  async ask(request: ActorRequest): Promise<Reply> {
    this.asked.push(request)
    const instead = await this.before(request)
    const reply = instead ?? this.#serve(request)
    if (this.relays) this.relay()
    return reply
  }

  /** Sends what the outbox has, as far as it goes. */
  relay(): void {
    for (let effect = this.#effects.shift(); effect; effect = this.#effects.shift()) {
      const { to, messages } = effect
      const id = 'id' in to ? to.id : to.key
      this.#serve({ ...RELAYED, type: to.type, id, messages })
    }
  }

  /** Writes a configuration actor, whoever may. */
  put(type: string, key: string, value: unknown): void {
    const behaviour = this.behaviours.get(type)!
    const to = this.#resolve({ type, id: key } as ActorRequest)
    const meta = { actorId: to.id, version: ++to.version, timeMs: this.nowMs }
    const by = { by: 'test', messageId: `m${this.#offset}` }
    to.state = behaviour.evolve(to.state, { t: 'put', key, value }, { ...meta, ...by })
    this.#commit(behaviour, to)
  }

  #resolve(request: ActorRequest): Kept {
    const behaviour = this.behaviours.get(request.type)!
    const system = behaviour.home === 'system'
    let id =
      system || !isUuid(request.id) ? this.#keys.get(`${request.type} ${request.id}`) : request.id
    if (request.id === 'new' && !system) id = undefined
    id ??= this.#newId(this.nowMs)
    const key = system ? request.id : null
    return this.#actors.get(id) ?? { id, key, state: null, version: 0 }
  }

  #serve(request: ActorRequest): Reply {
    const behaviour = this.behaviours.get(request.type)!
    const first = request.messages[0]!
    const to = this.#resolve(request)
    const virtual = request.id === 'new' || behaviour.home === 'system' || isUuid(request.id)
    if (to.state === null && !(virtual && behaviour.creates.includes(first.type))) {
      return { outcome: 'refused', error: errorItem('NOT_FOUND', `there is no ${request.id}`) }
    }
    const before = this.#offset
    const kept = request.preview ? { ...to } : to
    const results = request.messages.map((message) => this.#run(behaviour, kept, message, request))
    const there = kept.state !== null
    return {
      outcome: 'answered',
      actorId: there ? kept.id : null,
      keys: there ? behaviour.keys(kept.state) : [],
      results,
      position: this.#offset > before ? { shard: 0, offset: this.#offset } : null,
    }
  }

  #run(
    behaviour: Behaviour,
    kept: Kept,
    message: Message,
    request: Pick<ActorRequest, 'by' | 'session' | 'preview'>,
  ): MessageResult {
    const fail = (errors: readonly ErrorItem[]): MessageResult => ({
      type: message.type,
      success: false,
      errors,
    })
    const { preview, by, session } = request
    if (kept.state === null && !behaviour.creates.includes(message.type)) {
      return fail([errorItem('NOT_FOUND', 'there is no such actor')])
    }
    const messageId = `m${this.#offset}`
    const turn: Turn = {
      actorId: kept.id,
      key: kept.key,
      nowMs: this.nowMs,
      by,
      ...(session !== undefined && { session }),
      messageId,
      version: kept.version,
      preview,
      newId: turnIds(messageId, kept.version, this.nowMs),
      hooks: { has: () => false },
    }
    const decision = this.#decide(behaviour.decide(kept.state, message, turn), kept.id)
    if (!decision.ok) return fail(decision.errors)
    this.#effects.push(...(preview ? [] : (decision.effects ?? [])))
    decision.records.forEach((record, i) => {
      const meta = {
        actorId: kept.id,
        version: kept.version + 1 + i,
        timeMs: this.nowMs,
        by,
        messageId,
      }
      kept.state = behaviour.evolve(kept.state, record, meta)
    })
    kept.version += decision.records.length
    if (decision.records.length > 0 && !preview) this.#commit(behaviour, kept)
    return decision.data === undefined
      ? { type: message.type, success: true }
      : { type: message.type, success: true, data: decision.data }
  }

  #decide(
    deciding: Generator<RuntimeCall, Decision<unknown>, unknown>,
    actorId: string,
  ): Decision<unknown> {
    try {
      let step = deciding.next()
      while (!step.done) step = deciding.next(this.#answer(step.value, actorId))
      return step.value
    } catch (error) {
      if (error instanceof RequestError) return { ok: false, errors: error.errors }
      throw error
    }
  }

  #answer(call: RuntimeCall, actorId: string): unknown {
    switch (call.call) {
      case 'reserve': {
        const taken = this.#keys.get(`${call.keyType} ${call.key}`)
        return taken === undefined || taken === actorId
      }
      case 'configuration':
        return this.system
      case 'number':
        return `${call.prefix}${++this.#numbers}`
      default:
        return []
    }
  }

  #commit(behaviour: Behaviour, kept: Kept): void {
    this.#offset++
    this.#actors.set(kept.id, kept)
    for (const key of behaviour.keys(kept.state))
      this.#keys.set(`${behaviour.type} ${key}`, kept.id)
    if (behaviour.home !== 'system') return
    const { key, value, deleted } = kept.state as SystemState
    const entry = deleted ? null : { key, actorId: kept.id, version: kept.version, value }
    const map = this.#maps.get(behaviour.type) ?? new Map<string, SystemEntry>()
    this.#maps.set(behaviour.type, map)
    if (entry) map.set(key, entry)
    else map.delete(key)
    for (const changed of this.#listeners.get(behaviour.type) ?? []) changed(key, entry)
  }

  #find(type: string, name: string): SystemEntry | null {
    const names = (state: SystemState): readonly string[] =>
      this.behaviours.get(type)?.names?.(state) ?? []
    for (const entry of this.#maps.get(type)?.values() ?? []) {
      if (names({ ...entry, deleted: false }).includes(name)) return entry
    }
    return null
  }

  *#withPrefix(type: string, prefix: string): Iterable<SystemEntry> {
    const keys = [...(this.#maps.get(type)?.keys() ?? [])].filter((key) => key.startsWith(prefix))
    for (const key of keys.sort()) yield this.#maps.get(type)!.get(key)!
  }
}
