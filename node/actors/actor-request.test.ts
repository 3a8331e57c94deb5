// From a body to messages: what is refused and where it says so, who may send what, and that what
// failed here and what the actor answered come together in the order of the request.

import t from 'tap'
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { LIMITS } from '../../config/limits.ts'
import { Acl, parseAce } from '../../protocol/ace.ts'
import type { Ace } from '../../protocol/ace.ts'
import type { Behaviour } from '../../protocol/behaviour.ts'
import { errorItem } from '../../protocol/errors.ts'
import type { Message, MessageResult } from '../../protocol/message.ts'
import {
  checkMessages,
  mergeResults,
  needsUuid,
  readIdempotencyKey,
  readMessages,
  readTarget,
  refusedResults,
} from './actor-request.ts'
import { answerJson, answerParts, statusOfResults } from './answer.ts'
import type { ActorType } from './actor-type.ts'

const UUID = '01900000-0000-7000-8000-0000000000ab'
const OTHER = '01900000-0000-7000-8000-0000000000ac'

const type: ActorType = {
  resource: 'actors/order',
  path: '/resources/actors/order/',
  behaviour: {
    type: 'order',
    messageTypes: ['create', 'import', 'note', 'read'],
    creates: ['create', 'import'],
    isRead: (name: string) => name === 'read',
    check: ({ body }: { body: unknown }) =>
      body === 'bad' ? [errorItem('INVALID_MESSAGE_BODY', 'bad')] : null,
  } as unknown as Behaviour,
}

function acl(...texts: readonly string[]): Acl {
  return new Acl(texts.map((text) => (parseAce(text) as { ace: Ace }).ace))
}

function codeOf(run: () => unknown): string {
  try {
    run()
  } catch (error) {
    return (error as { errors: readonly { code: string }[] }).errors[0]!.code
  }
  return 'none'
}

const message = (kind: string, body: unknown = null): Message => ({ type: kind, body })

t.test('whom a path names', async (t) => {
  t.same(readTarget(type, UUID.toUpperCase()), { id: UUID, uuid: UUID })
  t.same(readTarget(type, 'new'), { id: 'new', uuid: null })
  const longest = 'k'.repeat(LIMITS.commerce.keyCharsMax)
  t.same(readTarget(type, longest), { id: longest, uuid: null })
  for (const id of ['', `${longest}k`])
    t.equal(
      codeOf(() => readTarget(type, id)),
      'NOT_FOUND',
    )
})

t.test('what is no list of messages is malformed, and where', async (t) => {
  const whole = [message('note'), { type: 'note', body: null }]
  t.equal(readMessages(whole), whole)
  const most = Array.from({ length: LIMITS.actors.messagesMax }, () => message('note'))
  t.equal(readMessages(most).length, LIMITS.actors.messagesMax)
  const longest = 'k'.repeat(LIMITS.actors.messageTypeCharsMax)
  t.equal(readMessages([message(longest)]).length, 1)
  const wrong: unknown[] = [
    [message(`${longest}k`)],
    {},
    null,
    'x',
    [],
    [...most, message('note')],
    [message('note'), null],
    [message('note'), []],
    [message('note'), 'note'],
    [message('note'), { body: {} }],
    [message('note'), { type: 7 }],
    [message('note'), { type: 'note', id: 1 }],
  ]
  for (const body of wrong)
    t.equal(
      codeOf(() => readMessages(body)),
      'MALFORMED_REQUEST',
    )
  try {
    readMessages([message('note'), { type: 'note', id: 1 }, null])
  } catch (error) {
    t.match(error, { errors: [{ details: { messageIndex: 1 } }] })
  }
})

t.test('keys: printable, without spaces, of so many characters', async (t) => {
  const longest = 'k'.repeat(LIMITS.actors.idempotencyKeyCharsMax)
  t.equal(readIdempotencyKey(''), null)
  for (const key of ['!', '~', longest]) t.equal(readIdempotencyKey(key), key)
  for (const key of [' ', 'a b', 'ü', '\u007f', `${longest}k`]) {
    t.equal(
      codeOf(() => readIdempotencyKey(key)),
      'MALFORMED_REQUEST',
    )
  }
})

