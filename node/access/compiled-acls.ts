// What sessions may do, compiled: those that may do the same share one set and what it remembers,
// whoever they are of. All of it is bounded together, and made anew where there is no room.
// Source: CONTRACT 1.14, ARCHITECTURE 3 "Bounded everything".

import { hash } from 'node:crypto'
import { LIMITS } from '../../config/limits.ts'
import { AnswerRoom } from '../../protocol/ace.ts'
import type { Ace, Acl } from '../../protocol/ace.ts'
import type { Attributes } from '../../protocol/attributes.ts'
import type { ConfigurationView } from '../../protocol/behaviour.ts'
import { aclOfSession, cutTo } from './permission.ts'
import type { Standing } from './sessions/standing.ts'

/** A longer name of a set is kept as its digest. */
const NAME_CHARS_MAX = 128
/** Of an entry, besides its text. */
const ENTRY_CHARS = 16

export class CompiledAcls {
  readonly #view: ConfigurationView
  readonly #onDropped: () => void
  readonly #acls = new Map<string, Acl>()
  #chars = 0
  #room = new AnswerRoom(LIMITS.access.aclAnswersMax)

  /** `onDropped`: whoever keeps sets from here lets go of them, or they stay in memory. */
  constructor(view: ConfigurationView, onDropped: () => void) {
    this.#view = view
    this.#onDropped = onDropped
  }

  get size(): number {
    return this.#acls.size
  }

  /** What a session with this scope may do, by the maps as they are. */
  of(scope: string | null, standing: Standing, attributes: Attributes): Acl {
    const all = nameOf(standing, attributes)
    if (scope === null) {
      return this.#at(all, () => aclOfSession(null, standing, this.#view, attributes))
    }
    const within = (): Acl => cutTo(this.of(null, standing, attributes), scope)
    return this.#at(JSON.stringify([all, scope]), within)
  }

  /** Roles or identities are others. */
  drop(): void {
    this.#acls.clear()
    this.#chars = 0
    this.#room = new AnswerRoom(LIMITS.access.aclAnswersMax)
    this.#onDropped()
  }

  #at(text: string, make: () => Acl): Acl {
    const name = text.length > NAME_CHARS_MAX ? hash('sha256', text, 'base64url') : text
    const known = this.#acls.get(name)
    if (known !== undefined && !this.#room.isFull) return known
    const { tokenCacheMax, aclScopesCharsMax } = LIMITS.access
    const isFull = this.#acls.size >= tokenCacheMax || this.#chars >= aclScopesCharsMax
    if (isFull || this.#room.isFull) this.drop()
    const acl = make().remembersIn(this.#room)
    this.#acls.set(name, acl)
    this.#chars += text.length + acl.aces.reduce((sum, ace) => sum + charsOf(ace), 0)
    return acl
  }
}

/** All that the permissions of a session go by, but its scope and the roles themselves. */
function nameOf({ client, principal }: Standing, attributes: Attributes): string {
  const { roles, properties } = client
  const cut = properties.scopes ?? null
  return principal === null
    ? JSON.stringify(['client', roles, attributes, cut])
    : JSON.stringify(['principal', principal.roles, principal.accessAttributes, cut])
}

function charsOf({ attribute, path, permission }: Ace): number {
  const own = (attribute?.length ?? 0) + permission.length + ENTRY_CHARS
  return path.reduce((sum, segment) => sum + segment.length, own)
}
