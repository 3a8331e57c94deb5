// The account of refusals that are remembered for somebody who may do nothing, and which requests
// count: only those of which nothing may be sent. Source: CONTRACT 0 "Idempotency".

import t from 'tap'
import type { Clock } from '../../cluster/clock.ts'
import { LIMITS } from '../../config/limits.ts'
import { Acl, parseScope } from '../../protocol/ace.ts'
import type { Behaviour } from '../../protocol/behaviour.ts'
import { RequestError, errorItem } from '../../protocol/errors.ts'
import { checkMessages, forbiddenOf, mayWriteNothing } from './actor-request.ts'
import type { ActorType } from './actor-type.ts'
import { ForbiddenKeys } from './forbidden-keys.ts'

const { forbiddenKeysMax, forbiddenKeyMs, forbiddenCallersMax } = LIMITS.actors
const UUID = '01900000-0000-7000-8000-0000000000ab'

function account() {
  let nowMs = 1_000
  const clock = { monotonicMs: () => nowMs } as Clock
  const keys = new ForbiddenKeys({ clock })
  let asked = 0
  return {
    pass: (ms: number): void => void (nowMs += ms),
    may(identity: string, count = 1): boolean {
      try {
        const idempotencyKey = `key ${asked++}`
        keys.take({ identity, type: 'order', id: UUID, idempotencyKey, bodyHash: 'b' }, count)
        return true
      } catch (error) {
        if (error instanceof RequestError && error.errors[0]!.code === 'RATE_LIMITED') return false
        throw error
      }
    },
    /** How many it may take, one by one, up to twice the bound. */
    left(identity: string): number {
      let taken = 0
      while (taken < 2 * forbiddenKeysMax && this.may(identity)) taken++
      return taken
    },
  }
}

t.test('some at once, then one now and then, and never more at once than at first', async (t) => {
  const one = account()
  t.equal(one.left('a'), forbiddenKeysMax)
  one.pass(forbiddenKeyMs / 2)
  t.notOk(one.may('a'))
  one.pass(forbiddenKeyMs / 2)
  t.equal(one.left('a'), 1, 'asking in vain costs nothing')
  one.pass(forbiddenKeyMs * forbiddenKeysMax * 3)
  t.equal(one.left('a'), forbiddenKeysMax, 'who was away for long has no more than anybody')
})

t.test(
  'a request counts by its messages, and one that costs nothing is never held up',
  async (t) => {
    const { may, pass } = account()
    t.ok(may('a', forbiddenKeysMax * 3))
    t.notOk(may('a'))
    t.ok(may('a', 0))
    pass(forbiddenKeyMs * forbiddenKeysMax * 2)
    t.notOk(may('a'), 'it took room for many')
    pass(forbiddenKeyMs)
    t.ok(may('a'))
  },
)

t.test('accounts are bounded: who was not met for longest is forgotten first', async (t) => {
  const { may } = account()
  t.ok(may('first', forbiddenKeysMax))
  for (let i = 2; i < forbiddenCallersMax; i++) may(`c${i}`)
  t.ok(may('last', forbiddenKeysMax))
  t.notOk(may('first'), 'it is met again, and counts as the newest')
  may('one more')
  t.notOk(may('first'))
  t.notOk(may('last'))
  for (let i = 0; i < forbiddenCallersMax; i++) may(`d${i}`)
  t.ok(may('first'), 'so many others were met since that nothing is known of it')
})

const type: ActorType = {
  resource: 'actors/order',
  path: '/resources/actors/order/',
  behaviour: {
    type: 'order',
    messageTypes: ['create', 'note', 'read'],
    creates: ['create'],
    isRead: (name: string) => name === 'read',
    check: ({ body }: { body: unknown }) =>
      body === 'bad' ? [errorItem('INVALID_MESSAGE_BODY', 'bad')] : null,
  } as unknown as Behaviour,
}

function acl(scope: string): Acl {
  if (scope === '') return new Acl([])
  const parsed = parseScope(scope)
  if (!parsed.ok) throw new Error(parsed.reason)
  return new Acl(parsed.aces)
}

t.test('what counts: messages that would be recorded for who may send none of them', async (t) => {
  const counted = (scope: string, kinds: readonly string[], isKeyed = true): number => {
    const messages = kinds.map((kind) => {
      const [name, body] = kind.split(' ')
      return { type: name!, body: body ?? {} }
    })
    const who = { acl: acl(scope), uuid: null, virtual: false, isKeyed }
    return forbiddenOf(type, checkMessages(type, messages, who))
  }
  t.equal(counted('actors/order:note', ['note']), 0)
  t.equal(counted('actors/order:read', ['note']), 1)
  t.equal(counted('actors/order:read', ['note', 'create', 'note']), 3, 'each is recorded')
  t.equal(counted('actors/order:read', ['read', 'note', 'read']), 1, 'reads are not')
  t.equal(counted('actors/order:note', ['note', 'create']), 0, 'who may send a part of it may ask')
  t.equal(counted('actors/order:note', ['note bad']), 0, 'a mistake is no lack of permission')
  t.equal(counted('actors/order:note', ['note bad', 'create']), 2)
  t.equal(counted('registry:read', ['note'], false), 0, 'nothing is kept without a key')
})

t.test('who may write nothing of an actor: neither of all nor of this one', async (t) => {
  t.ok(mayWriteNothing(type, acl(''), UUID))
  t.ok(mayWriteNothing(type, acl('actors/order:read'), UUID))
  t.ok(mayWriteNothing(type, acl('actors/sku:*'), null))
  t.notOk(mayWriteNothing(type, acl('actors/order:note'), null), 'one type of message is enough')
  t.notOk(mayWriteNothing(type, acl(`actors/order/${UUID}:note`), UUID), 'and one actor is')
  t.ok(mayWriteNothing(type, acl(`actors/order/${UUID}:note`), null), 'of another one nothing')
  t.ok(mayWriteNothing(type, acl(`actors/order/${UUID}:read`), UUID))
})
