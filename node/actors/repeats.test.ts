// Repeats under an idempotency key: what was answered first is answered again, refusals by shape or
// permission too, whatever the caller may do meanwhile; and no other body has effect under the key.
// The stations over a member with its journal in memory. Source: CONTRACT 0 "Idempotency".

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { seeded } from '../../cluster/testing/harness.ts'
import type { World } from '../../cluster/testing/harness.ts'
import type { Message } from '../../protocol/message.ts'
import {
  append,
  codes,
  idOf,
  OPEN,
  open,
  operationsOf,
  post,
  start,
  tokens,
} from './testing/posting.ts'
import type { Answer, Sent } from './testing/posting.ts'

t.setTimeout(120_000)

t.test('what was refused is refused again, whatever the caller may do by then', async (t) => {
  const world = await start()
  const id = await open(world)
  const body = [append('a'), { type: 'renumber', body: { number: 'N' } }, append('c')]
  const first = await post(world, { id, body, may: ['append'], key: 'k' })
  t.match(first.results, [{ data: 1 }, { errors: [{ code: 'UNAUTHORIZED_MESSAGE' }] }, { data: 2 }])
  for (const may of [['append', 'renumber'], ['renumber'], []]) {
    const again = await post(world, { id, body, may, key: 'k' })
    t.strictSame(again.results, first.results)
    t.equal(idOf(again), id)
  }
  t.same(await tokens(world, id), ['a', 'c'])
})

t.test('a refusal by shape or permission binds its key to its body', async (t) => {
  let world = await start()
  const id = await open(world)
  const right = [append('right')]
  const wrong: [string, unknown, readonly string[], string][] = [
    ['shape', [{ type: 'append', body: { wrong: 1 } }], ['append'], 'INVALID_MESSAGE_BODY'],
    ['permission', [append('x')], ['open'], 'UNAUTHORIZED_MESSAGE'],
    ['type', [{ type: 'unheard' }], ['*'], 'INVALID_MESSAGE_BODY'],
    ['form', { type: 'append' }, ['append'], 'MALFORMED_REQUEST'],
    ['JSON', '[{"type"', ['append'], 'MALFORMED_REQUEST'],
    ['nobody', [], ['append'], 'MALFORMED_REQUEST'],
  ]
  const sent = (address: string, key: string, body: unknown, may: readonly string[]): Sent => {
    return { id: address, key, body, may }
  }
  const whom = [id, 'new', '0198c0de-7000-7abc-8def-0123456789ab']
  for (const to of whom) {
    for (const [why, body, may, code] of wrong) {
      const key = `${to} ${why}`.replaceAll(' ', '-')
      const first = await post(world, sent(to, key, body, may))
      t.ok(
        codes(first).every((one) => one === code || one === 'NOT_FOUND'),
        `${key}: ${code}`,
      )
      t.same(first.paths, [], 'nobody is shown to who was refused all of it')
      world = await world.restart()
      t.strictSame(await post(world, sent(to, key, body, ['*'])), first, `${key}: again`)
      const opening: unknown[] = to === 'new' ? [{ type: 'open', body: { token: 'right' } }] : right
      const other = await post(world, sent(to, key, opening, ['*']))
      t.same(codes(other), ['IDEMPOTENCY_MISMATCH'], `${key}: another body`)
      const read = [{ type: 'read' }, ...opening]
      const behind = await post(world, sent(to, key, read, ['*']))
      t.same(codes(behind), ['IDEMPOTENCY_MISMATCH', 'IDEMPOTENCY_MISMATCH'], `${key}: behind`)
    }
  }
  t.same(await tokens(world, id), [])
})

t.test('a longer body, or a shorter one, is another body: nothing of it is run', async (t) => {
  const world = await start()
  const id = await open(world)
  const may = ['append', 'read']
  const all: Message[][] = [
    [{ type: 'read', body: {} }, append('a')],
    [append('a'), append('b')],
    [append('a')],
  ]
  for (const [i, body] of all.entries()) {
    const first = await post(world, { id, body, may, key: `k${i}` })
    t.ok(first.results.every(({ success }) => success))
    for (const other of all.filter((one) => one !== body)) {
      const answer = await post(world, { id, body: other, may, key: `k${i}` })
      t.ok(codes(answer).every((code) => code === 'IDEMPOTENCY_MISMATCH'))
    }
  }
  t.same(await tokens(world, id), ['a', 'a', 'b', 'a'])
})

t.test('what is read is read again, and binds no key', async (t) => {
  const world = await start()
  const id = await open(world)
  const read = { id, body: [{ type: 'read' }], key: 'k' }
  t.match(await post(world, { ...read, may: [] }), {
    results: [{ errors: [{ code: 'UNAUTHORIZED_MESSAGE' }] }],
  })
  t.match(await post(world, { ...read, may: ['read'] }), { results: [{ data: [] }] })
  t.match(await post(world, { id, body: [append('a')], may: ['append'], key: 'k' }), {
    results: [{ data: 1 }],
  })
  t.match(await post(world, { ...read, may: ['read'] }), { results: [{ data: ['a'] }] })
})

