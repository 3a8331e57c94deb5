// The maps of the `system` shard: registry, clients, roles, sessions, ... as sorted maps in memory,
// followed from that shard's log before this member serves. One order of configuration changes,
// reads without a round trip. Source: ARCHITECTURE 2, PROTOCOL 3.0 "The system shard".

import { LIMITS } from '../config/limits.ts'
import type { Behaviour, SystemState } from '../protocol/behaviour.ts'
import { metaOf, recordsOf } from '../protocol/entry/entry.ts'
import { assert } from '../protocol/errors.ts'
import type { AnyEntry } from '../protocol/entry/entry.ts'
import type { SystemEntry, SystemView } from './actor-system.ts'

interface Followed {
  readonly actorId: string
  state: unknown
  version: number
  /** What the view shows; null when it is deleted. */
  entry: SystemEntry | null
}

interface TypeMap {
  /** What is not deleted. A deleted one's own rows keep its version, a later `put` its value. */
  byKey: Map<string, Followed>
  /** Its keys in order; null: must be sorted again. */
  sorted: string[] | null
  /** Keys by the names that their actors have beside them (`Behaviour.names`). */
  byName: Map<string, string>
  readonly watchers: Set<(key: string, entry: SystemEntry | null) => void>
}

/** One actor of the maps as an image keeps it. */
interface ImageItem {
  readonly type: string
  readonly key: string
  readonly actorId: string
  readonly version: number
  readonly state: unknown
}

/** What a list adds to each of its items. */
const LIST_BYTES = 2

export class SystemMaps implements SystemView {
  readonly #behaviours: ReadonlyMap<string, Behaviour>
  readonly #types = new Map<string, TypeMap>()
  /** Done up to and including this offset of the system shard. */
  offset = 0

  constructor(behaviours: ReadonlyMap<string, Behaviour>) {
    this.#behaviours = behaviours
  }

  /** Folds a committed entry; what it has already is skipped. */
  follow(entry: AnyEntry, offset: number): void {
    if (offset <= this.offset) return
    this.offset = offset
    if (entry.q === undefined || entry.r.length === 0) return
    const behaviour = this.#behaviours.get(entry.y)!
    const map = this.#map(entry.y)
    let known = map.byKey.get(entry.q)
    if (!known) {
      known = { actorId: entry.p, state: null, version: 0, entry: null }
      map.byKey.set(entry.q, known)
    }
    forgetNames(map, behaviour, known)
    for (const [i, record] of recordsOf(entry, behaviour).entries()) {
      known.state = behaviour.evolve(known.state, record, metaOf(entry, i))
    }
    known.version = entry.v + entry.r.length
    const was = known.entry
    known.entry = shown(entry.q, known)
    if (known.entry === null) map.byKey.delete(entry.q)
    learnNames(map, behaviour, known)
    if ((was === null) !== (known.entry === null)) map.sorted = null
    for (const changed of map.watchers) changed(entry.q, known.entry)
  }

