// Who changed an identity or a role, when, and what of it: read from its own journal, newest first,
// also of one that was deleted. Values are not shown, names of members are: secrets lie among them.
// Source: CONTRACT 1.8 "Audit".

import type { ActorSystem } from '../../cluster/actor-system.ts'
import { systemActorId } from '../../cluster/sharding/turn/arrivals.ts'
import { LIMITS } from '../../config/limits.ts'
import type { ActorRecord, Behaviour } from '../../protocol/behaviour.ts'
import { decodeEntry, metaOf, recordsOf } from '../../protocol/entry/entry.ts'
import { RequestError } from '../../protocol/errors.ts'
import type { DerivedReader } from '../../storage/journal.ts'
import type { Operation, OperationRequest } from '../http/operation.ts'
import { readPageQuery } from './directory.ts'

export interface ChangesOptions {
  readonly actorSystem: ActorSystem
  readonly derived: Pick<DerivedReader, 'entries'>
}

export interface ShownChange {
  /** Number of the change; the ETag that it made. */
  readonly version: number
  readonly at: string
  /** Id of the identity, or `system`. */
  readonly by: string
  readonly change: 'created' | 'changed' | 'deleted'
  /** Names of what became another: `roles`, `properties.email`, `password`. */
  readonly members: readonly string[]
}

interface Kept extends Omit<ShownChange, 'change' | 'members'> {
  /** null: it was deleted. */
  readonly value: Readonly<Record<string, unknown>> | null
  /** Number of its entry: where reading goes on. */
  readonly entry: number
}

/** Where a page begins. */
interface Place {
  /** Entries below this number. */
  readonly before: number
  /** First this one, if any: what it changed is told by one that had not been found yet. */
  readonly first: number | null
}

const NEWEST: Place = { before: Number.MAX_SAFE_INTEGER, first: null }
/** Entries of one read, once there turn out to be refusals among them. */
const MANY = 1_000

export class Changes {
  readonly #options: ChangesOptions

  constructor(options: ChangesOptions) {
    this.#options = options
  }

  /**
   * A page of them. `before`: the cursor of the page before, or null. Throws RequestError 404 where
   * there never was such an actor.
   */
  async page(
    target: { readonly type: string; readonly key: string },
    { limit, before }: { readonly limit: number; readonly before: string | null },
  ): Promise<{ readonly changes: readonly ShownChange[]; readonly lastCursor: string | null }> {
    const { type, key } = target
    const { actorSystem } = this.#options
    const there = actorSystem.system.get(type, key)
    const actorId = there?.actorId ?? systemActorId(type, key)
    const from = before === null ? NEWEST : readPlace(before)
    const of = { actorId, behaviour: actorSystem.behaviours.get(type)! }
    const { kept, readTo } = await this.#read(of, from, limit)
    if (kept.length === 0 && readTo === null && before === null && there === null) {
      throw new RequestError('NOT_FOUND', `there is no ${type} "${key}", and never was`)
    }
    // What a change made another is told by the one before it.
    const waits = kept.length <= limit && readTo !== null
    const shown = waits ? kept.slice(0, -1) : kept.slice(0, limit)
    const changes = shown.map((one, i) => shownChange(one, kept[i + 1] ?? null))
    if (waits) return { changes, lastCursor: [readTo, ...kept.slice(-1).map(entryOf)].join('-') }
    return { changes, lastCursor: kept.length > limit ? String(shown.at(-1)!.entry) : null }
  }

