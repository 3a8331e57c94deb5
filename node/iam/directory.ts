// The identities of one type as lists show them: in order of their keys, page by page, by roles and
// by what people look for. It follows the maps of the system shard, so that a page costs no walk
// over all of them. Source: CONTRACT 0 "Lists", 1.8.

import type { SystemEntry, SystemView } from '../../cluster/actor-system.ts'
import { LIMITS } from '../../config/limits.ts'
import { RequestError } from '../../protocol/errors.ts'

/** How identities of a type are found. */
export interface Card {
  readonly roles: readonly string[]
  /** Where `search` looks. */
  readonly texts: readonly (string | undefined)[]
}

export interface PageQuery {
  readonly limit: number
  /** Cursors, or null. */
  readonly after: string | null
  readonly before: string | null
  /** The beginning of a role that all of them have; empty: any or none. */
  readonly rolePrefix: string
  /** Text that stands in one of theirs, in letters of any case; empty: any. */
  readonly search: string
}

export interface Page<T> {
  readonly entries: readonly SystemEntry<T>[]
  readonly totalCount: number
  /** null: the page is empty. */
  readonly firstCursor: string | null
  readonly lastCursor: string | null
}

interface Known {
  readonly roles: readonly string[]
  readonly text: string
}

export class Directory<T> {
  readonly #system: SystemView
  readonly #type: string
  readonly #card: (value: T) => Card
  readonly #known = new Map<string, Known>()
  /** All keys, in order. */
  readonly #keys: string[] = []
  readonly #byRole = new Map<string, Set<string>>()
  /** Keys that lists were asked for, by what they were asked by; until something changes. */
  readonly #found = new Map<string, readonly string[]>()

  constructor(system: SystemView, type: string, card: (value: T) => Card) {
    this.#system = system
    this.#type = type
    this.#card = card
    const there = [...system.all<T>(type)].sort((a, b) => order(a.key, b.key))
    for (const { key, value } of there) this.#learn(key, value)
    system.onChange(type, (key, entry) =>
      this.#learn(key, (entry as SystemEntry<T> | null)?.value ?? null),
    )
  }

  page(query: PageQuery): Page<T> {
    const keys = this.#find(query)
    const { limit, after, before } = query
    let from = after === null ? 0 : place(keys, after)
    if (after !== null && keys[from] === after) from++
    let to = Math.min(keys.length, from + limit)
    if (before !== null) {
      to = place(keys, before)
      from = Math.max(from, to - limit)
    }
    const entries: SystemEntry<T>[] = []
    for (const key of keys.slice(from, Math.max(from, to))) {
      const entry = this.#system.get<T>(this.#type, key)
      if (entry !== null) entries.push(entry)
    }
    return {
      entries,
      totalCount: keys.length,
      firstCursor: cursorOf(entries[0]),
      lastCursor: cursorOf(entries.at(-1)),
    }
  }

  #find({ rolePrefix, search }: PageQuery): readonly string[] {
    if (rolePrefix === '' && search === '') return this.#keys
    const asked = JSON.stringify([rolePrefix, search])
    const before = this.#found.get(asked)
    if (before !== undefined) return before
    const having = rolePrefix === '' ? null : this.#having(rolePrefix)
    const text = folded(search)
    const keys = this.#keys.filter(
      (key) => (having?.has(key) ?? true) && this.#known.get(key)!.text.includes(text),
    )
    if (this.#found.size >= LIMITS.iam.listsKeptMax) this.#found.clear()
    this.#found.set(asked, keys)
    return keys
  }

  #having(rolePrefix: string): ReadonlySet<string> {
    const having = new Set<string>()
    for (const [role, keys] of this.#byRole) {
      if (role.startsWith(rolePrefix)) for (const key of keys) having.add(key)
    }
    return having
  }

  #learn(key: string, value: T | null): void {
    this.#found.clear()
    const before = this.#known.get(key)
    for (const role of before?.roles ?? []) {
      const keys = this.#byRole.get(role)
      keys?.delete(key)
      if (keys?.size === 0) this.#byRole.delete(role)
    }
    const at = place(this.#keys, key)
    if (value === null) {
      if (before) this.#keys.splice(at, 1)
      this.#known.delete(key)
      return
    }
    if (!before) this.#keys.splice(at, 0, key)
    const { roles, texts } = this.#card(value)
    this.#known.set(key, { roles, text: folded([key, ...texts].join('\n')) })
    for (const role of roles) {
      const keys = this.#byRole.get(role)
      if (keys) keys.add(key)
      else this.#byRole.set(role, new Set([key]))
    }
  }
}

function folded(text: string): string {
  return text.normalize('NFKC').toLowerCase()
}

function order(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}

/** Where a key stands among ordered ones, or would. */
function place(keys: readonly string[], key: string): number {
  let low = 0
  let high = keys.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (keys[middle]! < key) low = middle + 1
    else high = middle
  }
  return low
}

function cursorOf(entry: { readonly key: string } | undefined): string | null {
  return entry === undefined ? null : Buffer.from(entry.key).toString('base64url')
}

/** Reads `limit`, `after`, `before`, `rolePrefix` and `search`. Throws RequestError 400. */
export function readPageQuery(query: URLSearchParams): PageQuery {
  const limit = query.get('limit')
  const { pageDefault, pageMax, searchCharsMax } = LIMITS.iam
  const count = limit === null ? pageDefault : Number(limit)
  if (!/^\d{1,6}$/.test(limit ?? '1') || count < 1 || count > pageMax) {
    throw invalid(`limit is a whole number from 1 to ${pageMax}, not "${limit}"`)
  }
  const after = readCursor(query, 'after')
  const before = readCursor(query, 'before')
  if (after !== null && before !== null) throw invalid('a page is after one cursor or before one')
  const search = query.get('search') ?? ''
  const rolePrefix = query.get('rolePrefix') ?? ''
  if (search.length > searchCharsMax || rolePrefix.length > searchCharsMax) {
    throw invalid(`search and rolePrefix have at most ${searchCharsMax} characters`)
  }
  return { limit: count, after, before, rolePrefix, search }
}

function readCursor(query: URLSearchParams, name: string): string | null {
  const text = query.get(name)
  if (text === null) return null
  const key = Buffer.from(text, 'base64url')
  if (
    text === '' ||
    text.length > LIMITS.iam.cursorCharsMax ||
    key.toString('base64url') !== text
  ) {
    throw invalid(`${name} is a firstCursor or lastCursor of an answer`)
  }
  return key.toString()
}

function invalid(message: string): RequestError {
  return new RequestError('INVALID_PARAMETERS', message)
}
