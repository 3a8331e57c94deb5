// The routing tree: from a request's method and path to the operation that serves it. Static
// segments win over `{name}`, which wins over `{**rest}`; a more general path is tried when a more
// special one doesn't know the method.

import { assert } from '../../protocol/errors.ts'

/** What a path leads to. `values` are still percent-encoded, in the order of `names`. */
export interface Found<T> {
  readonly target: T
  readonly names: readonly string[]
  readonly values: readonly string[]
}

interface Leaf<T> {
  readonly target: T
  readonly names: readonly string[]
}

interface Branch<T> {
  readonly statics: Map<string, Branch<T>>
  param: Branch<T> | null
  readonly rest: Map<string, Leaf<T>>
  readonly methods: Map<string, Leaf<T>>
}

const PARAM = /^\{([A-Za-z][A-Za-z0-9]*)\}$/
const REST = /^\{\*\*([A-Za-z][A-Za-z0-9]*)\}$/

export class Router<T> {
  private readonly root = branch<T>()
  // Paths without parameters need no walk.
  private readonly whole = new Map<string, Map<string, Leaf<T>>>()

  add(method: string, path: string, target: T): void {
    assert(path.startsWith('/'), `the path ${path} starts with a slash`)
    const names: string[] = []
    let node = this.root
    const segments = path.slice(1).split('/')
    for (const [i, segment] of segments.entries()) {
      const rest = REST.exec(segment)?.[1]
      if (rest !== undefined) {
        assert(i === segments.length - 1, `{**${rest}} ends the path ${path}`)
        put(node.rest, method, { target, names: [...names, rest] }, path)
        return
      }
      const name = PARAM.exec(segment)?.[1]
      assert(name !== undefined || !/[{}]/.test(segment), `${segment} of ${path} is no parameter`)
      if (name !== undefined) names.push(name)
      node = name === undefined ? child(node, segment) : (node.param ??= branch())
    }
    put(node.methods, method, { target, names }, path)
    if (names.length === 0) this.whole.set(path, node.methods)
  }

  /** The operation of a request, or null: then `methodsOf` says why. */
  find(method: string, path: string): Found<T> | null {
    const leaf = this.whole.get(path)?.get(method)
    if (leaf !== undefined) return { target: leaf.target, names: leaf.names, values: [] }
    const values: string[] = []
    const found = walk(this.root, { method, path, values }, 1)
    return found === null ? null : { target: found.target, names: found.names, values }
  }

  /** Methods that a path knows, sorted; empty: the path is unknown. */
  methodsOf(path: string): string[] {
    const methods = new Set<string>()
    gather(this.root, path, 1, methods)
    return [...methods].sort()
  }
}

function branch<T>(): Branch<T> {
  return { statics: new Map(), param: null, rest: new Map(), methods: new Map() }
}

function child<T>(node: Branch<T>, segment: string): Branch<T> {
  let next = node.statics.get(segment)
  if (next === undefined) node.statics.set(segment, (next = branch()))
  return next
}

function put<T>(leaves: Map<string, Leaf<T>>, method: string, leaf: Leaf<T>, path: string): void {
  assert(!leaves.has(method), `${method} ${path} is declared once`)
  leaves.set(method, leaf)
}

interface Wanted {
  readonly method: string
  readonly path: string
  readonly values: string[]
}

/** Goes on from the segment that starts at `at`; past the end of the path there is none. */
function walk<T>(node: Branch<T>, wanted: Wanted, at: number): Leaf<T> | null {
  const { path, values } = wanted
  if (at > path.length) return node.methods.get(wanted.method) ?? null
  const slash = path.indexOf('/', at)
  const end = slash < 0 ? path.length : slash
  const segment = path.slice(at, end)
  const next = node.statics.get(segment)
  if (next !== undefined) {
    const found = walk(next, wanted, end + 1)
    if (found !== null) return found
  }
  if (node.param !== null && end > at) {
    values.push(segment)
    const found = walk(node.param, wanted, end + 1)
    if (found !== null) return found
    values.pop()
  }
  const rest = node.rest.get(wanted.method)
  if (rest === undefined) return null
  values.push(path.slice(at))
  return rest
}

function gather<T>(node: Branch<T>, path: string, at: number, methods: Set<string>): void {
  if (at > path.length) {
    for (const method of node.methods.keys()) methods.add(method)
    return
  }
  const slash = path.indexOf('/', at)
  const end = slash < 0 ? path.length : slash
  const next = node.statics.get(path.slice(at, end))
  if (next !== undefined) gather(next, path, end + 1, methods)
  if (node.param !== null && end > at) gather(node.param, path, end + 1, methods)
  for (const method of node.rest.keys()) methods.add(method)
}
