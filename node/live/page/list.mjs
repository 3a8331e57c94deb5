// The list of a live query as a client keeps it by the frames that it is told, and where to go on
// from after a reconnect. Source: CONTRACT 1.10 "Live queries".

/**
 * @typedef {object} Row one node of the list, the same object as long as it is there
 * @property {number} key that no other row has, nor had
 * @property {Readonly<Record<string, unknown>>} node
 * @property {number} version counts its changes
 */

/**
 * @typedef {'all' | 'add' | 'update' | 'remove'} Change
 * @typedef {{ readonly type: string, readonly [member: string]: unknown }} Frame
 */

export class LiveList {
  /** @type {Row[]} in order */
  rows = []
  /** @type {string | null} opaque; null: there is nothing to go on from */
  position = null
  #lastKey = 0

  /**
   * Takes a frame of the query.
   *
   * @param {Frame} frame
   * @returns {Change | null} what it does to the list; null: nothing
   */
  take(frame) {
    const { type, position, nodes } = frame
    const change = this.#make(frame)
    if (change === null && type !== 'liveQueryCreated') return null
    if (typeof position === 'string') this.position = position
    return nodes === undefined ? change : 'all'
  }

  /** Nothing is known. */
  clear() {
    this.rows = []
    this.position = null
  }

  /**
   * @param {Frame} frame
   * @returns {Change | null}
   */
  #make({ type, nodes, index, previousIndex, node }) {
    const at = Number(index)
    switch (type) {
      case 'liveQueryCreated':
      case 'liveQueryReset':
        if (nodes === undefined) return null
        this.rows = /** @type {Row['node'][]} */ (nodes).map((one) => this.#row(one))
        return 'all'
      case 'liveQueryAdd':
        this.rows.splice(at, 0, this.#row(/** @type {Row['node']} */ (node)))
        return 'add'
      case 'liveQueryUpdate': {
        const [row] = this.rows.splice(Number(previousIndex), 1)
        if (row === undefined) return null
        row.node = /** @type {Row['node']} */ (node)
        row.version++
        this.rows.splice(at, 0, row)
        return 'update'
      }
      case 'liveQueryRemove':
        this.rows.splice(at, 1)
        return 'remove'
      default:
        return null
    }
  }

  /**
   * @param {Row['node']} node
   * @returns {Row}
   */
  #row(node) {
    return { key: ++this.#lastKey, node, version: 0 }
  }
}
