// What enum fields may be offered: values that the registry has for one field or shares between
// fields, and those that the platform knows: channels, inventories, currencies, countries. Source:
// specification "Release-note resources (2026.1)", CONTRACT 1.1 "Enums".

import type { SystemView } from '../../../cluster/actor-system.ts'
import { LIMITS } from '../../../config/limits.ts'
import type { FieldDef, NodeType } from '../../../protocol/graph/node-type.ts'
import { currencyCodes } from '../../../protocol/money.ts'
import { COUNTRIES } from './countries.ts'

/** One value as it is listed, with all that the registry holds of it. */
export interface EnumValue {
  readonly key: string
  /** A text, or texts by locale. */
  readonly label: unknown
  readonly [member: string]: unknown
}

interface KeptValue {
  readonly value: unknown
  readonly isSecret: boolean
}

/** Prefixes of the registry that values are read from. */
export const VALUE_SOURCES = ['enums/', 'channels/', 'inventories/'] as const

export const fieldValuesPrefix = (node: string, field: string): string =>
  `enums/graph/${node}/${field}/values/`
const definitionPrefix = (name: string): string => `enums/definitions/${name}/values/`

export class EnumValues {
  readonly #system: Pick<SystemView, 'withPrefix'>

  constructor(system: Pick<SystemView, 'withPrefix'>) {
    this.#system = system
  }

  /** Values of `definitions/<name>` and of the other source words, by key; none of an unknown. */
  ofSource(word: string): readonly EnumValue[] {
    switch (word) {
      case 'channels':
      case 'inventories':
        return this.#under(`${word}/`)
      case 'currencies':
        return currencyCodes().map((key) => ({ key, label: key }))
      case 'countries':
        return COUNTRIES.map((key) => ({ key, label: key }))
      default:
        return this.#under(definitionPrefix(word.replace(/^definitions\//, '')))
    }
  }

  /** Values of a field: those of its source, over which its own come, that may be more. */
  ofField(
    { node, field }: { readonly node: string; readonly field: string },
    shared: readonly EnumValue[],
  ): readonly EnumValue[] {
    const own = this.#under(fieldValuesPrefix(node, field))
    if (own.length === 0) return shared
    const values = new Map(shared.map((value) => [value.key, value]))
    for (const value of own) values.set(value.key, value)
    return [...values.values()].slice(0, LIMITS.graph.enumValuesMax)
  }

  /** The node types, whose fields that hold keys are offered what there is now. */
  offering(types: readonly NodeType[]): readonly NodeType[] {
    return types.map((type) => {
      if (!type.fields.some(({ options }) => options !== undefined)) return type
      return { ...type, fields: type.fields.map((field) => this.#offering(type.name, field)) }
    })
  }

  #offering(node: string, field: FieldDef): FieldDef {
    const { name, options } = field
    if (options === undefined) return field
    const values = this.ofField({ node, field: name }, this.ofSource(options))
    return values.length === 0 ? field : { ...field, offered: values.map(({ key }) => key) }
  }

  #under(prefix: string): EnumValue[] {
    const values: EnumValue[] = []
    for (const entry of this.#system.withPrefix<KeptValue>('registry', prefix)) {
      const key = entry.key.slice(prefix.length)
      // Apps may keep more below a channel.
      if (key.includes('/')) continue
      if (values.length >= LIMITS.graph.enumValuesMax) break
      const { value, isSecret } = entry.value
      values.push(isSecret ? { key, label: key } : valueOf(prefix, key, value))
    }
    return values
  }
}

/** Of channels and inventories the label alone: the rest has an entry of its own. */
function valueOf(prefix: string, key: string, value: unknown): EnumValue {
  const { label, ...rest } = (value ?? {}) as Record<string, unknown>
  const shown = label ?? key
  return prefix.startsWith('enums/') ? { ...rest, key, label: shown } : { key, label: shown }
}
