// The administration of identities over HTTP: people, clients, roles. Source: specification
// "Personal access tokens and IAM", CONTRACT 1.8.

import { uuidMaker } from '../../protocol/ids.ts'
import { Hashing } from '../access/hashing.ts'
import type { Operation } from '../http/operation.ts'
import { Changes } from './changes.ts'
import { ClientStation } from './clients.ts'
import type { IamOptions } from './parts.ts'
import { OwnPassword } from './own-password.ts'
import { PrincipalStation } from './principals.ts'
import { RoleStation } from './roles.ts'
import { IdentityWriter } from './writer.ts'

/** Operations of the station. Call it when the system maps are there. */
export function iamOperations(options: IamOptions): Operation[] {
  const { actorSystem, world, consistency, derived } = options
  const writer = new IdentityWriter({ actorSystem, clock: world.clock, consistency })
  const changes = new Changes({ actorSystem, derived })
  const hashing = new Hashing()
  const makeId = uuidMaker(world.random)
  const newId = (): string => makeId(world.clock.nowMs())
  const parts = { ...options, writer, changes, hashing, newId }
  return [
    ...new PrincipalStation(parts).operations(),
    ...new ClientStation(parts).operations(),
    ...new RoleStation(parts).operations(),
    ...new OwnPassword(parts).operations(),
  ]
}
