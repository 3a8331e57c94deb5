// A client of one live query as CONTRACT 1.10 tells it to be, and the checker K6 of PROTOCOL 4.1:
// it keeps its list by frames alone, and says where one contradicts what it has, or where a node
// goes back in version.

export interface LiveFrame {
  readonly type: string
  readonly [member: string]: unknown
}

export type ShownNode = Readonly<Record<string, unknown>>

export interface LiveViewOptions {
  /** Field of a node that says which it is. */
  readonly idField: string
  /** Most nodes that it shows. */
  readonly limit: number
  /** Rises with each change of a node that clients see. */
  readonly versionOf: (node: ShownNode) => number
}

export class LiveView {
  /** Where what was told is not as it must be. */
  readonly problems: string[] = []
  /** To resume with; null: nothing was told yet. */
  position: string | null = null
  /** How often it was told all anew. */
  anew = 0
  /** Frames that changed one node. */
  changes = 0
  #nodes: ShownNode[] = []
  readonly #versions = new Map<string, number>()
  readonly #options: LiveViewOptions

  constructor(options: LiveViewOptions) {
    this.#options = options
  }

  get nodes(): readonly ShownNode[] {
    return this.#nodes
  }

  take(frame: LiveFrame): void {
    const { type, node, nodes, position } = frame
    const [index, previousIndex] = [frame['index'] as number, frame['previousIndex'] as number]
    switch (type) {
      case 'liveQueryCreated':
      case 'liveQueryReset':
        if (nodes !== undefined) this.#begin(frame, nodes as ShownNode[])
        else if (this.position === null) this.#problem(frame, 'it goes on from nothing')
        break
      case 'liveQueryAdd':
        this.#put(frame, index, node as ShownNode)
        break
      case 'liveQueryUpdate':
        this.#take(frame, previousIndex, this.#idOf(node as ShownNode))
        this.#put(frame, index, node as ShownNode)
        break
      case 'liveQueryRemove':
        this.#take(frame, index, frame['id'] as string)
        break
      default:
        return
    }
    if (typeof position === 'string') this.position = position
    else this.#problem(frame, 'it has no position')
  }

  #begin(frame: LiveFrame, nodes: readonly ShownNode[]): void {
    this.anew++
    this.#nodes = []
    if (nodes.length > this.#options.limit) this.#problem(frame, 'it has more than its limit')
    for (const [i, node] of nodes.entries()) this.#place(frame, i, node)
  }

  #put(frame: LiveFrame, index: number, node: ShownNode): void {
    this.changes++
    this.#place(frame, index, node)
  }

  #place(frame: LiveFrame, index: number, node: ShownNode): void {
    const id = this.#idOf(node)
    if (!Number.isInteger(index) || index < 0 || index > this.#nodes.length) {
      this.#problem(frame, `there is no place ${index} among ${this.#nodes.length}`)
    }
    if (this.#nodes.some((one) => this.#idOf(one) === id)) this.#problem(frame, `${id} is there`)
    const version = this.#options.versionOf(node)
    const known = this.#versions.get(id)
    if (known !== undefined && version < known) {
      this.#problem(frame, `${id} goes back from ${known} to ${version}`)
    }
    this.#versions.set(id, version)
    this.#nodes.splice(index, 0, node)
  }

  #take(frame: LiveFrame, index: number, id: string): void {
    if (frame.type === 'liveQueryRemove') this.changes++
    const there = this.#nodes[index]
    const isIt = there !== undefined && this.#idOf(there) === id
    if (!isIt) this.#problem(frame, `at ${index} is ${there && this.#idOf(there)}, not ${id}`)
    this.#nodes.splice(index, 1)
  }

  #idOf(node: ShownNode): string {
    return node[this.#options.idField] as string
  }

  #problem(frame: LiveFrame, what: string): void {
    this.problems.push(`${frame.type}: ${what}`)
  }
}
