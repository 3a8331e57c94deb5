// What the owner of the configuration asks again, by its own maps, of members that lag behind or
// are wrong: with members of one store, and a forged or stale edge that skips every check.

import t from 'tap'
import type { Test } from 'tap'
import { LIMITS } from '../../config/limits.ts'
import type { Member } from '../../cluster/member.ts'
import type { RequestError } from '../../protocol/errors.ts'
import { SYSTEM_SHARD } from '../../protocol/ids.ts'
import type { Behaviour } from '../../protocol/behaviour.ts'
import type { Reply } from '../../protocol/message.ts'
import { makeMembers } from '../../cluster/testing/members.ts'
import type { OneMember } from '../../cluster/testing/members.ts'
import { registryBehaviour } from '../registry/entry.ts'
import { deleteRequest, putRequest } from '../system-actor.ts'
import type { Origin } from '../system-actor.ts'
import { accessBehaviours } from './access.ts'
import { BOOTSTRAP_CLIENT } from './client.ts'
import type { Client } from './client.ts'
import { Sessions } from './session.ts'
import type { Session } from './session.ts'

const START = { by: 'system', trace: 't' }
const ME = { by: BOOTSTRAP_CLIENT, trace: 't' }
const FIRST: Client = {
  properties: { name: 'first', redirectUris: [], grantTypes: ['client_credentials'] },
  roles: ['system:owner'],
  secrets: [],
  isSystem: false,
  createdAt: '',
  suspendedAt: null,
}

function sessionOf(more: Partial<Session> = {}): Session {
  return {
    identity: BOOTSTRAP_CLIENT,
    kind: 'client',
    clientId: BOOTSTRAP_CLIENT,
    grant: 'client_credentials',
    scope: null,
    accessTokenHash: '',
    issuedAt: '2026-01-01T00:00:00Z',
    expiresAt: '2099-01-01T00:00:00Z',
    ...more,
  }
}

function codeOf(reply: Reply): string {
  if (reply.outcome !== 'answered') return reply.error.code
  const result = reply.results[0]!
  return result.success ? 'ok' : result.errors[0]!.code
}

type Put = readonly [value: unknown, origin: Origin, more?: object]

/** Two members, the owner of `system` and another whose edge checks nothing; a first client. */
async function cluster() {
  const behaviours = [...accessBehaviours(), registryBehaviour] as Behaviour[]
  const members = makeMembers({ behaviours })
  const two = [await members.start('a'), await members.start('b')]
  const has = (member: Member): boolean => member.shards.get(SYSTEM_SHARD)?.state === 'serving'
  await members.until('somebody has it', () => two.some(({ member }) => has(member)))
  const owner = two.find(({ member }) => has(member))!.member
  const edge = two.find(({ member }) => !has(member))!.member
  const run = async (asked: Promise<Reply>): Promise<string> => {
    let code = ''
    void asked.then((reply) => (code = codeOf(reply)))
    await members.until('it is answered', () => code !== '')
    return code
  }
  const put = (type: string, key: string, ...[value, origin, more]: Put) =>
    run(edge.ask(putRequest(type, key, { value, ...more }, origin)))
  const drop = (type: string, key: string, origin: Origin) =>
    run(edge.ask(deleteRequest(type, key, {}, origin)))
  return { ...members, two, owner, edge, run, put, drop }
}

async function signedIn(t: Test, session = sessionOf()) {
  const world = await cluster()
  t.equal(await world.put('client', BOOTSTRAP_CLIENT, FIRST, START, { ifAbsent: true }), 'ok')
  t.equal(await world.put('session', 's', session, ME, { ifAbsent: true }), 'ok')
  const write = (key: string, origin: Origin = { ...ME, session: 's' }) =>
    world.put('registry', key, { value: 1, isSecret: false }, origin)
  return { ...world, write }
}

t.test('registry: as far as the session of its caller goes, by whatever edge', async (t) => {
  const { write, drop, owner } = await signedIn(t, sessionOf({ scope: 'registry/mine:write' }))
  t.equal(await write('mine/a'), 'ok')
  t.equal(await write('theirs/a'), 'FORBIDDEN')
  t.equal(await write('mine/b', ME), 'FORBIDDEN', 'without a session')
  t.equal(await write('mine/b', { ...ME, session: 'made up' }), 'FORBIDDEN')
  const other = { by: 'another', trace: 't', session: 's' }
  t.equal(await write('mine/b', other), 'FORBIDDEN', "another's session")
  t.equal(await drop('registry', 'theirs/a', { ...ME, session: 's' }), 'FORBIDDEN')
  t.equal(await drop('registry', 'mine/a', { ...ME, session: 's' }), 'ok')
  t.equal(owner.system.size('registry'), 0)
})

