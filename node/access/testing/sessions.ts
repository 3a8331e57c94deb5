// Sessions for tests of the stations: one of a client that is there, opened as a sign-in does it.

import { OWNER_ACL } from '../../../protocol/ace.ts'
import type { ConfigurationView } from '../../../protocol/behaviour.ts'
import type { CallerSession } from '../../../protocol/message.ts'
import type { Identity } from '../identity.ts'
import type { Subject } from '../sessions/grants.ts'
import type { LiveSession } from '../sessions/session-state.ts'
import { erasOf, standingOf } from '../sessions/standing.ts'

/** A session of a client's own, as it is right after it was opened. */
export function openSession(
  view: ConfigurationView,
  clientId: string,
  of: { readonly hash: string; readonly untilMs: number; readonly scope?: string | null },
): LiveSession {
  const { hash, untilMs, scope = null } = of
  const subject: Subject = { identity: clientId, kind: 'client', clientId, scope }
  const standing = standingOf(subject, view)
  return {
    ...{ ...subject, grant: 'client_credentials', description: null },
    eras: standing === null ? ['', ''] : erasOf(standing),
    ...{ status: 'open', createdAtMs: 0, usedAtMs: 0 },
    access: { hash, untilMs, scope },
    ...{ code: null, former: null, refresh: null },
  }
}

/** What goes along with a change of configuration by a client. */
export function callerSession(
  view: ConfigurationView,
  clientId: string,
  more: Partial<CallerSession> = {},
): CallerSession {
  const { eras, scope } = openSession(view, clientId, { hash: '', untilMs: 0 })
  return { id: 's', kind: 'client', clientId, scope, eras, ...more }
}

/** Who calls, in tests of stations that only look at what it may. */
export const SOMEBODY = {
  ...{ id: 'somebody', kind: 'client', sessionId: 's', grant: 'client_credentials' },
  session: { id: 's', kind: 'client', clientId: 'somebody', scope: null, eras: ['', ''] },
  expiresAtMs: Number.MAX_SAFE_INTEGER,
  acl: OWNER_ACL,
} as const satisfies Identity
