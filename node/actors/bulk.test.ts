// Bulk lines to actors: their order, their windows, what a bad or refused line does to the others.
// The client is a stream that sends and reads when the test says so. Source: CONTRACT 0 "Bulk".

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { Acl, parseAce } from '../../protocol/ace.ts'
import { RequestError, errorItem } from '../../protocol/errors.ts'
import type { Reply } from '../../protocol/message.ts'
import { bulk, create, latch, note, read, settle } from './testing/bulk-client.ts'
import type { AnswerLine } from './testing/bulk-client.ts'
import { SOMEBODY } from '../access/testing/sessions.ts'

const UUID = '0198c0de-7000-7abc-8def-0123456789ab'
const OTHER = '0198c0de-7000-7abc-8def-ffffffffffff'

t.test('answers in order, ids of the actors, failures with the id of the line', async (t) => {
  const { client, done } = bulk()
  const failing = { type: 'note', body: { fail: 'INVALID_STATE' } }
  const partly = { id: 'new', messages: [{ type: 'create' }, failing] }
  client.send(create('A'), note('A', 'x'), note('nobody', 'x'), read('A'), partly).end()
  await done
  type Five = [AnswerLine, AnswerLine, AnswerLine, AnswerLine, AnswerLine]
  const [made, noted, failed, seen, some] = client.answers as Five
  t.equal(made.id, (made.data as { orderId: string }).orderId)
  t.same(made.paths, [`/resources/actors/order/${made.id}`, '/resources/actors/order/A'])
  t.notOk('errors' in made)
  t.notOk('preview' in made)
  t.equal(noted.id, made.id)
  t.equal(failed.id, 'nobody')
  t.equal(failed.errors![0]!.code, 'NOT_FOUND')
  t.same(seen.data, ['x'])
  t.match(some, { results: [{ success: true }, { success: false }] })
  t.equal(some.paths[0], `/resources/actors/order/${some.id}`, 'the actor is there')
})

t.test('bad lines are answered with their number and the rest goes on', async (t) => {
  const { client, done } = bulk()
  client.send(
    create('A'),
    '{"id": "new", ',
    ...['7', '[]'],
    '{"messages": [{"type": "create"}]}',
    '{"id": 7, "messages": []}',
    '{"id": "A", "messages": []}',
    '{"id": "A", "messages": [{"type": "read"}], "more": 1}',
    ...['7', '"a b"', '""'].map(
      (key) => `{"id": "A", "messages": [{"type": "read"}], "idempotencyKey": ${key}}`,
    ),
    '{"id": "A", "messages": [{"type": "read", "body": {"__proto__": 1}}]}',
    'too-large',
    read('A'),
  )
  client.end()
  await done
  t.equal(client.answers.length, 14)
  for (const [i, answer] of client.answers.entries()) {
    const good = i === 0 || i === 13
    t.equal('errors' in answer, !good, `line ${i + 1}`)
    if (good) continue
    const code = i === 12 ? 'TOO_LARGE' : 'MALFORMED_REQUEST'
    t.equal(answer.errors![0]!.code, code, `line ${i + 1}`)
    t.equal(answer.errors![0]!.details!['line'], i + 1)
    t.same([answer.paths, answer.data, answer.results], [[], null, []])
  }
  t.equal(client.answers[6]!.id, 'A')
  t.equal(client.answers[5]!.id, null)
})

t.test('lines to one actor in line order, others side by side, answers in order', async (t) => {
  const { client, system, done } = bulk()
  client.send(create('A'), create('B'))
  await settle()
  const latches = latch(system)
  client.send(note('A', 'a1'), note('A', 'a2'), note('B', 'b1'), note('A', 'a3'), note('B', 'b2'))
  await settle()
  t.same(latches.held, ['a1', 'b1'])
  latches.open('b1')
  await settle()
  t.same(latches.held, ['a1', 'b2'])
  t.equal(client.answers.length, 2, 'nothing overtakes the first line')
  latches.open('a1')
  await settle()
  t.equal(client.answers.length, 3)
  latches.open('b2')
  latches.open('a2')
  await settle()
  latches.open('a3')
  client.send(read('A'), read('B')).end()
  await done
  t.same(client.answers.at(-2)!.data, ['a1', 'a2', 'a3'])
  t.same(client.answers.at(-1)!.data, ['b1', 'b2'])
})

t.test('a line may name what an earlier line creates, and name it otherwise', async (t) => {
  const { client, system, done } = bulk()
  const seen: string[] = []
  system.before = async (request) => {
    // Makers dawdle: whoever doesn't wait for them comes too early.
    if (request.messages[0]!.type === 'create') for (let i = 0; i < 3; i++) await settle()
    seen.push(request.id)
    return null
  }
  client.send(
    create('A'),
    note('A', '1'),
    { id: UUID, messages: [{ type: 'create', body: { orderNumber: 'B' } }] },
    note('B', '2'),
    note(UUID, '3'),
    note(UUID.toUpperCase(), '4'),
    read('B'),
  )
  client.end()
  await done
  t.same(
    client.answers.map((answer) => answer.errors),
    Array(7).fill(undefined),
  )
  t.same(client.answers.at(-1)!.data, ['2', '3', '4'])
  t.same(seen, ['new', 'A', UUID, 'B', UUID, UUID, 'B'])
})