  #map(type: string): TypeMap {
    let map = this.#types.get(type)
    if (!map) {
      map = { byKey: new Map(), sorted: null, byName: new Map(), watchers: new Set() }
      this.#types.set(type, map)
    }
    return map
  }

  get<T>(type: string, key: string): SystemEntry<T> | null {
    const known = this.#types.get(type)?.byKey.get(key)
    return (known?.entry ?? null) as SystemEntry<T> | null
  }

  find<T>(type: string, name: string): SystemEntry<T> | null {
    const key = this.#types.get(type)?.byName.get(name)
    return key === undefined ? null : this.get<T>(type, key)
  }

  *all<T>(type: string): Iterable<SystemEntry<T>> {
    for (const { entry } of this.#types.get(type)?.byKey.values() ?? []) {
      if (entry) yield entry as SystemEntry<T>
    }
  }

  *withPrefix<T>(type: string, prefix: string): Iterable<SystemEntry<T>> {
    const map = this.#types.get(type)
    if (!map) return
    map.sorted ??= [...map.byKey.keys()].sort(byCodePoint)
    const { sorted } = map
    let low = 0
    let high = sorted.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (byCodePoint(sorted[middle]!, prefix) < 0) low = middle + 1
      else high = middle
    }
    for (let i = low; i < sorted.length && sorted[i]!.startsWith(prefix); i++) {
      const entry = map.byKey.get(sorted[i]!)?.entry
      if (entry) yield entry as SystemEntry<T>
    }
  }

  size(type: string): number {
    return this.#types.get(type)?.byKey.size ?? 0
  }

  onChange(type: string, changed: (key: string, entry: SystemEntry | null) => void): () => void {
    const { watchers } = this.#map(type)
    watchers.add(changed)
    return () => void watchers.delete(changed)
  }

  /**
   * The maps as they are now, in parts of LIMITS.storage.imageChunkBytes; an item that is larger is
   * a part of its own. A part is made when it is asked for: all of them need not fit into memory,
   * or one text, and whatever happens between them has its turn.
   */
  image(): Iterable<Buffer> {
    const moment: ImageItem[] = []
    for (const [type, map] of this.#types) {
      // What is followed is changed in place, its state is not.
      for (const [key, { actorId, version, state }] of map.byKey) {
        moment.push({ type, key, actorId, version, state })
      }
    }
    return this.#partsOf(moment)
  }

  *#partsOf(moment: Iterable<ImageItem>): Iterable<Buffer> {
    let texts: string[] = []
    let bytes = 0
    for (const item of moment) {
      const state = this.#behaviours.get(item.type)!.toSnapshot(item.state)
      const text = JSON.stringify({ ...item, state })
      const own = Buffer.byteLength(text) + LIST_BYTES
      if (texts.length > 0 && bytes + own > LIMITS.storage.imageChunkBytes) {
        yield partOf(texts)
        texts = []
        bytes = 0
      }
      texts.push(text)
      bytes += own
    }
    // Empty maps have a part, too: it says that there was nothing.
    yield partOf(texts)
  }

  /**
   * The maps are those of the image from now on. What it doesn't have was deleted behind what they
   * had: whoever follows them is told so, and what else is another, once all of it stands.
   */
  load(offset: number, parts: readonly Uint8Array[]): void {
    assert(offset > this.offset, 'an image takes the maps forward')
    const found = new Map<string, Map<string, Followed>>()
    for (const part of parts) {
      for (const item of JSON.parse(Buffer.from(part).toString()) as ImageItem[]) {
        const behaviour = this.#behaviours.get(item.type)
        if (!behaviour) continue
        const { type, key, actorId, version } = item
        const state = behaviour.fromSnapshot(item.state)
        const known: Followed = { actorId, version, state, entry: null }
        known.entry = shown(key, known)
        const ofType = found.get(type) ?? new Map<string, Followed>()
        found.set(type, ofType.set(key, known))
      }
    }
    const changed: [TypeMap, ReadonlyMap<string, Followed>][] = []
    for (const type of new Set([...this.#types.keys(), ...found.keys()])) {
      const map = this.#map(type)
      changed.push([map, map.byKey])
      map.byKey = found.get(type) ?? new Map()
      map.sorted = null
      map.byName = new Map()
      const behaviour = this.#behaviours.get(type)!
      for (const known of map.byKey.values()) learnNames(map, behaviour, known)
    }
    this.offset = offset
    for (const [map, before] of changed) tellChanges(map, before)
  }
}

function partOf(texts: readonly string[]): Buffer {
  return Buffer.from(`[${texts.join(',')}]`)
}

function learnNames({ byName }: TypeMap, behaviour: Behaviour, { entry, state }: Followed): void {
  if (entry === null || behaviour.names === undefined) return
  for (const one of behaviour.names(state)) byName.set(one, entry.key)
}

/** Before its state becomes another. */
function forgetNames({ byName }: TypeMap, behaviour: Behaviour, { entry, state }: Followed): void {
  if (entry === null || behaviour.names === undefined) return
  for (const one of behaviour.names(state)) if (byName.get(one) === entry.key) byName.delete(one)
}

/** What the view has of an actor; null: it is deleted. */
function shown(key: string, { actorId, version, state }: Followed): SystemEntry | null {
  const { value, deleted } = state as SystemState
  return deleted ? null : { key, actorId, version, value }
}

function tellChanges({ byKey, watchers }: TypeMap, before: ReadonlyMap<string, Followed>): void {
  const changes: [string, SystemEntry | null][] = []
  for (const key of before.keys()) if (!byKey.has(key)) changes.push([key, null])
  for (const [key, { actorId, version, entry }] of byKey) {
    const was = before.get(key)
    if (was?.actorId !== actorId || was.version !== version) changes.push([key, entry])
  }
  for (const [key, entry] of changes) for (const changed of watchers) changed(key, entry)
}

/** Order of Unicode code points, which UTF-16 code units don't keep. */
function byCodePoint(a: string, b: string): number {
  if (a === b) return 0
  for (let i = 0; i < a.length && i < b.length; i++) {
    const x = a.charCodeAt(i)
    const y = b.charCodeAt(i)
    if (x === y) continue
    const surrogateX = x >= 0xd800 && x <= 0xdfff
    const surrogateY = y >= 0xd800 && y <= 0xdfff
    if (surrogateX !== surrogateY) return surrogateX ? 1 : -1
    return x - y
  }
  return a.length - b.length
}
