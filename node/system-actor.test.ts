// The one behaviour of all small system types: put, change, delete, versions as ETags, conditions.

import t from 'tap'
import { etagOf, deleteRequest, putRequest, readCondition, systemActor } from './system-actor.ts'
import { ActorSystemTwin } from './testing/actor-system-twin.ts'
import type { Reply } from '../protocol/message.ts'
import { SOMEBODY } from './access/testing/sessions.ts'

const origin = { by: 'somebody', trace: 'r1' }
const thing = systemActor<{ n: number }>(
  'thing',
  (value) =>
    typeof (value as { n?: unknown } | undefined)?.n === 'number'
      ? null
      : { member: 'n', message: 'must be a number' },
  ({ turn, before }) =>
    turn.key === 'closed' || before?.n === 99 ? `${turn.by} may not, ${turn.session?.id}` : null,
)

/** Code of the first failure, or null. */
function failure(reply: Reply): string | null {
  if (reply.outcome !== 'answered') return reply.error.code
  const result = reply.results[0]!
  return result.success ? null : result.errors[0]!.code
}

t.test('who may not is refused, whatever is there', async (t) => {
  const system = new ActorSystemTwin([thing])
  const as = { ...origin, session: SOMEBODY.session }
  const put = (key: string, n: number, more = {}): Promise<Reply> =>
    system.ask(putRequest('thing', key, { value: { n }, ...more }, as))
  const closed = await put('closed', 1, { ifAbsent: true })
  t.match(closed, { results: [{ errors: [{ message: 'somebody may not, s' }] }] })
  t.equal(failure(closed), 'FORBIDDEN')
  t.equal(failure(await put('open', 99)), null)
  t.equal(failure(await put('open', 1, { ifMatch: ['"7"'] })), 'FORBIDDEN')
  t.equal(failure(await system.ask(deleteRequest('thing', 'open', {}, as))), 'FORBIDDEN')
  t.equal(system.system.get('thing', 'closed'), null)
})

t.test('put, change, delete, put again: the version rises, the map follows', async (t) => {
  const system = new ActorSystemTwin([thing])
  const seen: unknown[] = []
  const stop = system.system.onChange('thing', (key, entry) => seen.push([key, entry?.version]))
  const put = (n: number): Promise<Reply> =>
    system.ask(putRequest('thing', 'a/b', { value: { n } }, origin))
  t.equal(failure(await put(1)), null)
  t.same(system.system.get('thing', 'a/b')?.value, { n: 1 })
  t.equal(system.system.get('thing', 'a/b')?.version, 1)
  await put(2)
  t.equal(system.system.get('thing', 'a/b')?.version, 2)
  t.equal(failure(await system.ask(deleteRequest('thing', 'a/b', {}, origin))), null)
  t.equal(system.system.get('thing', 'a/b'), null)
  t.equal(failure(await system.ask(deleteRequest('thing', 'a/b', {}, origin))), 'NOT_FOUND')
  await put(3)
  t.equal(system.system.get('thing', 'a/b')?.version, 4, 'an old ETag never fits again')
  t.same(seen, [
    ['a/b', 1],
    ['a/b', 2],
    ['a/b', undefined],
    ['a/b', 4],
  ])
  stop()
  await put(4)
  t.equal(seen.length, 4)
})

t.test('conditions: a stale ETag is a conflict and changes nothing', async (t) => {
  const system = new ActorSystemTwin([thing])
  const put = async (n: number, ifMatch: string, ifNoneMatch = ''): Promise<string | null> => {
    const body = { value: { n }, ...readCondition(ifMatch, ifNoneMatch) }
    return failure(await system.ask(putRequest('thing', 'k', body, origin)))
  }
  t.equal(await put(1, etagOf(1)), 'CONFLICT', 'nothing there to match')
  t.equal(await put(1, '', '*'), null)
  t.equal(await put(2, '', '*'), 'CONFLICT')
  t.equal(await put(2, etagOf(7)), 'CONFLICT')
  t.same(system.system.get('thing', 'k')?.value, { n: 1 })
  t.equal(await put(2, `W/"9", W/${etagOf(1)}`), null)
  t.equal(await put(3, '*'), null)
  const stale = deleteRequest('thing', 'k', readCondition(etagOf(1), ''), origin)
  t.equal(failure(await system.ask(stale)), 'CONFLICT')
  t.same(system.system.get('thing', 'k')?.value, { n: 3 })
})

t.test('check guards values and message types', async (t) => {
  t.equal(thing.check({ type: 'put', body: { value: { n: 1 } } }), null)
  t.equal(thing.check({ type: 'delete', body: undefined }), null)
  t.match(thing.check({ type: 'put', body: { value: {} } })?.[0], {
    code: 'INVALID_MESSAGE_BODY',
    message: 'value.n must be a number',
  })
  t.match(thing.check({ type: 'put', body: undefined })?.[0]?.message, /value\.n/)
  t.match(thing.check({ type: 'get', body: {} })?.[0]?.message, /put and delete/)
})

t.test('snapshots and replays give the same state', async (t) => {
  const state = { key: 'k', value: { n: 1 }, deleted: false }
  t.same(thing.fromSnapshot(JSON.parse(JSON.stringify(thing.toSnapshot(state)))), state)
  t.same(thing.keys(state), ['k'])
  t.notOk(thing.isDeleted(state))
  t.throws(() => thing.evolve(null, { t: 'deleted' }, {} as never), /system actor/)
})