t.test('a number that nobody has is no place to remember anything', async (t) => {
  const world = await start()
  const sent = { id: 'N-1', body: [append('a')], key: 'k' }
  t.same(codes(await post(world, { ...sent, may: [] })), ['UNAUTHORIZED_MESSAGE'])
  t.same(codes(await post(world, { ...sent, may: ['append'] })), ['NOT_FOUND'])
  t.same(codes(await post(world, { ...sent, body: '', may: ['append'] })), ['MALFORMED_REQUEST'])
})

t.test('a preview binds no key, whatever is wrong with it', async (t) => {
  const world = await start()
  const id = await open(world)
  const bodies: [unknown, string][] = [
    ['[{"type"', 'MALFORMED_REQUEST'],
    [{ type: 'append' }, 'MALFORMED_REQUEST'],
    [[{ type: 'append', body: { wrong: 1 } }], 'INVALID_MESSAGE_BODY'],
    [[append('a')], 'done'],
  ]
  for (const isBulk of [false, true]) {
    for (const [i, [body, code]] of bodies.entries()) {
      // A line that is no JSON has no key.
      if (isBulk && typeof body === 'string') continue
      const sent = { id, may: ['append'], key: `k-${i}-${isBulk}`, isBulk }
      const what = `${JSON.stringify(body)}${isBulk ? ' in bulk' : ''}`
      t.same(codes(await post(world, { ...sent, body, isPreview: true })), [code], what)
      const token = `${i}${isBulk}`
      t.same(codes(await post(world, { ...sent, body: [append(token)] })), ['done'], what)
    }
  }
})

t.test('too large under a key stays so, and without one is looked at again', async (t) => {
  const world = await start()
  const id = await open(world)
  const body = [append('x'.repeat(LIMITS.protocol.entryBytesMax)), append('b')]
  const first = await post(world, { id, body, may: ['append'], key: 'k' })
  t.same(codes(first), ['TOO_LARGE', 'done'])
  t.strictSame((await post(world, { id, body, may: ['append'], key: 'k' })).results, first.results)
  t.same(await tokens(world, id), ['b'])
  const other = await post(world, { id, body: [append('c')], may: ['append'], key: 'k' })
  t.same(codes(other), ['IDEMPOTENCY_MISMATCH'])
})

t.test('who may do nothing has room for some such answers, others are not held up', async (t) => {
  const world = await start()
  const id = await open(world)
  const operations = operationsOf(world)
  const ask = async (n: number, more: Partial<Sent> = {}): Promise<readonly string[]> => {
    const sent = { id, body: [append(`t${n}`)], may: ['read'], key: `k${n}`, by: 'nosy', ...more }
    return codes(await post(world, sent, operations))
  }
  for (let n = 0; n < LIMITS.actors.forbiddenKeysMax; n++) await ask(n)
  for (let i = 0; i < 3; i++) t.same(await ask(1), ['UNAUTHORIZED_MESSAGE'], 'it is a repeat')
  t.same(await ask(1, { body: [append('x')] }), ['RATE_LIMITED'], 'another body under its key')
  t.same(await ask(1_000), ['RATE_LIMITED'])
  t.same(await ask(1_001, { isBulk: true }), ['RATE_LIMITED'])
  t.same(await ask(1_002, { body: 'no JSON' }), ['RATE_LIMITED'])
  t.same(await ask(1_003, { key: '' }), ['UNAUTHORIZED_MESSAGE'], 'what nobody keeps costs nothing')
  t.same(await ask(1_004, { may: ['append'] }), ['done'])
  t.same(await ask(1_005, { by: 'other' }), ['UNAUTHORIZED_MESSAGE'])
  await world.clock.advance(LIMITS.actors.forbiddenKeyMs * 1.5)
  t.same(await ask(1_006), ['UNAUTHORIZED_MESSAGE'])
  t.same(await ask(1_007), ['RATE_LIMITED'])
})

t.test('who may write to one actor is a stranger to the others', async (t) => {
  const world = await start()
  const number = { type: 'open', body: { number: 'N1' } }
  const id = idOf(await post(world, { id: 'new', ...OPEN, body: [number] }))
  const own = idOf(await post(world, { id: 'new', ...OPEN, key: 'o2' }))
  const operations = operationsOf(world)
  const ask = async (n: number, more: Partial<Sent> = {}): Promise<readonly string[]> => {
    const sent = { id, body: [{}], may: [`${own}:append`], key: `k${n}`, by: 'nosy', ...more }
    return codes(await post(world, sent, operations))
  }
  for (let n = 0; n < LIMITS.actors.forbiddenKeysMax; n++) await ask(n, n % 2 ? { id: 'N1' } : {})
  const rest = [{}, { isBulk: true }, { id: 'N1' }, { id: 'N1', isBulk: true }, { id: 'new' }]
  for (const [i, more] of rest.entries()) t.same(await ask(1_000 + i, more), ['RATE_LIMITED'])
  t.same(await ask(2_000, { id: own }), ['MALFORMED_REQUEST'])
  t.same(await ask(2_001, { id: own, isBulk: true }), ['MALFORMED_REQUEST'])
  t.same(await ask(2_002, { id: 'N1', may: [`${id}:append`] }), ['MALFORMED_REQUEST'])
  t.same(await ask(2_003, { may: ['append'] }), ['MALFORMED_REQUEST'])
})

