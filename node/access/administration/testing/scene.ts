// One member with identities on stores in memory, and changes of them by whoever calls: no edge
// checks anything here, so what is refused was refused by the owner of the configuration.

import { makeMembers } from '../../../../cluster/testing/members.ts'
import { SYSTEM_SHARD } from '../../../../protocol/ids.ts'
import type { Reply } from '../../../../protocol/message.ts'
import { deleteRequest, putRequest } from '../../../system-actor.ts'
import type { Origin } from '../../../system-actor.ts'
import { accessBehaviours } from '../../access.ts'
import { BOOTSTRAP_CLIENT } from '../../client.ts'
import type { Client } from '../../client.ts'
import type { Principal } from '../../principal.ts'
import type { CallerSession } from '../../../../protocol/message.ts'
import { erasOf, standingOf } from '../../sessions/standing.ts'

export const AT = '2026-01-01T00:00:00.000Z'

const SECRET = { secretId: '1', hash: 'h', createdAt: AT, expiresAt: null } as const

export function clientOf(more: Partial<Client> = {}): Client {
  return {
    properties: { name: 'a client', redirectUris: [], grantTypes: ['client_credentials'] },
    roles: [],
    secrets: [{ ...SECRET, source: 'bootstrap' }],
    isSystem: false,
    createdAt: AT,
    suspendedAt: null,
    ...more,
  }
}

export function principalOf(email: string, more: Partial<Principal> = {}): Principal {
  return {
    properties: { name: 'Ada', email },
    roles: [],
    accessAttributes: {},
    password: { hash: 'h', changedAt: AT, expiresAt: null },
    sessionEpoch: 0,
    createdAt: AT,
    suspendedAt: null,
    ...more,
  }
}

export const OWNER: Client = clientOf({ roles: ['system:owner'] })

type Writing = Promise<string>

export interface Scene {
  /** The answer's code, or `ok`. Two that are asked for at once are decided one after the other. */
  put(type: string, key: string, value: unknown, by: string): Writing
  drop(type: string, key: string, by: string): Writing
  /** Runs until these are answered. */
  all(...writings: readonly Writing[]): Promise<string[]>
  get<T>(type: string, key: string): T | null
  /** Signs a client, or a principal at one, in; `by` is its name from then on. */
  signIn(identity: string, session?: Partial<CallerSession>): void
}

/** With the client `bootstrap`, an owner, signed in. */
export async function identities(): Promise<Scene> {
  const members = makeMembers({ behaviours: accessBehaviours() })
  const { member } = await members.start('a')
  await members.until('it serves', () => {
    return member.shards.get(SYSTEM_SHARD)?.state === 'serving'
  })
  const run = async (asked: Promise<Reply>): Promise<string> => codeOf(await asked)
  const sessions = new Map<string, CallerSession>()
  const originOf = (by: string): Origin => {
    const session = sessions.get(by)
    return { by, trace: 't', ...(session && { session }) }
  }
  const all: Scene['all'] = async (...writings) => {
    let codes: string[] | null = null
    void Promise.all(writings).then((answers) => (codes = answers))
    await members.until('all are answered', () => codes !== null)
    return codes!
  }
  const scene: Scene = {
    put: (type, key, value, by) => run(member.ask(putRequest(type, key, { value }, originOf(by)))),
    drop: (type, key, by) => run(member.ask(deleteRequest(type, key, {}, originOf(by)))),
    all,
    get: <T>(type: string, key: string) => member.system.get<T>(type, key)?.value ?? null,
    signIn(identity, { kind = 'client', clientId = identity, scope = null } = {}) {
      const standing = standingOf({ kind, identity, clientId }, member.system)!
      const eras = erasOf(standing)
      sessions.set(identity, { id: `of ${identity}`, kind, clientId, scope, eras })
    },
  }
  await all(scene.put('client', BOOTSTRAP_CLIENT, OWNER, 'system'))
  scene.signIn(BOOTSTRAP_CLIENT)
  return scene
}

function codeOf(reply: Reply): string {
  if (reply.outcome !== 'answered') return reply.error.code
  const result = reply.results[0]!
  return result.success ? 'ok' : result.errors[0]!.code
}
