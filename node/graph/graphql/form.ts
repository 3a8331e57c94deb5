// The form of an answer, and how the graph's answer is read by it: made once for an operation, so
// that a node costs no more than its members. Source: CONTRACT 1.4 "Response shape", 1.4.1.

import { GraphQLError } from 'graphql'
import { LIMITS } from '../../../config/limits.ts'

/** What stands in the answer under `key`. */
export type Part =
  | { readonly kind: 'constant'; readonly key: string; readonly value: string }
  | {
      readonly kind: 'leaf'
      readonly key: string
      readonly member: string
      /** All that it may be; null: anything. */
      readonly values: ReadonlySet<unknown> | null
    }
  | {
      readonly kind: 'object'
      readonly key: string
      readonly member: string
      readonly form: ObjectForm
    }
  | {
      readonly kind: 'dynamic-member'
      readonly key: string
      readonly field: string
      readonly member: string
    }
  | {
      readonly kind: 'node' | 'list'
      readonly key: string
      readonly alias: string
      readonly form: ObjectForm
    }
  | {
      readonly kind: 'connection'
      readonly key: string
      readonly alias: string
      readonly form: readonly ConnectionPart[]
      /** It begins behind a cursor. */
      readonly isBehind: boolean
    }

export type ObjectForm = readonly Part[]

/** A part of a connection, of its page's info, or of one of its edges. */
export type ConnectionPart =
  | { readonly kind: 'constant'; readonly key: string; readonly value: string }
  | {
      readonly kind:
        | 'totalCount'
        | 'cursor'
        | 'hasNextPage'
        | 'hasPreviousPage'
        | 'startCursor'
        | 'endCursor'
      readonly key: string
    }
  | {
      readonly kind: 'pageInfo' | 'edges'
      readonly key: string
      readonly form: readonly ConnectionPart[]
    }
  | { readonly kind: 'node'; readonly key: string; readonly form: ObjectForm }

type Json = Record<string, unknown>
type Path = { readonly up: Path; readonly key: string | number } | null

export interface Shaped {
  readonly data: Json
  readonly errors: readonly GraphQLError[]
  /** Lists that their limit has cut. */
  readonly cut: readonly (readonly (string | number)[])[]
}

/** `pause` is awaited now and then: a long answer is not made in one go. */
export async function shaped(
  answer: Json,
  form: ObjectForm,
  pause: () => Promise<void>,
): Promise<Shaped> {
  const shaping = new Shaping(pause)
  const data = await shaping.root(answer, form)
  return { data, errors: shaping.errors, cut: shaping.cut }
}

/** One node by its form. `at` is its place in the answer; errors are added to `errors`. */
export function shapedNode(
  node: Json,
  form: ObjectForm,
  of: { readonly at: readonly (string | number)[]; readonly errors: GraphQLError[] },
): Json {
  let path: Path = null
  for (const key of of.at) path = { up: path, key }
  return new Shaping(() => Promise.resolve(), of.errors).object(node, form, path)
}

class Shaping {
  readonly errors: GraphQLError[]
  readonly cut: (readonly (string | number)[])[] = []
  readonly #pause: () => Promise<void>
  #made = 0
  #pausedAt = 0

  constructor(pause: () => Promise<void>, errors: GraphQLError[] = []) {
    this.#pause = pause
    this.errors = errors
  }