/** It is told of nothing new from now on, and goes by what it has; returns the way to end that. */
function lags(one: OneMember): () => void {
  one.onStatement = (statement) => {
    if (statement.startsWith('rows')) throw new Error('away')
    return null
  }
  // What is pushed doesn't fit to what it has.
  one.member.system.offset--
  return () => (one.onStatement = null)
}

t.test('an edge with a stale view lets through what the owner no longer does', async (t) => {
  const { write, run, owner, edge, two } = await signedIn(t)
  lags(two.find(({ member }) => member === edge)!)
  t.equal(await run(owner.ask(deleteRequest('session', 's', {}, ME))), 'ok')
  t.equal(owner.system.get('session', 's'), null)
  t.not(edge.system.get('session', 's'), null, 'it does not know')
  t.ok(edge.knowsConfiguration, 'and may still go by what it has')
  t.equal(await write('b'), 'FORBIDDEN')
  t.equal(owner.system.get('registry', 'b'), null)
})

t.test('an owner that has just begun decides by all that is committed', async (t) => {
  const { write, owner, two, clock } = await signedIn(t)
  const follows = lags(two.find(({ member }) => member === owner)!)
  const said: string[] = []
  const waits = write('a').then((code) => said.push(code))
  await clock.advance(LIMITS.cluster.systemFollowMs / 2)
  t.same(said, [], 'its maps are behind its log')
  follows()
  await waits
  t.same(said, ['ok'])
})

t.test('an end that the owner of the sessions could not decide is none', async (t) => {
  const { owner, edge, two, until, clock } = await signedIn(t)
  lags(two.find(({ member }) => member === owner)!)
  const sessions = new Sessions({
    actorSystem: edge,
    world: { clock, random: () => undefined },
    accessTokenMs: 1,
    tidies: () => false,
    onError: () => undefined,
    onPushedOut: () => undefined,
  })
  let said = ''
  sessions.end('s', ME).then(
    () => (said = 'ended'),
    (error: unknown) => (said = (error as RequestError).errors[0]!.code),
  )
  await until('it is answered', () => said !== '')
  t.equal(said, 'UNAVAILABLE')
  t.not(edge.system.get('session', 's'), null)
})

t.test('sessions: for a client that is there, in its own name, by its grants', async (t) => {
  const { put, drop } = await signedIn(t)
  const make = (more: Partial<Session>, origin: Origin = ME) =>
    put('session', 'forged', sessionOf(more), origin, { ifAbsent: true })
  t.equal(await make({}, { by: 'another', trace: 't' }), 'FORBIDDEN')
  t.equal(
    await make({ identity: 'nobody', clientId: 'nobody' }, { ...ME, by: 'nobody' }),
    'FORBIDDEN',
  )
  t.equal(await make({ clientId: 'another' }), 'FORBIDDEN')
  t.equal(await make({ kind: 'principal' }), 'FORBIDDEN')
  t.equal(await make({ grant: 'implicit' }), 'FORBIDDEN')
  t.equal(await put('session', 's', sessionOf({ scope: '*' }), ME), 'FORBIDDEN', 'it never changes')
  t.equal(await drop('session', 's', { by: 'another', trace: 't' }), 'FORBIDDEN')
  t.equal(await drop('session', 's', START), 'ok', 'as what has expired')
})

t.test('clients and roles: the first client, and its bootstrap secret', async (t) => {
  const { put, drop } = await signedIn(t)
  const of = { secretId: '1', hash: 'h', createdAt: '', expiresAt: null }
  const secret = { ...of, source: 'bootstrap' } as const
  const mine = { ...ME, session: 's' }
  t.equal(await put('client', 'mallory', FIRST, START, { ifAbsent: true }), 'FORBIDDEN')
  t.equal(await put('client', 'mallory', FIRST, mine), 'FORBIDDEN')
  const first = (more: Partial<Client>, options = {}) =>
    put('client', BOOTSTRAP_CLIENT, { ...FIRST, ...more }, START, options)
  t.equal(await first({}, { ifAbsent: true }), 'CONFLICT', 'another member was first')
  t.equal(await first({ secrets: [secret] }), 'ok')
  t.equal(await first({ secrets: [{ ...secret, source: 'issued' }] }), 'FORBIDDEN')
  t.equal(await first({ roles: [] }), 'FORBIDDEN')
  t.equal(await drop('client', BOOTSTRAP_CLIENT, START), 'FORBIDDEN')
  const role = { description: '', acl: { entries: [] } }
  for (const origin of [START, mine]) t.equal(await put('role', 'r', role, origin), 'FORBIDDEN')
})
