// Sessions on members of one store: what one member issues another takes, what one ends another
// refuses within a second, whoever dies on the way.

import t from 'tap'
import type { Test } from 'tap'
import { createHash, randomFillSync } from 'node:crypto'
import type { World } from '../../../cluster/clock.ts'
import { makeMembers } from '../../../cluster/testing/members.ts'
import type { OneMember } from '../../../cluster/testing/members.ts'
import { LIMITS } from '../../../config/limits.ts'
import { overrideLimits } from '../../../config/testing/override-limits.ts'
import { RequestError } from '../../../protocol/errors.ts'
import { SYSTEM_SHARD } from '../../../protocol/ids.ts'
import type { Behaviour } from '../../../protocol/behaviour.ts'
import { accessBehaviours, createAccess } from '../access.ts'
import type { Access } from '../access.ts'
import type { Client } from '../client.ts'
import type { Principal } from '../principal.ts'
import type { IssuedTokens } from './grants.ts'
import { putRequest, systemActor } from '../../system-actor.ts'

const ORIGIN = { trace: 't' }
const HOUR_MS = 3_600_000
const VERIFIER = 'v'.repeat(43)
const CHALLENGE = createHash('sha256').update(VERIFIER).digest('base64url')

interface Station extends OneMember {
  readonly access: Access
  readonly pushedOut: string[]
}

const CLIENT: Client = {
  properties: { name: 'app', redirectUris: [], grantTypes: ['client_credentials'] },
  ...{ roles: ['system:owner'], secrets: [], isSystem: false, createdAt: '', suspendedAt: null },
}
const PRINCIPAL: Principal = {
  properties: { name: 'Ada', email: 'ada@example.com' },
  ...{ roles: ['system:portal:full'], accessAttributes: {}, password: null, sessionEpoch: 0 },
  ...{ createdAt: '', suspendedAt: null },
}

/** Identities that tests may write as they like, beside the station's own types. */
function behaviours(): Behaviour[] {
  const open = (type: string): Behaviour =>
    systemActor<unknown>(
      type,
      () => null,
      () => null,
    )
  const own = accessBehaviours().filter(({ type }) => type !== 'client' && type !== 'principal')
  return [...own, open('client'), open('principal')]
}

/** Members with access, a client `app` and a principal `ada`. */
async function cluster(t: Test, names: readonly string[] = ['a', 'b']) {
  const members = makeMembers({ behaviours: behaviours() })
  const { clock, until } = members
  const world: World = { clock, random: (bytes) => void randomFillSync(bytes) }
  const all: Station[] = []
  const join = async (name: string): Promise<Station> => {
    const one = await members.start(name)
    const pushedOut: string[] = []
    const access = createAccess({
      ...{ actorSystem: one.member, world, dataDir: '/nowhere', bootstrapSecret: null },
      ...{ accessTokenMs: HOUR_MS, refreshTokenMs: 30 * 24 * HOUR_MS, baseUrl: 'http://localhost' },
      ...{ tell: () => undefined, isTerminal: false, storeSecret: 'store' },
      tidies: () => one.member.serves(SYSTEM_SHARD),
      onError: (error) => t.fail(String(error)),
      onPushedOut: (identity) => pushedOut.push(identity),
      ready: () => one.member.knowsConfiguration || one.member.learnConfiguration(),
    })
    t.teardown(() => access.stop())
    const station = Object.assign(one, { access, pushedOut })
    all.push(station)
    return station
  }
  for (const name of names) await join(name)
  await until('all is served', () => all.some(({ member }) => member.serves(SYSTEM_SHARD)))
  /** Moves the clock until the promise is settled. */
  const during = async <T>(promise: Promise<T>): Promise<T> => {
    let isSettled = false
    const settled = (): void => void (isSettled = true)
    promise.then(settled, settled)
    await until('it is settled', () => isSettled, 60_000)
    return promise
  }
  const put = async (type: string, key: string, value: unknown): Promise<void> => {
    const asked = putRequest(type, key, { value }, { by: 'test', trace: 't' })
    await during(all[0]!.member.ask(asked))
    const is = ({ member }: Station): boolean =>
      JSON.stringify(member.system.get(type, key)?.value) === JSON.stringify(value)
    await until('all members know it', () => all.every(is))
  }
  await put('client', 'app', CLIENT)
  await put('principal', 'ada', PRINCIPAL)
  const who = async ({ access }: Station, token: string): Promise<string | number> => {
    const known = await during(Promise.resolve(access.authenticate(`Bearer ${token}`)))
    return known instanceof RequestError ? known.status : known.id
  }
  const open = ({ access }: Station): Promise<IssuedTokens> => {
    const subject = { identity: 'app', kind: 'client', clientId: 'app', scope: null } as const
    return during(access.sessions.open({ ...subject, grant: 'client_credentials' }, ORIGIN))
  }
  const ada = { identity: 'ada', kind: 'principal', clientId: 'app', scope: null } as const
  const redirectUri = 'https://app.example/back'
  const authorize = async ({ access }: Station): Promise<string> => {
    const asked = { ...ada, redirectUri, challenge: CHALLENGE }
    return (await during(access.sessions.authorize(asked, ORIGIN))).code
  }
  const exchange = ({ access }: Station, code: string) => {
    const use = { code, clientId: 'app', redirectUri, verifier: VERIFIER, withRefresh: true }
    return during(access.sessions.exchange(use, ORIGIN))
  }
  const refresh = ({ access }: Station, refreshToken: string) =>
    during(access.sessions.refresh({ refreshToken, clientId: 'app', narrowed: null }, ORIGIN))
  const signIn = async (one: Station): Promise<IssuedTokens> => {
    const tokens = await exchange(one, await authorize(one))
    if ('refused' in tokens) throw new Error(tokens.reason)
    return tokens
  }
  const [a, b] = all as [Station, Station]
  const acts = { who, open, authorize, exchange, refresh, signIn, put, during, join }
  return { ...members, all, a, b, ada, ...acts }
}