// --- any sequence of requests, against a plain account of what was answered ----------------

interface Opening {
  readonly type: string
  readonly body: { readonly token: string; readonly number?: string }
}

interface Told {
  readonly body: string
  readonly answer: Answer
}

const UNKNOWN = ['OUTCOME_UNKNOWN', 'UNAVAILABLE', 'TOO_BUSY']

/** Sends it until there is an answer: what is told to try again is none. */
async function untilKnown(world: World, sent: Sent): Promise<Answer> {
  for (let i = 0; i < 20; i++) {
    const answer = await post(world, sent)
    if (!codes(answer).some((code) => UNKNOWN.includes(code))) return answer
  }
  throw new Error('there is no answer')
}

/** What an answer says, but for a line's own number and what reads tell. */
function said({ results, errors = [] }: Answer, isRead: (i: number) => boolean): unknown {
  if (results.length === 0) return errors.map(({ code, message }) => ({ code, message }))
  return results.map((one, i) => (isRead(i) ? null : one))
}

t.test('any sequence of keys, callers, roles and bodies, right and wrong', async (t) => {
  const runs = Number(process.env['KONTOR_RUNS'] ?? 40)
  for (let seed = 1; seed <= runs; seed++) {
    const chance = seeded(seed)
    const one = <T>(list: readonly T[]): T => list[Math.floor(chance() * list.length)]!
    // Of a wire too: copies are lost, doubled and late.
    let world = await start(seed, seed % 2 === 0)
    const opened = { body: [{ type: 'open', body: { number: 'M' } }], may: ['open'], key: 'm' }
    const unnamed = idOf(await untilKnown(world, { id: 'new', ...opened }))
    const ids = [unnamed, '0198c0de-7000-7abc-8def-0123456789ab']
    const number = `Z${seed}`
    const also = { ...opened, body: [{ type: 'open', body: { number } }], key: 'n' }
    const named = idOf(await untilKnown(world, { id: 'new', ...also }))
    const told = new Map<string, Told>()
    const due = new Map<string, string[]>([ids[0]!, named].map((id) => [id, []]))
    let next = 0
    const message = (): unknown => {
      const token = `t${next++}`
      const wrong = chance() < 0.3 ? { wrong: true } : null
      const chosen = chance() < 0.3 ? { number: `N${Math.floor(chance() * 3)}` } : null
      const type = one(['append', 'append', 'open', 'read', 'unheard'])
      return { type, body: { token, ...wrong, ...(type === 'open' ? chosen : null) } }
    }
    const messages = (): unknown => Array.from({ length: 1 + Math.floor(chance() * 3) }, message)
    const bodies = Array.from({ length: 6 }, () => {
      return one([messages, messages, messages, () => [], () => '[{', () => ({ no: 1 })])()
    })
    for (let i = 0; i < 25; i++) {
      const body = one(bodies)
      const id = one([...ids, 'new', number])
      const may = ['append', 'open', 'read'].filter(() => chance() < 0.7)
      const sent = { id, body, may, by: one(['a', 'b']), key: one(['k', 'l']) }
      const isBulk = typeof body !== 'string' && chance() < 0.3
      const list = Array.isArray(body) ? (body as Opening[]) : []
      const isRead = (at: number): boolean => list[at]?.type === 'read'
      const answer = await untilKnown(world, { ...sent, isBulk })
      const what = `seed ${seed}, ${i}: ${JSON.stringify(sent)} ${JSON.stringify(answer)}`
      if (list.length > 0 && list.every((_, at) => isRead(at))) continue
      const first = list.find(({ type }) => type === 'open')?.body
      const whom = id === 'new' ? (first?.number ?? 'new') : id === number ? named : id
      const scope = [sent.by, id === 'new', whom, sent.key].join(' ')
      const known = told.get(scope)
      const text = typeof body === 'string' ? body : JSON.stringify(body)
      if (known && known.body !== text) {
        t.ok(codes(answer).length > 0, what)
        t.ok(
          codes(answer).every((code) => code === 'IDEMPOTENCY_MISMATCH'),
          what,
        )
      } else if (known) {
        t.strictSame(said(answer, isRead), said(known.answer, isRead), what)
      } else {
        t.notOk(codes(answer).includes('IDEMPOTENCY_MISMATCH'), what)
        told.set(scope, { body: text, answer })
        const done = list.filter((_, at) => answer.results[at]?.success && !isRead(at))
        if (done.length > 0) {
          const kept = due.get(idOf(answer)) ?? []
          due.set(idOf(answer), kept.concat(done.map(({ body: { token } }) => token)))
        }
      }
      if (chance() < 0.1) world = await world.restart()
    }
    for (const [id, list] of due) {
      const read = { id, body: [{ type: 'read' }], may: ['read'] }
      const { results } = await untilKnown(world, read)
      t.strictSame((results[0] as { data: unknown }).data, list, `seed ${seed}`)
    }
    if (!t.passing()) return
  }
})