  /**
   * One more than is shown, or all that are left; `readTo`: neither, for there are too many
   * refusals among them, and it goes on below this number.
   */
  async #read(of: Target, { first, before: from }: Place, limit: number): Promise<Found> {
    const kept: Kept[] = []
    if (first !== null) kept.push(...(await this.#entries(of, first + 1, 1)).kept)
    let before = from
    for (let reads = 0; reads < LIMITS.iam.changeReadsMax; reads++) {
      const found = await this.#entries(of, before, reads === 0 ? limit + 1 : MANY)
      kept.push(...found.kept)
      if (kept.length > limit || found.last === null) return { kept, readTo: null }
      before = found.last
    }
    return { kept, readTo: before }
  }

  /** Changes below a number, newest first; `last`: below it there are others. */
  async #entries(
    { actorId, behaviour }: Target,
    before: number,
    countMax: number,
  ): Promise<{ readonly kept: readonly Kept[]; readonly last: number | null }> {
    const range = { order: 'descending' as const, before, countMax }
    const bytesMax = LIMITS.iam.changeReadBytes
    const rows = await this.#options.derived.entries(actorId, { ...range, bytesMax })
    const kept: Kept[] = []
    for (const { n, body } of rows) {
      const entry = decodeEntry(body)
      const records = recordsOf(entry, behaviour)
      for (let i = records.length - 1; i >= 0; i--) {
        const { version, timeMs, by } = metaOf(entry, i)
        const at = new Date(timeMs).toISOString()
        kept.push({ version, at, by, value: valueOf(records[i]!), entry: n })
      }
    }
    const last = rows.at(-1)?.n ?? 1
    return { kept, last: last === 1 ? null : last }
  }
}

interface Target {
  readonly actorId: string
  readonly behaviour: Behaviour
}

interface Found {
  readonly kept: readonly Kept[]
  readonly readTo: number | null
}

const entryOf = ({ entry }: Kept): number => entry

/** The operation that shows them, of one path; `keyOf` asks whether the caller may read. */
export function changesOperation(
  changes: Changes,
  of: {
    readonly type: string
    readonly path: string
    readonly permission: string
    readonly keyOf: (request: OperationRequest) => string
  },
): Operation {
  return {
    method: 'GET',
    path: `${of.path}/changes`,
    summary: 'Who changed it, when, and which members; newest first, also of what was deleted',
    access: 'token',
    permissions: [of.permission],
    parameters: [
      { name: 'limit', in: 'query', description: 'From 1 to 100, 50 unless given' },
      { name: 'after', in: 'query', description: 'lastCursor of the page before: what is older' },
    ],
    async handle(request) {
      const key = of.keyOf(request)
      const { limit } = readPageQuery(new URLSearchParams(pick(request.query, 'limit')))
      const page = { limit, before: request.query.get('after') }
      return { status: 200, body: await changes.page({ type: of.type, key }, page) }
    },
  }
}

function pick(query: URLSearchParams, name: string): Record<string, string> {
  const value = query.get(name)
  return value === null ? {} : { [name]: value }
}

function valueOf(record: ActorRecord): Kept['value'] {
  return record.t === 'put' ? (record['value'] as Kept['value']) : null
}

function shownChange({ version, at, by, value }: Kept, before: Kept | null): ShownChange {
  const was = before?.value ?? null
  const change = value === null ? 'deleted' : was === null ? 'created' : 'changed'
  const members = value !== null && was !== null ? differences(was, value) : []
  return { version, at, by, change, members }
}

/** Names of members that differ, those of `properties` each by itself. */
function differences(
  was: Readonly<Record<string, unknown>>,
  is: Readonly<Record<string, unknown>>,
  prefix = '',
): string[] {
  const names = [...new Set([...Object.keys(was), ...Object.keys(is)])]
  return names.flatMap((name) => {
    const [a, b] = [was[name], is[name]]
    if (JSON.stringify(a) === JSON.stringify(b)) return []
    return name === 'properties' ? differences(object(a), object(b), 'properties.') : prefix + name
  })
}

function object(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}

/** A cursor's text: a number, and where one waits to be shown, that behind it. */
function readPlace(text: string): Place {
  const [, before, first] = /^([1-9]\d{0,14})(?:-([1-9]\d{0,14}))?$/.exec(text) ?? []
  if (before === undefined) {
    throw new RequestError('INVALID_PARAMETERS', 'after is the lastCursor of an answer')
  }
  return { before: Number(before), first: first === undefined ? null : Number(first) }
}