t.test('at most so many lines under way, then the body waits', async (t) => {
  const { client, system, done } = bulk()
  const release: (() => void)[] = []
  system.before = () => new Promise((resume) => release.push(() => resume(null)))
  const lines = Array.from({ length: LIMITS.actors.bulkLinesInFlightMax + 100 }, () => create())
  client.send(...lines)
  await settle()
  t.equal(release.length, LIMITS.actors.bulkLinesInFlightMax)
  t.equal(client.taken, LIMITS.actors.bulkLinesInFlightMax + 1, 'one line is read ahead')
  for (const resume of release.splice(0, 10)) resume()
  await settle()
  t.equal(client.answers.length, 10)
  t.equal(client.taken, LIMITS.actors.bulkLinesInFlightMax + 11)
  client.end()
  while (client.answers.length < lines.length) {
    for (const resume of release.splice(0)) resume()
    await settle()
  }
  await done
})

t.test('at most so many bytes under way, and a larger line goes alone', async (t) => {
  const { client, system, done } = bulk()
  const release: (() => void)[] = []
  system.before = () => new Promise((resume) => release.push(() => resume(null)))
  const large = note('nobody', 'x'.repeat(LIMITS.actors.bulkBytesInFlightMax / 3))
  client.send(large, { ...large, id: 'b' }, { ...large, id: 'c' }, { ...large, id: 'd' }).end()
  await settle()
  t.equal(release.length, 2)
  release.shift()!()
  await settle()
  t.equal(release.length, 2)
  while (client.answers.length < 4) {
    for (const resume of release.splice(0)) resume()
    await settle()
  }
  await done
})

t.test('a client that does not read stops its own lines', async (t) => {
  const { client, done } = bulk()
  client.reading = false
  const count = LIMITS.actors.bulkLinesInFlightMax * 2
  client.send(...Array.from({ length: count }, () => create()))
  client.end()
  await settle()
  t.equal(client.answers.length, 1, 'one write waits for room')
  t.ok(client.taken <= LIMITS.actors.bulkLinesInFlightMax + 2, String(client.taken))
  while (client.answers.length < count) {
    client.read()
    await settle()
  }
  await done
})

t.test('busy shards: lines are sent again, fewer at once, until their time is up', async (t) => {
  const { client, system, clock, done } = bulk()
  const busy: Reply = { outcome: 'refused', error: errorItem('TOO_BUSY', 'busy') }
  let refusals = 3
  system.before = () => (refusals-- > 0 ? busy : null)
  client.send(create('A'))
  await settle()
  for (let i = 0; i < 3; i++) {
    t.equal(client.answers.length, 0)
    t.equal(clock.timers.length, 1)
    const timer = clock.timers.shift()!
    t.ok(timer.at - clock.nowMs <= LIMITS.actors.bulkRetryMs * 2 ** i)
    clock.nowMs = timer.at
    timer.run()
    await settle()
  }
  t.notOk('errors' in client.answers[0]!)
  t.ok(system.asked.at(-1)!.budgetMs < system.asked[0]!.budgetMs, 'the time left shrinks')

  refusals = Infinity
  client.send(create('B'))
  client.end()
  await settle()
  const began = clock.nowMs
  while (client.answers.length < 2) {
    const timer = clock.timers.shift()!
    clock.nowMs = timer.at
    timer.run()
    await settle()
  }
  await done
  t.equal(client.answers[1]!.errors![0]!.code, 'TOO_BUSY')
  t.equal(client.answers[1]!.errors![0]!.details!['line'], 2)
  const spent = clock.nowMs - began
  t.ok(
    spent <= LIMITS.sharding.requestBudgetMs && spent > LIMITS.sharding.requestBudgetMs - 1_000,
    String(spent),
  )
})

t.test('busy shards: the window shrinks once for those refused together, and grows', async (t) => {
  const { client, system, clock, done } = bulk()
  system.before = () => ({ outcome: 'refused', error: errorItem('TOO_BUSY', 'busy') })
  const count = LIMITS.actors.bulkLinesInFlightMax * 2
  client.send(...Array.from({ length: count }, () => create()))
  client.end()
  await settle()
  const half = LIMITS.actors.bulkLinesInFlightMax / 2
  t.equal(system.asked.length, half, 'half of them, though every one was refused')
  const later: (() => void)[] = []
  system.before = () => new Promise((resume) => later.push(() => resume(null)))
  clock.nowMs += LIMITS.actors.bulkRetryMs * 2
  for (const timer of clock.timers.splice(0)) timer.run()
  await settle()
  t.equal(later.length, half)
  for (const go of later.splice(0, 100)) go()
  await settle()
  t.equal(client.answers.length, 100)
  t.equal(later.length, half + 100, 'each success makes room for one more')
  while (client.answers.length < count) {
    for (const go of later.splice(0)) go()
    await settle()
  }
  await done
})

