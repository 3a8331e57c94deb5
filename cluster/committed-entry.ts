// An entry as it has been committed here, with what its owner knew of it beside its bytes: who
// follows the feed in the same process needs neither read nor fold it again. Source: PROTOCOL
// 3.13.9.

import type { Entry } from '../protocol/entry/entry.ts'

export interface CommittedEntry {
  readonly entry: Entry
  /** As it is stored. */
  readonly bytes: Uint8Array
  /**
   * The actor's state right behind it, which is the runtime's: it must not be changed. undefined:
   * it was not kept, for it is large and many were on their way, or the entry is of no actor.
   */
  readonly state: unknown
  /** At most so many bytes the state takes. */
  readonly stateBytes: number
}