t.test('who may send what: of the type, or of this actor alone', async (t) => {
  const failedOf = (who: Acl, uuid: string | null) => {
    const messages = [message('note'), message('read')]
    const { failed } = checkMessages(type, messages, {
      acl: who,
      uuid,
      virtual: false,
      isKeyed: false,
    })
    return (failed ?? [null, null]).map((one) => one === null)
  }
  t.same(failedOf(acl('actors/order:*'), null), [true, true])
  t.same(failedOf(acl('actors/order:read'), UUID), [false, true])
  t.same(failedOf(acl(`actors/order/${UUID}:note`), UUID), [true, false])
  t.same(failedOf(acl(`actors/order/${UUID}:note`), OTHER), [false, false])
  t.same(failedOf(acl(`actors/order/${UUID}:note`), null), [false, false])
  const needs = (who: Acl): boolean => needsUuid(type, [message('note'), message('read')], who)
  t.notOk(needs(acl('actors/order:*')), 'all may be sent to all')
  t.notOk(needs(acl('actors/order:note')), 'to nobody may the other be sent')
  t.ok(needs(acl('actors/order:note', `actors/order/${UUID}:read`)))
})

t.test('who may not send a message hears that alone, whatever is wrong with it', async (t) => {
  const who = { acl: acl('actors/order:read'), uuid: null, virtual: false, isKeyed: false }
  const messages = [message('note', 'bad'), message('unknown'), message('read', 'bad')]
  const { send, failed } = checkMessages(type, messages, who)
  t.same(send, [])
  t.match(failed, [
    { errors: [{ code: 'UNAUTHORIZED_MESSAGE' }] },
    { errors: [{ code: 'UNAUTHORIZED_MESSAGE' }] },
    { errors: [{ code: 'INVALID_MESSAGE_BODY' }] },
  ])
})

t.test('messages of the runtime never come from outside', async (t) => {
  for (const kind of ['!claim', '!free', 'unknown']) {
    const who = { acl: acl('*'), uuid: UUID, virtual: false, isKeyed: false }
    const { send, failed } = checkMessages(type, [message(kind)], who)
    t.same(send, [])
    t.match(failed, [{ success: false, errors: [{ code: 'INVALID_MESSAGE_BODY' }] }])
  }
})

t.test('to new: only behind one that makes somebody', async () => {
  const kinds = fc.constantFrom('create', 'import', 'note', 'bad create', 'bad note')
  fc.assert(
    fc.property(fc.array(kinds, { minLength: 1, maxLength: 6 }), (list) => {
      const messages = list.map((kind) =>
        message(kind.replace('bad ', ''), kind.startsWith('bad') ? 'bad' : {}),
      )
      const who = { acl: acl('*'), uuid: null, virtual: true, isKeyed: false }
      const { send, failed } = checkMessages(type, messages, who)
      const maker = list.findIndex((kind) => kind !== 'note' && kind !== 'bad note')
      const isMade = maker >= 0 && !list[maker]!.startsWith('bad')
      const wanted = list.map((kind, i) => {
        if (kind.startsWith('bad') && (i <= maker || maker < 0 || isMade)) {
          return 'INVALID_MESSAGE_BODY'
        }
        return isMade && i >= maker ? 'sent' : 'NOT_FOUND'
      })
      const seen = list.map((_, i) => {
        const result = failed?.[i]
        return result && !result.success ? result.errors[0]!.code : 'sent'
      })
      const due = messages.filter((_, i) => wanted[i] === 'sent')
      const isSent = send.length === due.length && send.every((one, i) => one === due[i])
      const keyed = checkMessages(type, messages, { ...who, isKeyed: true })
      const isRefused = isDeepStrictEqual(keyed.refused ?? null, failed)
      const isAll = keyed.send === messages && (keyed.refused !== undefined) === (failed !== null)
      return seen.join() === wanted.join() && isSent && isAll && isRefused
    }),
    { numRuns: 400 },
  )
})

