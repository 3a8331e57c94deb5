// Which state of a shard may follow which; drawn above `Shard`. Source: PROTOCOL 3.5, 3.8.

import { assert } from '../../protocol/errors.ts'
import type { ShardState } from './core.ts'

const NEXT: Readonly<Record<ShardState, readonly ShardState[]>> = {
  claiming: ['serving', 'stopped'],
  serving: ['sealed', 'stopped'],
  sealed: ['serving', 'stopped'],
  stopped: [],
}

/** Returns the new state. Throws an AssertionError when no step leads from one to the other. */
export function transition(from: ShardState, to: ShardState): ShardState {
  assert(NEXT[from].includes(to), 'a shard goes only where its states lead')
  return to
}