t.test('refusals and unknown outcomes are answers of their lines', async (t) => {
  const { client, system, done } = bulk()
  const replies: Reply[] = [
    { outcome: 'unknown', error: errorItem('OUTCOME_UNKNOWN', 'who knows', { messageId: 'm' }) },
    { outcome: 'refused', error: errorItem('UNAVAILABLE', 'away') },
  ]
  system.before = () => replies.shift() ?? null
  client.send(create('A'), create('B'), create('C')).end()
  await done
  t.match(client.answers[0], {
    id: 'new',
    errors: [{ code: 'OUTCOME_UNKNOWN', details: { messageId: 'm', line: 1 } }],
  })
  t.match(client.answers[1]!.errors, [{ code: 'UNAVAILABLE', details: { line: 2 } }])
  t.notOk('errors' in client.answers[2]!)
})

t.test(
  'consistency stands where nothing else is under way, and covers what was before',
  async (t) => {
    const { client, system, done } = bulk()
    client.send(read('nobody'))
    await settle()
    t.notOk('consistency' in client.answers[0]!, 'nothing was committed yet')
    client.send(create('A'), create('B'), note('A', 'x'), read('nobody'))
    await settle()
    t.same(
      client.answers.map((answer) => answer.consistency),
      [undefined, undefined, undefined, undefined, '0:3'],
    )
    let offset = 10
    system.before = () => ({
      outcome: 'answered',
      actorId: UUID,
      keys: [],
      results: [{ type: 'note', success: true }],
      position: { shard: offset % 2, offset: offset-- },
    })
    client.send(note(UUID, 'x'), note(OTHER, 'x'), note('A', 'x'))
    client.end()
    await done
    t.equal(client.answers.at(-1)!.consistency, '0:10,1:9')
  },
)

t.test('permissions, by the UUID where needed', async (t) => {
  const one = parseAce(`actors/order/${UUID}:note`)
  if (!one.ok) throw new Error(one.reason)
  const { client, system, done } = bulk({ acl: new Acl([one.ace]) })
  await system.ask({
    type: 'order',
    id: UUID,
    messages: [{ type: 'create', body: { orderNumber: 'A' } }],
    idempotencyKey: null,
    bodyHash: '',
    by: 'x',
    preview: false,
    budgetMs: 1,
    trace: '',
  })
  client.send(note(UUID, 'x'), note('A', 'y'), note(OTHER, 'z'), create('B')).end()
  await done
  t.same(
    client.answers.map((answer) => answer.errors?.[0]?.code),
    [undefined, undefined, 'UNAUTHORIZED_MESSAGE', 'UNAUTHORIZED_MESSAGE'],
  )
})

t.test('a stream that outlives its token: who calls is looked up for each line', async (t) => {
  const { system, client, done } = bulk()
  client.send(note('1', 'a'))
  await settle()
  const asked = system.asked.length
  client.who = new RequestError('UNAUTHENTICATED', 'it was revoked')
  client.send(note('1', 'b'), { ...note('2', 'c'), idempotencyKey: 'k' })
  await settle()
  t.equal(system.asked.length, asked, 'nothing was done')
  client.who = { ...SOMEBODY, id: 'shop', sessionId: UUID, acl: new Acl([]) }
  client.send(note('1', 'e')).end()
  await done
  const codes = client.answers.slice(1).map(({ errors }) => errors?.[0]?.code)
  t.same(codes, ['UNAUTHENTICATED', 'UNAUTHENTICATED', 'UNAUTHORIZED_MESSAGE'])
})

t.test('keys of lines go along with a hash of their messages', async (t) => {
  const { client, system, done } = bulk()
  client.send({ ...create('A'), idempotencyKey: 'k' }, create('B')).end()
  await done
  t.equal(system.asked[0]!.idempotencyKey, 'k')
  t.equal(system.asked[0]!.bodyHash.length, 32)
  t.equal(system.asked[1]!.idempotencyKey, null)
})

t.test('preview stores nothing', async (t) => {
  const { client, system, done } = bulk({ query: 'preview' })
  client.send(create('A'), read('A')).end()
  await done
  t.notOk('errors' in client.answers[0]!)
  t.equal(client.answers[1]!.errors![0]!.code, 'NOT_FOUND')
  t.equal(system.heads()[0]!.offset, 0)
})

t.test('an unknown type refuses the whole request', async (t) => {
  await t.rejects(bulk({ type: 'nonsense' }).done, { errors: [{ code: 'NOT_FOUND' }] })
})

t.test('a mistake of ours ends the run', async (t) => {
  const { client, system, done } = bulk()
  system.before = () => {
    throw new TypeError('ours')
  }
  client.send(create('A'), create('B'))
  client.end()
  await t.rejects(done, new TypeError('ours'))
})