t.test('what a member ends is refused by all within a second', async (t) => {
  const { clock, a, b, who, open, during } = await cluster(t)
  for (const [ends, other] of [
    [a, b],
    [b, a],
  ] as const) {
    const { accessToken, session } = await open(ends)
    for (const one of [a, b]) t.equal(await who(one, accessToken), 'app')
    const from = clock.monotonicMs()
    await during(ends.access.sessions.end(session.sessionId, ORIGIN))
    t.equal(await who(ends, accessToken), 401)
    while ((await who(other, accessToken)) !== 401) await clock.advance(10)
    t.ok(clock.monotonicMs() - from < 1_000, `${clock.monotonicMs() - from} ms`)
  }
})

t.test('an edge that dies between the end and its revocation: all know it', async (t) => {
  const { clock, a, b, until, who, open, join } = await cluster(t, ['a', 'b'])
  const edge = await join('edge')
  const { accessToken, session } = await open(a)
  for (const one of [a, b]) t.equal(await who(one, accessToken), 'app')
  // Its question reaches the session's owner; it dies before it tells anybody.
  const ask = edge.member.ask.bind(edge.member)
  let isDead = false
  edge.member.ask = async (request) => {
    if (request.type === 'revocation') {
      isDead = true
      edge.kill()
      return new Promise(() => undefined)
    }
    return ask(request)
  }
  void edge.access.sessions.end(session.sessionId, ORIGIN).catch(() => undefined)
  await until('it dies', () => isDead)
  const from = clock.monotonicMs()
  const refused = async (): Promise<boolean> =>
    (await who(a, accessToken)) === 401 && (await who(b, accessToken)) === 401
  while (!(await refused())) {
    await clock.advance(10)
    if (clock.monotonicMs() - from > 5_000) break
  }
  t.ok(clock.monotonicMs() - from < 1_000, `${clock.monotonicMs() - from} ms`)
})

t.test('RFC 6749 4.1.2: a code is used once, over whatever members', async (t) => {
  const { a, b, who, authorize, exchange, refresh } = await cluster(t)
  const code = await authorize(a)
  t.match(await exchange(b, `${code.slice(0, -2)}AA`), { refused: 'invalid_grant' })
  const tokens = await exchange(b, code)
  if ('refused' in tokens) throw new Error(tokens.reason)
  t.equal(tokens.expiresIn, 3_600)
  t.match(tokens.session, { identity: 'ada', kind: 'principal', clientId: 'app' })
  for (const one of [a, b]) t.equal(await who(one, tokens.accessToken), 'ada')
  t.match(await exchange(a, code), { refused: 'invalid_grant', reason: /second time/ })
  t.equal(await who(a, tokens.accessToken), 401, 'and its session has ended')
  t.match(await refresh(a, tokens.refreshToken!), { refused: 'invalid_grant' })
})

