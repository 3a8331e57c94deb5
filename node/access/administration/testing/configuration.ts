// The configuration in memory, and changes of identities and roles decided over it as the owner of
// the system shard decides them: without a shard, so that thousands of runs take seconds.

import type { Behaviour, ConfigurationView, SystemState } from '../../../../protocol/behaviour.ts'
import type { CallerSession } from '../../../../protocol/message.ts'
import type { Client } from '../../client.ts'
import { foldedEmail } from '../../principal.ts'
import type { Principal } from '../../principal.ts'
import { erasOf, standingOf } from '../../sessions/standing.ts'
import { clientBehaviour } from '../client-changes.ts'
import { principalBehaviour } from '../principal-changes.ts'
import { roleBehaviour } from '../role-changes.ts'
import { AT } from './scene.ts'

export interface By {
  readonly id: string
  readonly kind: 'client' | 'principal'
  readonly clientId: string
  /** null: all that it has. */
  readonly scope: string | null
}

const BEHAVIOURS = { client: clientBehaviour, principal: principalBehaviour, role: roleBehaviour }
type Type = keyof typeof BEHAVIOURS

export class Configuration implements ConfigurationView {
  readonly #values = new Map<string, Map<string, unknown>>()
  readonly #deleted = new Set<string>()

  get<T>(type: string, key: string): { readonly value: T } | null {
    const value = this.#values.get(type)?.get(key) as T | undefined
    return value === undefined ? null : { value }
  }

  find<T>(type: string, name: string): { readonly key: string; readonly value: T } | null {
    for (const one of this.all<Principal>(type)) {
      if (foldedEmail(one.value.properties.email) === name) return one as never
    }
    return null
  }

  *all<T>(type: string): Iterable<{ readonly key: string; readonly value: T }> {
    for (const [key, value] of this.#values.get(type) ?? []) yield { key, value: value as T }
  }

  size(type: string): number {
    return this.#values.get(type)?.size ?? 0
  }

  /** Without asking anybody; null deletes. */
  set(type: Type, key: string, value: unknown): void {
    const values = this.#values.get(type) ?? new Map<string, unknown>()
    this.#values.set(type, values)
    if (value === null) {
      values.delete(key)
      this.#deleted.add(`${type}/${key}`)
    } else values.set(key, value)
  }

  /** Decides a change, and keeps it where it may be. Returns `ok`, or the code of the refusal. */
  change(type: Type, key: string, value: unknown, by: By): string {
    const behaviour = BEHAVIOURS[type] as Behaviour<SystemState>
    const message = value === null ? { type: 'delete', body: {} } : { type: 'put', body: { value } }
    const wrong = behaviour.check(message)
    if (wrong !== null) return wrong[0]!.code
    const there = this.get<unknown>(type, key)
    const isDeleted = this.#deleted.has(`${type}/${key}`)
    const state = there === null ? null : { key, value: there.value, deleted: false }
    const session = this.#sessionOf(by)
    const turn = { key, by: by.id, version: state !== null || isDeleted ? 1 : 0, nowMs: 0, session }
    const deciding = behaviour.decide(state, message, turn as never)
    let step = deciding.next()
    while (!step.done) step = deciding.next(this)
    if (!step.value.ok) return step.value.errors[0]!.code
    this.set(type, key, value)
    return 'ok'
  }

  #sessionOf({ id, kind, clientId, scope }: By): CallerSession {
    const standing = standingOf({ kind, identity: id, clientId }, this)
    const eras = standing === null ? (['', ''] as const) : erasOf(standing)
    return { id: `of ${id}`, kind, clientId, scope, eras }
  }
}

/** A role's value, of entries as texts. */
export function roleOf(texts: readonly string[]): object {
  const split = texts.map((text) => {
    const colon = text.lastIndexOf(':')
    return { resource: text.slice(0, colon), permission: text.slice(colon + 1) }
  })
  return { description: '', acl: { entries: split } }
}

/** A secret that does not expire. */
export function secretOf(hash: string): Client['secrets'][number] {
  return { secretId: hash, hash, source: 'issued', createdAt: AT, expiresAt: null }
}
