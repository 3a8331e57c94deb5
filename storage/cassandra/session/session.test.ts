// What becomes of a statement whose answer is an error, and what the driver is told of each: a
// conditional one is never repeated, and its outcome is unknown. Source: PROTOCOL 3.1 "Driver".

import { Client, errors, policies, types, type QueryOptions } from 'cassandra-driver'
import t, { type Test } from 'tap'
import { RequestError } from '../../../protocol/errors.ts'
import { Session, type Statement } from './session.ts'
import { recorder } from '../testing/recorder.ts'

const { invalid, writeTimeout } = types.responseErrorCodes
const UPDATE: Statement = { query: 'UPDATE', params: [1] }

interface Sent {
  readonly statements: readonly unknown[]
  readonly params: readonly unknown[] | null
  readonly options: QueryOptions
}

/** A session whose requests are answered by `answer`. */
async function scene(t: Test, answer: (options: QueryOptions) => unknown) {
  const sent: Sent[] = []
  const say = async (one: Sent): Promise<unknown> => {
    sent.push(one)
    return answer(one.options)
  }
  t.intercept(Client.prototype, 'connect', { value: async () => undefined })
  t.intercept(Client.prototype, 'execute', {
    value: (query: string, params: readonly unknown[], options: QueryOptions) =>
      say({ statements: [query], params, options }),
  })
  t.intercept(Client.prototype, 'batch', {
    value: (statements: readonly Statement[], options: QueryOptions) =>
      say({ statements, params: null, options }),
  })
  const log = recorder()
  const time = { ms: 0 }
  const session = await Session.connect({
    ...{ contactPoints: ['127.0.0.1:1'], datacenter: 'datacenter1', log },
    now: () => time.ms,
  })
  t.teardown(() => session.close())
  return { session, sent, log, time }
}

function fails(error: Error): () => never {
  return () => {
    throw error
  }
}

const rowsOf = (...names: readonly string[]) => names.map((name) => ({ name }))

t.test('a conditional statement: applied, refused, or unknown whatever went wrong', async (t) => {
  for (const isApplied of [true, false]) {
    const { session } = await scene(t, () => ({ wasApplied: () => isApplied }))
    const wanted = isApplied ? 'applied' : 'refused'
    t.equal(await session.conditional('UPDATE', []), wanted)
    t.equal(await session.conditionalBatch([UPDATE, UPDATE]), wanted)
  }
  for (const error of [
    new errors.OperationTimedOutError('late'),
    new errors.NoHostAvailableError({}),
    new errors.ResponseError(writeTimeout, 'late'),
    new errors.ResponseError(invalid, 'not understood'),
    new Error('anything'),
  ]) {
    const { session } = await scene(t, fails(error))
    t.equal(await session.conditional('UPDATE', []), 'unknown', error.message)
    t.equal(await session.conditionalBatch([UPDATE]), 'unknown', error.message)
  }
})

t.test('a read or a register that is not answered is 503, with its cause', async (t) => {
  const error = new errors.OperationTimedOutError('late')
  const { session } = await scene(t, fails(error))
  const page = { rows: 5, from: null }
  for (const work of [
    () => session.read('SELECT', []),
    () => session.readSerial('SELECT', []),
    () => session.readPage('SELECT', [], page),
    () => session.readEverywhere('SELECT', []),
    () => session.put([UPDATE]),
    () => session.put([UPDATE, UPDATE]),
    () => session.knows('k.t'),
  ]) {
    const found = await work().then(
      () => null,
      (e: unknown) => e,
    )
    t.ok(found instanceof RequestError)
    t.match(found, { errors: [{ code: 'UNAVAILABLE' }], cause: error })
  }
})

t.test('a mistake of ours is no weather: it is thrown as it is', async (t) => {
  for (const error of [
    new TypeError('no number'),
    new RangeError('too far'),
    new errors.ArgumentError('not so'),
  ]) {
    const { session } = await scene(t, fails(error))
    for (const work of [
      () => session.conditional('UPDATE', []),
      () => session.conditionalBatch([UPDATE]),
      () => session.read('SELECT', []),
      () => session.put([UPDATE]),
    ]) {
      await t.rejects(async () => void (await work()), error)
    }
  }
})

