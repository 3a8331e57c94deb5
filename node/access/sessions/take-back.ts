// A session whose making failed behind its place on the list of its identity: the list gives the
// place back. One of a personal access token would count for a year, and nobody could see or delete
// it. Source: CONTRACT 1.8 "Personal access tokens", PROTOCOL 3.0 "Sessions".

import type { ActorSystem } from '../../../cluster/actor-system.ts'
import { RequestError } from '../../../protocol/errors.ts'
import type { Subject } from './grants.ts'
import { askActor } from './read.ts'
import { SESSION_LIST, sessionListId } from './session-list.ts'

export interface Failed {
  readonly subject: Subject
  readonly sessionId: string
  readonly trace: string
  readonly error: unknown
}

/** Throws what was wrong. Where the session may have been made all the same, its place stays. */
export async function takeBack(
  actorSystem: Pick<ActorSystem, 'ask'>,
  { subject, sessionId, trace, error }: Failed,
): Promise<never> {
  if (error instanceof RequestError && error.errors[0]!.code !== 'OUTCOME_UNKNOWN') {
    const to = { type: SESSION_LIST, id: sessionListId(subject) }
    const message = { type: 'remove', body: { sessionId } }
    const origin = { by: subject.identity, trace }
    await askActor(actorSystem, to, message, origin).catch(() => undefined)
  }
  throw error
}