t.test(
  'RFC 9700 4.14.2: refresh tokens rotate; one that was rotated ends the session',
  async (t) => {
    const { a, b, who, signIn, refresh, clock } = await cluster(t)
    const first = await signIn(a)
    const second = await refresh(b, first.refreshToken!)
    if ('refused' in second) throw new Error(second.reason)
    t.not(second.refreshToken, first.refreshToken)
    t.equal(second.session.sessionId, first.session.sessionId)
    t.equal(await who(a, second.accessToken), 'ada')
    t.equal(await who(b, first.accessToken), 'ada', 'for requests that are under way')
    await clock.advance(LIMITS.access.formerTokenMs)
    t.equal(await who(b, first.accessToken), 401)
    // Who knows the session's id, and makes up the rest, ends nothing.
    const made = Buffer.from(second.refreshToken!, 'base64url').fill(7, 16)
    t.match(await refresh(a, made.toString('base64url')), { refused: 'invalid_grant' })
    t.equal(await who(a, second.accessToken), 'ada')
    t.match(await refresh(a, first.refreshToken!), { refused: 'invalid_grant', reason: /before/ })
    t.equal(await who(a, second.accessToken), 401)
    await clock.advance(1_000)
    t.equal(await who(b, second.accessToken), 401)
    t.match(await refresh(b, second.refreshToken!), { refused: 'invalid_grant' })
  },
)

t.test('a scope may be less at a refresh, and is never more', async (t) => {
  const { a, signIn, during } = await cluster(t)
  const { refreshToken } = await signIn(a)
  const seen: (string | null)[] = []
  const ask = (token: string, scope: string | null) =>
    during(
      a.access.sessions.refresh(
        {
          ...{ refreshToken: token, clientId: 'app' },
          narrowed: (granted) => {
            seen.push(granted)
            return scope === null ? { ok: false, reason: 'wider' } : { ok: true, scope }
          },
        },
        ORIGIN,
      ),
    )
  t.match(await ask(refreshToken!, null), { refused: 'invalid_scope', reason: 'wider' })
  const less = await ask(refreshToken!, 'graph:query')
  t.match(less, { scope: 'graph:query' })
  if ('refused' in less) throw new Error(less.reason)
  const answer = await during(Promise.resolve(a.access.authenticate(`Bearer ${less.accessToken}`)))
  t.ok('acl' in answer && answer.acl.covers('graph/order', 'query'))
  t.notOk('acl' in answer && answer.acl.covers('registry/x', 'read'))
  t.match(await ask(less.refreshToken!, 'registry:read'), { scope: 'registry:read' })
  t.same(seen, [null, null, null], 'of what the session was granted')
})

t.test('an epoch that is raised ends all sessions and tokens, and nothing revives', async (t) => {
  const scene = await cluster(t)
  const { a, b, who, open, signIn, refresh, put, authorize, exchange, during, ada } = scene
  const { clock } = scene
  const mine = await signIn(a)
  const code = await authorize(a)
  const wish = { ...ada, description: 'x', expiresAtMs: clock.nowMs() + 24 * HOUR_MS }
  const pat = await during(a.access.sessions.openPat(wish, ORIGIN))
  const ofClient = await open(a)
  for (const one of [a, b]) {
    t.equal(await who(one, mine.accessToken), 'ada')
    t.equal(await who(one, pat.accessToken), 'ada')
  }
  await put('principal', 'ada', { ...PRINCIPAL, suspendedAt: 'now', sessionEpoch: 1 })
  for (const one of [a, b]) t.equal(await who(one, mine.accessToken), 401)
  t.match(await refresh(b, mine.refreshToken!), { refused: 'invalid_grant' })
  await put('principal', 'ada', { ...PRINCIPAL, sessionEpoch: 1 })
  for (const one of [a, b]) {
    t.equal(await who(one, mine.accessToken), 401, 'nothing revives')
    t.equal(await who(one, pat.accessToken), 401)
    t.equal(await who(one, ofClient.accessToken), 'app', 'others stand')
  }
  t.match(await exchange(b, code), { refused: 'invalid_grant' })
  const again = await signIn(b)
  t.equal(await who(a, again.accessToken), 'ada')
  await put('client', 'app', { ...CLIENT, sessionEpoch: 1 })
  t.equal(await who(a, again.accessToken), 401, 'with their client')
  t.equal(await who(b, ofClient.accessToken), 401)
})

