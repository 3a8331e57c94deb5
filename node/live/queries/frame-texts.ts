// What frames of live queries say, as JSON, made once for all clients who are told the same: only
// the id that a client has given its query is put in for each. Source: CONTRACT 1.10.

import type { ListChange } from './list-changes.ts'
import type { LivePositions } from './live-positions.ts'
import type { LiveQueries } from './live-queries.ts'
import type { LiveNode } from './live-window.ts'

/** A frame: its type, and what comes behind the id of the query. */
export interface FrameText {
  readonly type: string
  readonly members: string
}

export class FrameTexts {
  readonly #queries: Pick<LiveQueries, 'heard'>
  readonly #positions: LivePositions
  /** By what is told: the same objects for all. */
  readonly #changes = new WeakMap<readonly ListChange[], readonly FrameText[]>()
  readonly #resets = new WeakMap<readonly LiveNode[], FrameText>()

  constructor(queries: Pick<LiveQueries, 'heard'>, positions: LivePositions) {
    this.#queries = queries
    this.#positions = positions
  }

  changes(changes: readonly ListChange[], digest: bigint): readonly FrameText[] {
    let texts = this.#changes.get(changes)
    if (texts === undefined) {
      // Between two changes of one moment there is nothing to go on from.
      const last = changes.length - 1
      const between = last > 0 ? this.position(null) : ''
      texts = changes.map((change, i) => {
        return textOf(change, i < last ? between : this.position(digest))
      })
      this.#changes.set(changes, texts)
    }
    return texts
  }

  reset(nodes: readonly LiveNode[], digest: bigint): FrameText {
    let text = this.#resets.get(nodes)
    if (text === undefined) {
      const members = this.position(digest) + listOf(nodes)
      text = { type: 'liveQueryReset', members }
      this.#resets.set(nodes, text)
    }
    return text
  }

  /** As a member; null: of a list that nobody has. */
  position(digest: bigint | null): string {
    const text = digest === null ? '-' : digest.toString(36)
    const position = this.#positions.encode({ offsets: this.#queries.heard, digest: text })
    return `,"position":${JSON.stringify(position)}`
  }
}

/** As a member. */
export function listOf(nodes: readonly LiveNode[]): string {
  return `,"nodes":[${nodes.map(({ text }) => text).join(',')}]`
}

function textOf(change: ListChange, position: string): FrameText {
  const { kind, index, node } = change
  const place = `${position},"index":${index}`
  switch (kind) {
    case 'add':
      return { type: 'liveQueryAdd', members: `${place},"node":${node.text}` }
    case 'update': {
      const from = `,"previousIndex":${change.previousIndex}`
      return { type: 'liveQueryUpdate', members: `${place}${from},"node":${node.text}` }
    }
    case 'remove': {
      const { shownId } = node
      const id = shownId === null ? '' : `,"id":${JSON.stringify(shownId)}`
      return { type: 'liveQueryRemove', members: place + id }
    }
  }
}
