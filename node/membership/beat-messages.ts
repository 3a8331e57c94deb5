// What the main thread and the thread of the beat say to each other. Monotonic times are those of
// `sharedMs`, which is the same clock in every thread of a process.

import type { EngineTls } from '../../config/settings.ts'
import type { MemberIncarnation, Sent } from '../../cluster/membership/beat.ts'
import type { Credentials } from '../../storage/cassandra/session/client-options.ts'
import type { SerialLevel } from '../../storage/cassandra/session/session.ts'

/** Where the control rows are. */
export interface ControlAddress {
  readonly contactPoints: readonly string[]
  readonly datacenter: string
  readonly keyspace: string
  /** As the store says: statements at another level would not see each other. */
  readonly serial: SerialLevel
  /** null: Cassandra asks for none. */
  readonly credentials: Credentials | null
  /** null: it is spoken to in the clear. */
  readonly tls?: EngineTls | null
}

/** How the thread is started. */
export interface BeatWorkerData {
  readonly control: ControlAddress
  /** One 32-bit counter that the main loop moves. */
  readonly ticks: SharedArrayBuffer
}

/** `round` counts the incarnations: what is said of an earlier one is not heard. */
export type ToBeatWorker =
  | { readonly kind: 'start'; readonly round: number; readonly own: MemberIncarnation }
  | { readonly kind: 'stop' }
  | { readonly kind: 'close' }

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

export type FromBeatWorker =
  | { readonly kind: 'applied'; readonly round: number; readonly sent: Sent }
  | { readonly kind: 'failed'; readonly round: number }
  | { readonly kind: 'lost'; readonly round: number; readonly why: string }
  | {
      readonly kind: 'log'
      readonly level: LogLevel
      readonly fields: object
      readonly text: string
    }

/** Monotonic milliseconds, from the same beginning in all threads. */
export function sharedMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}