  async root(answer: Json, form: ObjectForm): Promise<Json> {
    const data: Json = {}
    for (const part of form) {
      if (part.kind !== 'list') {
        data[part.key] = this.#part(answer, part, null)
        continue
      }
      const list: Json[] = []
      data[part.key] = list
      const path: Path = { up: null, key: part.key }
      this.#tellCut(answer, part.alias, path)
      for (const [i, node] of (answer[part.alias] as Json[]).entries()) {
        list.push(this.object(node, part.form, { up: path, key: i }))
        if (this.#made - this.#pausedAt < LIMITS.graph.graphqlSliceNodes) continue
        this.#pausedAt = this.#made
        // Others have their turn between two slices.
        await this.#pause()
      }
    }
    return data
  }

  object(node: Json, form: ObjectForm, path: Path): Json {
    this.#made++
    const object: Json = {}
    for (const part of form) object[part.key] = this.#part(node, part, path)
    return object
  }

  #part(node: Json, part: Part, up: Path): unknown {
    switch (part.kind) {
      case 'constant':
        return part.value
      case 'leaf':
        return this.#leaf(node[part.member] ?? null, part, up)
      case 'object': {
        const value = node[part.member] ?? null
        if (value === null || typeof value !== 'object') return null
        return this.object(value as Json, part.form, { up, key: part.key })
      }
      case 'dynamic-member': {
        const value = node[part.field] ?? null
        if (value === null || !Object.hasOwn(value, part.member)) return null
        return (value as Json)[part.member]
      }
      case 'node': {
        const value = node[part.alias] ?? null
        return value === null ? null : this.object(value as Json, part.form, { up, key: part.key })
      }
      case 'list':
        return this.#list(node, part, { up, key: part.key })
      case 'connection':
        return this.#connection(node, part, { up, key: part.key })
    }
  }

  #leaf(value: unknown, part: Extract<Part, { kind: 'leaf' }>, up: Path): unknown {
    if (value === null || part.values === null || part.values.has(value)) return value
    if (this.errors.length < LIMITS.graph.graphqlErrorsMax) {
      const path = pathOf({ up, key: part.key })
      this.errors.push(
        new GraphQLError('the value is none of those that its enum has', {
          path,
          extensions: { code: 'INTERNAL_ERROR' },
        }),
      )
    }
    return null
  }

  #list(
    node: Json,
    part: { readonly alias: string; readonly form: ObjectForm },
    path: Path,
  ): Json[] {
    this.#tellCut(node, part.alias, path)
    const nodes = node[part.alias] as Json[]
    return nodes.map((one, key) => this.object(one, part.form, { up: path, key }))
  }

  #tellCut(node: Json, alias: string, path: Path): void {
    if (node[`${alias}HasMore`] !== true) return
    if (this.cut.length < LIMITS.graph.graphqlCutMax) this.cut.push(pathOf(path))
  }

  #connection(node: Json, part: Extract<Part, { kind: 'connection' }>, path: Path): Json {
    const found = node[part.alias]
    const page: Page = {
      nodes: (Array.isArray(found) ? found : ((found as Json)['nodes'] ?? [])) as Json[],
      count: typeof found === 'number' ? found : (found as Json)['count'],
      cursors: (node[`${part.alias}Cursors`] ?? []) as string[],
      hasNext: node[`${part.alias}HasMore`] === true,
      isBehind: part.isBehind,
    }
    return this.#page(part.form, page, { path, row: 0 })
  }

  #page(
    form: readonly ConnectionPart[],
    page: Page,
    at: { readonly path: Path; readonly row: number },
  ): Json {
    const object: Json = {}
    for (const part of form) object[part.key] = this.#pagePart(part, page, at)
    return object
  }

  #pagePart(
    part: ConnectionPart,
    page: Page,
    { path: up, row }: { readonly path: Path; readonly row: number },
  ): unknown {
    const path: Path = { up, key: part.key }
    switch (part.kind) {
      case 'constant':
        return part.value
      case 'totalCount':
        return page.count
      case 'pageInfo':
        return this.#page(part.form, page, { path, row })
      case 'edges':
        return page.nodes.map((_, i) =>
          this.#page(part.form, page, { path: { up: path, key: i }, row: i }),
        )
      case 'cursor':
        return page.cursors[row]
      case 'node':
        return this.object(page.nodes[row]!, part.form, path)
      case 'hasNextPage':
        return page.hasNext
      case 'hasPreviousPage':
        return page.isBehind
      case 'startCursor':
        return page.cursors[0] ?? null
      case 'endCursor':
        return page.cursors.at(-1) ?? null
    }
  }
}

interface Page {
  readonly nodes: readonly Json[]
  readonly count: unknown
  readonly cursors: readonly string[]
  readonly hasNext: boolean
  readonly isBehind: boolean
}

function pathOf(path: Path): (string | number)[] {
  const keys: (string | number)[] = []
  for (let at = path; at !== null; at = at.up) keys.unshift(at.key)
  return keys
}
