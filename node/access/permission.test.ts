// What the owner of the configuration asks again, by its own maps, of members that lag behind or
// are wrong: with members of one store, and a forged or stale edge that skips every check.

import t from 'tap'
import type { Test } from 'tap'
import { LIMITS } from '../../config/limits.ts'
import type { Member } from '../../cluster/member.ts'
import type { RequestError } from '../../protocol/errors.ts'
import { SYSTEM_SHARD } from '../../protocol/ids.ts'
import type { Reply } from '../../protocol/message.ts'
import { makeMembers } from '../../cluster/testing/members.ts'
import type { OneMember } from '../../cluster/testing/members.ts'
import { behaviours } from '../behaviours.ts'
import { deleteRequest, putRequest } from '../system-actor.ts'
import type { Origin } from '../system-actor.ts'
import { BOOTSTRAP_CLIENT } from './client.ts'
import type { Client } from './client.ts'
import type { CallerSession } from '../../protocol/message.ts'
import { Revocations } from './sessions/revocation.ts'
import { OLD_SESSION } from './sessions/tidying.ts'
import { callerSession } from './testing/sessions.ts'

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

function codeOf(reply: Reply): string {
  if (reply.outcome !== 'answered') return reply.error.code
  const result = reply.results[0]!
  return result.success ? 'ok' : result.errors[0]!.code
}

type Put = readonly [value: unknown, origin: Origin, more?: object]

/** Two members, the owner of `system` and another whose edge checks nothing; a first client. */
async function cluster() {
  const members = makeMembers({ behaviours: behaviours() })
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

async function signedIn(t: Test, more: Partial<CallerSession> = {}) {
  const world = await cluster()
  t.equal(await world.put('client', BOOTSTRAP_CLIENT, FIRST, START, { ifAbsent: true }), 'ok')
  const session = callerSession(world.owner.system, BOOTSTRAP_CLIENT, more)
  const mine = { ...ME, session }
  const write = (key: string, origin: Origin = mine) =>
    world.put('registry', key, { value: 1, isSecret: false }, origin)
  return { ...world, session, mine, write }
}

t.test('registry: as far as the session of its caller goes, by whatever edge', async (t) => {
  const { write, drop, owner, mine, session } = await signedIn(t, { scope: 'registry/mine:write' })
  t.equal(await write('mine/a'), 'ok')
  t.equal(await write('theirs/a'), 'FORBIDDEN')
  t.equal(await write('mine/b', ME), 'FORBIDDEN', 'without a session')
  t.equal(await write('mine/b', { by: 'another', trace: 't', session }), 'FORBIDDEN', "another's")
  const principal = { ...session, kind: 'principal' as const }
  t.equal(await write('mine/b', { ...mine, session: principal }), 'FORBIDDEN', 'nobody of that id')
  const eras = ['1 ', '1 '] as const
  t.equal(await write('mine/b', { ...mine, session: { ...session, eras } }), 'FORBIDDEN')
  t.equal(await write('mine/b', { ...mine, session: { ...session, clientId: 'x' } }), 'FORBIDDEN')
  t.equal(await drop('registry', 'theirs/a', mine), 'FORBIDDEN')
  t.equal(await drop('registry', 'mine/a', mine), 'ok')
  t.equal(owner.system.size('registry'), 0)
})

t.test('a custom field: as far as its caller sees its source, by whatever edge', async (t) => {
  const scope = 'registry:write graph/order:query graph/order:field:dynamic:season'
  const { put, drop, mine, owner } = await signedIn(t, { scope })
  const key = 'graph/order/fields/season'
  const define = (source: string, more = {}): Promise<string> => {
    const value = { type: 'text', source }
    return put('registry', key, { value, isSecret: false, ...more }, mine)
  }
  t.equal(await define(`dynamic->'season'`), 'ok')
  t.equal(await define('orderNumber'), 'FORBIDDEN_FIELD')
  t.equal(await define('', { value: null, isSecret: true, sealed: 'x' }), 'FORBIDDEN_FIELD')
  const kept = owner.system.get<{ value: { source: string } }>('registry', key)
  t.equal(kept?.value.value.source, `dynamic->'season'`, 'the one before stands')
  const edge = { field: 'season', relatedSet: 'orders', cardinality: 'many' }
  const link = { value: edge, isSecret: false }
  t.equal(await put('registry', 'graph/order/edges/x', link, mine), 'FORBIDDEN_FIELD')
  t.equal(await drop('registry', key, mine), 'ok', 'whoever deletes one gives nothing')
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
  t.equal(await run(owner.ask(putRequest('revocation', 's', { value: { at: '' } }, START))), 'ok')
  t.not(owner.system.get('revocation', 's'), null)
  t.equal(edge.system.get('revocation', 's'), null, 'it does not know')
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

t.test('a revocation that the owner could not decide is none', async (t) => {
  const { owner, edge, two, until, clock } = await signedIn(t)
  lags(two.find(({ member }) => member === owner)!)
  const revocations = new Revocations(edge, clock)
  t.teardown(() => revocations.stop())
  let said = ''
  revocations.tell('s', 't').then(
    () => (said = 'told'),
    (error: unknown) => (said = (error as RequestError).errors[0]!.code),
  )
  await until('it is answered', () => said !== '')
  t.equal(said, 'UNAVAILABLE')
})

t.test('sessions: revocations stay for their time, and none is made here', async (t) => {
  const { put, drop, mine } = await signedIn(t)
  t.equal(await put('revocation', 'r', { at: '' }, ME), 'ok', 'whoever ends one')
  t.equal(await put('revocation', 'r', { at: '' }, ME, { ifAbsent: true }), 'CONFLICT')
  for (const origin of [ME, mine]) t.equal(await drop('revocation', 'r', origin), 'FORBIDDEN')
  t.equal(await drop('revocation', 'r', START), 'ok', 'when nobody goes by its session any more')
  for (const origin of [START, ME, mine]) {
    t.equal(await put(OLD_SESSION, 's', {}, origin), 'FORBIDDEN')
  }
})

t.test('clients and roles: the first client, and its bootstrap secret', async (t) => {
  const { put, drop, mine } = await signedIn(t)
  const of = { secretId: '1', hash: 'h', createdAt: '', expiresAt: null }
  const secret = { ...of, source: 'bootstrap' } as const
  t.equal(await put('client', 'mallory', FIRST, START, { ifAbsent: true }), 'FORBIDDEN')
  const first = (more: Partial<Client>, options = {}) =>
    put('client', BOOTSTRAP_CLIENT, { ...FIRST, ...more }, START, options)
  t.equal(await first({}, { ifAbsent: true }), 'CONFLICT', 'another member was first')
  t.equal(await first({ secrets: [secret] }), 'ok')
  t.equal(await first({ secrets: [{ ...secret, source: 'issued' }] }), 'FORBIDDEN')
  t.equal(await first({ roles: [] }), 'FORBIDDEN')
  t.equal(await drop('client', BOOTSTRAP_CLIENT, START), 'FORBIDDEN')
  const role = { description: '', acl: { entries: [] } }
  t.equal(await put('role', 'a:b', role, START), 'FORBIDDEN')
  t.equal(await put('role', 'a:b', role, mine), 'ok', 'an owner may')
})