t.test('what is kept of a session opens nothing', async (t) => {
  const { a, signIn, during, authorize } = await cluster(t)
  const { session, accessToken, refreshToken } = await signIn(a)
  const code = await authorize(a)
  const id = Buffer.from(code, 'base64url').subarray(0, 16).toString('hex')
  const uuid = id.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
  for (const sessionId of [session.sessionId, uuid]) {
    const asked = { type: 'auth-session', id: sessionId, messages: [{ type: 'read', body: {} }] }
    const of = { idempotencyKey: null, bodyHash: '', by: 'x', preview: false, trace: '' }
    const reply = await during(a.member.ask({ ...asked, ...of, budgetMs: 1_000 }))
    const text = JSON.stringify(reply)
    t.match(text, /"hash":"/)
    for (const secret of [accessToken, refreshToken!, code]) t.notMatch(text, secret)
  }
})

t.test('so many sessions of an identity: its oldest goes, nobody else is touched', async (t) => {
  t.teardown(overrideLimits({ 'access.sessionsOfIdentityMax': 3, 'access.patsOfIdentityMax': 2 }))
  const { a, b, who, open, signIn, during, ada, clock } = await cluster(t)
  const mine = await signIn(a)
  const all: IssuedTokens[] = []
  for (let i = 0; i < 5; i++) all.push(await open(i % 2 === 0 ? a : b))
  t.same([...a.pushedOut, ...b.pushedOut], ['app', 'app'])
  await clock.advance(LIMITS.access.tokenLeaseMs)
  const seen = []
  for (const { accessToken } of all) seen.push(await who(b, accessToken))
  t.same(seen, [401, 401, 'app', 'app', 'app'])
  t.equal(await who(a, mine.accessToken), 'ada')
  const owner = { kind: 'client', identity: 'app' } as const
  const listed = await during(a.access.sessions.listOf(owner, false, ORIGIN))
  t.same(
    listed,
    all
      .slice(2)
      .map(({ session }) => session.sessionId)
      .toReversed(),
  )
  const wish = { ...ada, description: 'x', expiresAtMs: clock.nowMs() + HOUR_MS }
  const pat = () => during(a.access.sessions.openPat(wish, ORIGIN))
  await pat()
  await pat()
  await t.rejects(pat(), { message: /2 personal access tokens already/ })
  clock.stepWall(HOUR_MS)
  t.ok(await pat(), 'those that have expired make room')
})

t.test('expired ones leave the list, and their actors are told, at the next sign-in', async (t) => {
  const { a, b, open, signIn, during, clock, until } = await cluster(t)
  const old = await open(a)
  const kept = await signIn(a)
  clock.stepWall(HOUR_MS + LIMITS.access.sessionKeptMs)
  await open(b)
  const state = async (sessionId: string): Promise<string> => {
    const asked = { type: 'auth-session', id: sessionId, messages: [{ type: 'read', body: {} }] }
    const of = { idempotencyKey: null, bodyHash: '', by: 'x', preview: false, trace: '' }
    const reply = await during(b.member.ask({ ...asked, ...of, budgetMs: 1_000 }))
    if (reply.outcome !== 'answered') return reply.error.code
    const result = reply.results[0]!
    return result.success ? 'there' : result.errors[0]!.code
  }
  let is = ''
  void (async () => {
    while (is !== 'NOT_FOUND') is = await state(old.session.sessionId)
  })()
  await until('it is gone', () => is === 'NOT_FOUND')
  t.equal(await state(kept.session.sessionId), 'there', 'another identity')
})

t.test('clocks that were a year ahead for a moment keep no session off its list', async (t) => {
  const { a, b, open, during, clock } = await cluster(t)
  clock.stepWall(365 * 24 * HOUR_MS)
  await open(a)
  clock.stepWall(-365 * 24 * HOUR_MS)
  const since: string[] = []
  for (const at of [a, b, a]) since.unshift((await open(at)).session.sessionId)
  const owner = { kind: 'client', identity: 'app' } as const
  const listed = await during(b.access.sessions.listOf(owner, false, ORIGIN))
  t.same(listed.slice(0, 3), since)
})

t.test('a member that starts has heard of no session', async (t) => {
  const { a, b, all, open, who, join } = await cluster(t)
  const tokens: IssuedTokens[] = []
  for (let i = 0; i < 50; i++) tokens.push(await open(a))
  for (const { session } of tokens.slice(0, 5)) {
    void b.access.sessions.end(session.sessionId, ORIGIN)
  }
  const late = await join('late')
  for (const { member } of all) t.equal(member.system.size('auth-session'), 0)
  t.equal(await who(late, tokens[10]!.accessToken), 'app')
  t.equal(await who(late, tokens[0]!.accessToken), 401)
})
