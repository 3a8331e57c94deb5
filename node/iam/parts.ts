// What the administration of identities stands on.

import type { ActorSystem } from '../../cluster/actor-system.ts'
import type { World } from '../../cluster/clock.ts'
import type { Position } from '../../protocol/ids.ts'
import type { DerivedReader } from '../../storage/journal.ts'
import type { LastActivity } from '../access/activity/last-activity.ts'
import type { Hashing } from '../access/hashing.ts'
import type { Passwords } from '../access/password.ts'
import type { Secrets } from '../access/secret.ts'
import type { Changes } from './changes.ts'
import type { IdentityWriter } from './writer.ts'

export interface IamOptions {
  readonly actorSystem: ActorSystem
  readonly world: World
  readonly passwords: Passwords
  readonly secrets: Pick<Secrets, 'make' | 'hashMade'>
  /** Makes the X-Consistency token (node/graph/consistency.ts). */
  readonly consistency: { encode(positions: readonly Position[]): string }
  /** The journal as it is read beside everything else: identities' own past. */
  readonly derived: Pick<DerivedReader, 'entries'>
  /** When identities were active last, and secrets of clients right last. */
  readonly lastActivity: Pick<LastActivity, 'of'>
}

/** What the stations of this room share. */
export interface IamParts extends Omit<IamOptions, 'consistency' | 'derived'> {
  readonly writer: IdentityWriter
  readonly changes: Changes
  readonly hashing: Hashing
  /** A UUIDv7. */
  readonly newId: () => string
}
