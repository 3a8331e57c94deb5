// The changes of a list in the form in which a subscription selects them. Source: CONTRACT 1.4.1,
// 1.10.

import type { ExecutionResult, GraphQLError } from 'graphql'
import { type ObjectForm, shapedNode } from './form.ts'

/** One change, as live queries tell it; nodes are JSON by the names of the graph's answer. */
export interface Change {
  readonly kind: 'created' | 'added' | 'updated' | 'removed' | 'reset'
  readonly node?: string
  readonly nodes?: readonly string[]
  readonly id?: string
  readonly index?: number
  readonly previousIndex?: number
  readonly hasMore?: boolean
  /** Asked for only where it is selected. */
  readonly position: () => string
}

/** A part of a change as it is selected. */
export type ChangePart =
  | { readonly kind: 'constant'; readonly key: string; readonly value: string }
  | {
      readonly kind: 'kind' | 'id' | 'index' | 'previousIndex' | 'hasMore' | 'position'
      readonly key: string
    }
  | { readonly kind: 'node' | 'nodes'; readonly key: string; readonly form: ObjectForm }

export type ChangeForm = readonly ChangePart[]

/** The result that says this change; `key` is the name of the subscription's one field. */
export function shapedChange(change: Change, key: string, form: ChangeForm): ExecutionResult {
  const errors: GraphQLError[] = []
  const shape = (text: string, at: readonly (string | number)[], of: ObjectForm): unknown =>
    shapedNode(JSON.parse(text) as Record<string, unknown>, of, { at, errors })
  const shown: Record<string, unknown> = {}
  for (const part of form) {
    const path = [key, part.key]
    switch (part.kind) {
      case 'constant':
        shown[part.key] = part.value
        break
      case 'node':
        shown[part.key] = change.node === undefined ? null : shape(change.node, path, part.form)
        break
      case 'nodes':
        shown[part.key] =
          change.nodes?.map((text, i) => shape(text, [...path, i], part.form)) ?? null
        break
      case 'position':
        shown[part.key] = change.position()
        break
      default:
        shown[part.key] = change[part.kind] ?? null
    }
  }
  return { ...(errors.length === 0 ? {} : { errors }), data: { [key]: shown } }
}