t.test('results come together in the order of the request', async () => {
  fc.assert(
    fc.property(fc.array(fc.boolean(), { minLength: 1, maxLength: 12, size: 'max' }), (goes) => {
      const messages = goes.map((does) => message('note', does ? {} : 'bad'))
      const checked = checkMessages(type, messages, {
        acl: acl('*'),
        uuid: UUID,
        virtual: false,
        isKeyed: false,
      })
      if (checked.send.length !== goes.filter(Boolean).length) return false
      const answered = checked.send.map((_, i): MessageResult => {
        return { type: 'note', success: true, data: i }
      })
      let next = 0
      return mergeResults(checked, answered).every((result, i) =>
        goes[i] ? result.success && result.data === next++ : !result.success,
      )
    }),
  )
})

t.test(
  'a missing actor is the failure of each message, anything else of the request',
  async (t) => {
    const missing = { outcome: 'refused', error: errorItem('NOT_FOUND', 'gone', { a: 1 }) } as const
    const all = { send: [message('note'), message('read')], failed: null }
    t.match(refusedResults(missing, all), [
      { type: 'note', success: false, errors: [{ code: 'NOT_FOUND', details: { a: 1 } }] },
      { type: 'read', success: false },
    ])
    const busy = { outcome: 'refused', error: errorItem('TOO_BUSY', 'later') } as const
    t.equal(
      codeOf(() => refusedResults(busy, all)),
      'TOO_BUSY',
    )
  },
)

t.test('the status: any success is one, else the first error says', async (t) => {
  const fine: MessageResult = { type: 'a', success: true }
  const no = (code: 'NOT_FOUND' | 'ALREADY_EXISTS'): MessageResult => {
    return { type: 'a', success: false, errors: [errorItem(code, '')] }
  }
  t.equal(statusOfResults([]), 200)
  t.equal(statusOfResults([no('NOT_FOUND'), fine]), 200)
  t.equal(statusOfResults([fine, no('NOT_FOUND')]), 200)
  t.equal(statusOfResults([no('NOT_FOUND'), no('ALREADY_EXISTS')]), 404)
  t.equal(statusOfResults([no('ALREADY_EXISTS'), no('NOT_FOUND')]), 409)
})

t.test('an answer as text is what it says', async () => {
  const result: fc.Arbitrary<MessageResult> = fc.oneof(
    fc.record({ type: fc.string(), success: fc.constant(true as const), data: fc.jsonValue() }),
    fc.record({ type: fc.string(), success: fc.constant(true as const) }),
    fc.record({
      type: fc.string(),
      success: fc.constant(false as const),
      errors: fc.array(
        fc.string().map((text) => errorItem('NOT_FOUND', text)),
        { minLength: 1 },
      ),
    }),
  )
  const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))
  fc.assert(
    fc.property(
      fc.array(result, { maxLength: 4 }),
      fc.option(fc.constant(UUID)),
      fc.array(fc.constantFrom('A-1', 'a/b "ü"'), { maxLength: 2 }),
      fc.option(fc.string()),
      (results, actorId, keys, failedId) => {
        const answer = { actorId, keys, results }
        const read = JSON.parse(answerJson(type, answer, { preview: true, failedId })) as object
        const last = results.at(-1)
        const shown = keys.length > 0 ? [type.path + encodeURIComponent(keys[0]!)] : []
        const errors = results.flatMap((one) => (one.success ? [] : one.errors))
        const wanted = {
          paths: actorId === null ? [] : [type.path + actorId, ...shown],
          data: last?.success ? (last.data ?? null) : null,
          preview: true,
          results,
          errors,
          ...(failedId === null ? null : { requestId: failedId }),
        }
        const parts = answerParts(type, answer, '')
        if ((parts.errors === null) !== (errors.length === 0)) return false
        return JSON.stringify(read) === JSON.stringify(plain(wanted))
      },
    ),
  )
})