t.test('the driver may repeat what can be repeated, and nothing else', async (t) => {
  const { session, sent } = await scene(t, () => ({ rows: [], wasApplied: () => true }))
  session.fit({ timeoutMs: 4_321, bounds: { bytes: 7, partitions: 3 } })
  t.same(session.bounds, { bytes: 7, partitions: 3 })
  await session.conditional('UPDATE', [1])
  await session.conditionalBatch([UPDATE, UPDATE])
  for (const { options } of sent) {
    t.equal(options.isIdempotent, false)
    t.ok(options.retry instanceof policies.retry.FallthroughRetryPolicy)
  }
  t.equal((sent[1]!.options as { logged?: boolean }).logged, true)
  const first = sent.length
  await session.read('SELECT', [2])
  await session.readSerial('SELECT', [2])
  await session.put([UPDATE])
  await session.put([UPDATE, UPDATE])
  for (const { options } of sent.slice(first)) t.equal(options.isIdempotent, true)
  t.equal((sent.at(-1)!.options as { logged?: boolean }).logged, false)
  t.ok(sent.every(({ options }) => options.readTimeout === 4_321 && options.prepare === true))
  t.same(sent[0]!.params, [1])
  t.same(sent.at(-2), { ...sent.at(-2), statements: ['UPDATE'], params: [1] })
  t.same(sent.at(-1)!.statements, [UPDATE, UPDATE])
})

t.test('all rows are read, page by page, in their order', async (t) => {
  const pages = [rowsOf('a', 'b'), rowsOf('c'), rowsOf(), rowsOf('d')]
  const asked: unknown[] = []
  const { session } = await scene(t, ({ pageState, fetchSize }) => {
    asked.push([pageState, fetchSize])
    const at = Number(pageState ?? 0)
    return { rows: pages[at], pageState: at + 1 < pages.length ? String(at + 1) : undefined }
  })
  t.same(await session.read('SELECT', [], 2), rowsOf('a', 'b', 'c', 'd'))
  t.same(asked, [
    [undefined, 2],
    ['1', 2],
    ['2', 2],
    ['3', 2],
  ])
  const page = await session.readPage('SELECT', [], { rows: 9, from: '2' })
  t.same(page, { rows: [], next: '3' })
  t.same(await session.readPage('SELECT', [], { rows: 9, from: '3' }), {
    rows: rowsOf('d'),
    next: null,
  })
})

t.test('a statement that Cassandra refuses is told of once a minute', async (t) => {
  const error = new errors.ResponseError(invalid, 'no such column')
  const { session, log, time } = await scene(t, fails(error))
  const told = () => log.told.filter(({ text }) => text === 'Cassandra refuses a statement').length
  for (const [ms, wanted] of [
    [0, 1],
    [59_999, 1],
    [60_000, 2],
    [119_999, 2],
    [120_000, 3],
  ] as const) {
    time.ms = ms
    await session.conditional('UPDATE', [])
    t.equal(told(), wanted, `${ms} ms`)
  }
  t.match(log.told[0], { level: 'error', fields: { error: /no such column/ } })
})

t.test('an outage is told of once, and its end', async (t) => {
  const state = { isAway: true }
  const { session, log, time } = await scene(t, async () => {
    if (state.isAway) throw new errors.OperationTimedOutError('late')
    return { rows: [] }
  })
  for (let i = 0; i < 5; i++) await t.rejects(session.read('SELECT', []))
  t.match(log.told, [{ text: 'statements to Cassandra fail' }])
  state.isAway = false
  time.ms = 5_001
  await session.read('SELECT', [])
  t.match(log.told.at(-1), { text: 'Cassandra answers again' })
})

t.test('whether a table is there, and whether the nodes agree on the schema', async (t) => {
  const refused = await scene(t, fails(new errors.ResponseError(invalid, 'unconfigured table')))
  t.equal(await refused.session.knows('k.t'), false)
  const there = await scene(t, () => ({ info: { isSchemaInAgreement: true } }))
  t.equal(await there.session.knows('k.t'), true)
  await t.resolves(there.session.define('CREATE'))
  t.equal(there.sent.at(-1)!.options.isIdempotent, false)
  const apart = await scene(t, () => ({ info: { isSchemaInAgreement: false } }))
  await t.rejects(apart.session.define('CREATE'), /do not agree on the schema/)
})
