// What a behaviour is told of its turn: whose it is, when, and for which message. Source:
// ARCHITECTURE 2.

import type { Turn } from '../../../protocol/behaviour.ts'
import { turnIds } from '../../../protocol/checkpoint.ts'
import type { Activation } from './activation.ts'
import { messageIdOf } from './work.ts'
import type { Work } from './work.ts'

/** The turn of the message at which the work stands, at `work.nowMs`. */
export function turnOf(activation: Activation, work: Work, hooks: Turn['hooks']): Turn {
  const { envelope, nowMs, preview } = work
  const messageId = messageIdOf(work)
  const { version } = preview ?? activation
  return {
    actorId: activation.id,
    key: activation.key,
    nowMs,
    by: envelope.by,
    ...(envelope.session !== undefined && { session: envelope.session }),
    messageId,
    version,
    preview: preview !== null,
    newId: turnIds(messageId, version, nowMs),
    hooks,
  }
}
