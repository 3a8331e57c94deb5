// What the main thread and a reader thread say to each other: plans out, ready JSON back.

import type { ErrorItem } from '../../../protocol/errors.ts'
import type { NodeType } from '../../../protocol/graph/node-type.ts'
import type { JournalAccess } from '../../../storage/embedded/journal/journal.ts'

/** Monotonic milliseconds on which all threads agree; performance.now() begins with each thread. */
export function threadsMs(): number {
  const [s, ns] = process.hrtime()
  return s * 1_000 + ns / 1e6
}

/** How a reader thread is started. */
export interface ReaderWorkerData {
  /** The store: its directory has the index, too. */
  readonly journal: JournalAccess
  /** URL of the module that exports `behaviours()`. */
  readonly table: string
  readonly reads: PlansIndex
  /** The cell of `GiveWay`. */
  readonly giveWay: SharedArrayBuffer
}

export interface ToReader {
  readonly id: number
  /** GraphPlan as JSON. */
  readonly plan: string
  /** What it takes is asked for, not its answer. */
  readonly explains: boolean
  /** When the answer is of no use any more, by `threadsMs`. */
  readonly endsAtMs: number
  /** With another one than before the index is opened again. */
  readonly generation: number
  /** It may be stopped for others (`GiveWay`). */
  readonly mayStop: boolean
  /** Long plans that the thread was heard to have had: what was sent before one comes back. */
  readonly round: number
}

/** What plans are run against; those after this message, where it is one. */
export interface PlansIndex {
  /** Of the schema that they are made on. */
  readonly nodeTypes: readonly NodeType[]
  /** Of the directory's indexes. */
  readonly number: number
}

export type PlanAnswer =
  | { readonly id: number; readonly json: string; readonly us: number }
  | { readonly id: number; readonly errors: readonly ErrorItem[]; readonly us: number }
  /** Something that was not expected: ours to find out. */
  | { readonly id: number; readonly failure: string; readonly us: number }
  /** It was stopped for others, or not begun, and has no answer yet. */
  | { readonly id: number; readonly gaveWay: true; readonly us: number }

/** How long a plan has worked (`GiveWay`). A heavy one is long, too. */
export interface PlanWork {
  readonly isHeavy: boolean
  readonly isLong: boolean
}

/** Answers, with how long the plan has worked; and once at its start that the thread is there. */
export type FromReader = (PlanAnswer & PlanWork) | 'ready'
