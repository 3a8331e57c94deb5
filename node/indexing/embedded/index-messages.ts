// What the main thread and the index's worker thread say to each other besides the shared numbers.

import type { ParkedActor } from '../../../cluster/feed/projection-batch.ts'
import type { NodeType } from '../../../protocol/graph/node-type.ts'
import type { JournalAccess } from '../../../storage/embedded/journal/journal.ts'

/** How the worker is started. */
export interface IndexWorkerData {
  /** The store: its directory has the index, too. */
  readonly journal: JournalAccess
  readonly shards: number
  readonly generation: string
  /** URL of the module that exports `behaviours()`. */
  readonly table: string
  /** Of the directory's indexes, the one that it fills. */
  readonly number: number
  /** Of the schema that the index is laid out by. */
  readonly nodeTypes: readonly NodeType[]
  /** It is filled beside the one that is read, at LIMITS.indexing.besideShare of its time. */
  readonly isFilling: boolean
  /** Buffer of SharedProgress. */
  readonly progress: SharedArrayBuffer
}

export type ToIndexWorker =
  | { readonly kind: 'wake' }
  /** The row of a parked actor is durable, or is not (`error`). */
  | { readonly kind: 'kept'; readonly id: number; readonly error: string | null }
  | { readonly kind: 'retry'; readonly actorId: string | null }
  /** Nobody else follows now: at full speed. */
  | { readonly kind: 'hurry' }
  /** It has all that the other index had: it is the one that is read from now on. */
  | { readonly kind: 'serve' }
  | { readonly kind: 'stop' }

export type FromIndexWorker =
  /** The index is open: it has its tables, and readers may open it. */
  | { readonly kind: 'opened' }
  /** The index has moved; sent only while a request waits for it. */
  | { readonly kind: 'applied' }
  /** That it is the one that is read is durable. */
  | { readonly kind: 'served' }
  /** Please write (`parked`) or clear (null) the row, and tell when it is durable. */
  | {
      readonly kind: 'park' | 'unpark'
      readonly id: number
      readonly parked: ParkedActor
    }
  | { readonly kind: 'failed'; readonly error: string }
  /** It goes on, after it had failed. */
  | { readonly kind: 'back' }
  /** The index was emptied: it could not go on from where it was. */
  | { readonly kind: 'reset'; readonly why: string }
