// A connection of `/graphql` as its operations see it. Source: CONTRACT 1.4.1.

import type { Identity } from '../../access/identity.ts'

/** What ends with its connection. */
export interface Standing {
  /** Of the message that made it. */
  readonly chars: number
  /** Changes may be told again. */
  wake(): void
  /** What its caller may see may be another. */
  accessChanged(): void
  end(): void
}

/** A connection as the library's hooks see it. */
export interface OperationsConnection {
  /** Who calls; null: it can't be told at the moment, or nobody has said. */
  readonly identity: Identity | null
  /** The client takes what it is sent. */
  readonly takes: boolean
  /** Who sent this; false: refused, and closed. */
  authenticate(authorization: unknown): Promise<boolean>
  /** Characters of the messages that made what stands. */
  readonly standingChars: number
  /** The client's id of an operation that the library has. */
  idOf(operation: string): string
  pong(): void
  stand(one: Standing): void
  leave(one: Standing): void
  /** A fault of ours is written down. */
  note(error: unknown): void
  /** And the connection is closed. */
  fault(error: unknown): void
}
