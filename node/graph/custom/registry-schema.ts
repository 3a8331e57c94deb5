// Follows the registry's definitions of custom fields, edges and search into the live schema: node
// types as the actor types declare them, and what is defined beside. One that can't be any more (a
// field of its name has come with a new version) is left out, and told; it takes nothing else with
// it. Source: CONTRACT 1.1 "Custom fields", "They apply", PROTOCOL 3.13.8.

import type { SystemView } from '../../../cluster/actor-system.ts'
import type { Clock } from '../../../cluster/clock.ts'
import { LIMITS } from '../../../config/limits.ts'
import type { Acl } from '../../../protocol/ace.ts'
import { AssertionError, type ErrorItem, RequestError } from '../../../protocol/errors.ts'
import type { NodeType } from '../../../protocol/graph/node-type.ts'
import type { Log } from '../../../protocol/log.ts'
import { refusalToDefine } from './definition-access.ts'
import type { LiveSchema, SchemaVersion } from '../live-schema.ts'
import {
  customTypes,
  type CustomTypes,
  type Definition,
  definitionFault,
  type DefinitionFault,
  DEFINITIONS,
  placeOf,
  without,
  wordOf,
} from './definitions.ts'
import { SEARCHES, searchConfigFault, withSearches } from './search-configs.ts'
import { type EnumValue, EnumValues, VALUE_SOURCES } from './enum-values.ts'

/** The maps of the `system` shard, and how far they have come. */
export interface FollowedSystem extends Omit<SystemView, 'find' | 'all'> {
  readonly offset: number
}

export interface RegistrySchemaOptions {
  readonly schema: LiveSchema
  /** Node types as they are without the registry. */
  readonly types: readonly NodeType[]
  readonly clock: Clock
  readonly log: Log
}

interface Kept {
  readonly value: unknown
  readonly isSecret: boolean
}

export class RegistrySchema {
  readonly #options: RegistrySchemaOptions
  #system: FollowedSystem | null = null
  #enums: EnumValues | null = null
  #isDue = false
  #waiting = 0
  #refused: CustomTypes['refused'] = []
  #told = ''

  constructor(options: RegistrySchemaOptions) {
    this.#options = options
  }

  /** Takes in what is there and what comes; changes of one moment are one. Call it once. */
  follow(system: FollowedSystem): void {
    this.#system = system
    this.#enums = new EnumValues(system)
    this.#change()
    system.onChange('registry', (key) => {
      const isOurs = [DEFINITIONS, SEARCHES, ...VALUE_SOURCES].some((prefix) =>
        key.startsWith(prefix),
      )
      if (!isOurs || this.#isDue) return
      this.#isDue = true
      queueMicrotask(() => this.#change())
    })
  }

  /** Definitions, and parts of search indexes, that are left out, and why. */
  get refused(): CustomTypes['refused'] {
    return this.#refused
  }

  /** Why a value can't be written under the key; null: it can, or the key is of no definition. */
  fault(key: string, value: unknown): DefinitionFault | null {
    const { schema } = this.#options.schema.current
    if (placeOf(key) === null) return searchConfigFault({ key, value }, schema)
    return definitionFault({ key, value }, without(schema, key))
  }

  /** Why the caller may not write the value under the key; null: they may. */
  refusalToDefine(caller: Acl, definition: Definition): ErrorItem | null {
    return refusalToDefine(caller, definition, this.#options.types)
  }

  /** The values that are offered for an enum field, or one of keys; null: it is none. */
  valuesOf(node: string, field: string): readonly EnumValue[] | null {
    const found = this.#options.schema.current.schema.nodes.get(node)?.fields.get(field)
    if (found === undefined) return null
    const { options } = found
    if (options !== undefined) {
      return this.#enums!.ofField({ node, field }, this.#enums!.ofSource(options))
    }
    if ((found.dimensions?.of ?? found.type) !== 'enum') return null
    const kept = this.#system!.get<Kept>('registry', `graph/${node}/fields/${field}`)
    const word = found.custom && kept !== null ? wordOf(kept.value.value) : null
    const shared = found.custom
      ? word === null
        ? []
        : this.#enums!.ofSource(word)
      : (found.values ?? []).map((key) => ({ key, label: key }))
    return this.#enums!.ofField({ node, field }, shared)
  }

  /** Values that fields share by the name of a definition. */
  sharedValues(name: string): readonly EnumValue[] {
    return this.#enums!.ofSource(`definitions/${name}`)
  }

  /**
   * Resolves with true once the schema that is served has what was committed in the `system` shard
   * up to this offset, with false after `waitMs`. Throws RequestError 429 past the bound.
   */
  async reached(offset: number, served: () => SchemaVersion, waitMs: number): Promise<boolean> {
    const { schema, clock } = this.#options
    const has = (): boolean =>
      this.#system!.offset >= offset && !this.#isDue && served() === schema.current
    if (has()) return true
    if (this.#waiting >= LIMITS.graph.schemaWaitersMax) {
      const text = `${LIMITS.graph.schemaWaitersMax} requests wait for the graph's fields already`
      throw new RequestError('TOO_BUSY', text)
    }
    this.#waiting++
    try {
      const endsAtMs = clock.monotonicMs() + waitMs
      while (!has()) {
        if (clock.monotonicMs() >= endsAtMs) return false
        await new Promise<void>((resolve) => void clock.after(LIMITS.graph.schemaLookMs, resolve))
      }
      return true
    } finally {
      this.#waiting--
    }
  }

  #change(): void {
    this.#isDue = false
    const { schema, types, log } = this.#options
    // Read once for all fields that share them: a thousand values of a hundred fields take long.
    const sources = new Map<string, readonly EnumValue[]>()
    const sharedOf = (word: string): readonly EnumValue[] => {
      const shared = sources.get(word) ?? this.#enums!.ofSource(word)
      sources.set(word, shared)
      return shared
    }
    const custom = customTypes(types, this.#under(DEFINITIONS), ({ node, field, values }) => {
      const shared = values === null ? [] : sharedOf(values)
      return this.#enums!.ofField({ node, field }, shared).map(({ key }) => key)
    })
    try {
      const searched = withSearches(custom.types, this.#under(SEARCHES))
      this.#refused = [...custom.refused, ...searched.refused]
      this.#tell()
      schema.change(this.#enums!.offering(searched.types))
    } catch (err) {
      if (!(err instanceof AssertionError)) throw err
      log.error({ err }, 'custom fields and edges do not fit together; the graph stays as it was')
    }
  }

  *#under(prefix: string): Generator<Definition> {
    for (const { key, value } of this.#system!.withPrefix<Kept>('registry', prefix)) {
      yield { key, value: value.isSecret ? null : value.value }
    }
  }

  /** Each change of what is left out is told once. */
  #tell(): void {
    const text = JSON.stringify(this.#refused)
    if (text === this.#told) return
    this.#told = text
    for (const { key, reason } of this.#refused) {
      this.#options.log.warn({ key, reason }, 'what the registry defines is left out of the graph')
    }
  }
}
