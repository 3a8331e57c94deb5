// Days pass over an embedded store: everything that may go goes, and nothing else does. Source:
// PROTOCOL 3.12 "What expires".

import t, { type Test } from 'tap'
import { LIMITS } from '../config/limits.ts'
import { overrideLimits } from '../config/testing/override-limits.ts'
import type { Behaviour, Decision, SystemState } from '../protocol/behaviour.ts'
import { errorItem } from '../protocol/errors.ts'
import { SYSTEM_SHARD } from '../protocol/ids.ts'
import type { Message, Reply } from '../protocol/message.ts'
import { openEmbeddedJournal } from '../storage/embedded/journal/journal.ts'
import { journalOptions } from '../storage/embedded/testing/journal-options.ts'
import { verifyLog } from '../storage/embedded/verify/store.ts'
import { systemClock } from './clock.ts'
import { Member } from './member.ts'
import { memoryWire } from './memory/wire.ts'
import { trimStep } from './sharding/commit/trimmer.ts'
import { ledger } from './testing/ledger.ts'

const HOUR_MS = 3_600_000
const EXPIRY_MS = LIMITS.storage.derivedTtlSeconds * 1_000
const quiet = () => undefined

const refuse = (code: 'NOT_FOUND' | 'CONFLICT'): Decision<SystemState> => {
  return { ok: false, errors: [errorItem(code, 'as asked')] }
}

/** An actor of the configuration, as node/system-actor.ts makes them. */
const setting: Behaviour<SystemState> = {
  ...(ledger as Behaviour),
  type: 'setting',
  home: 'system',
  messageTypes: ['put', 'delete'],
  creates: ['put'],
  isRead: () => false,
  chosenKey: () => null,
  mayTake: () => [],
  *decide(state, { type, body }: Message, turn) {
    const { value, version } = body as { value?: unknown; version?: number }
    const isThere = state !== null && !state.deleted
    if (type === 'delete' && !isThere) return refuse('NOT_FOUND')
    if (version !== undefined && version !== turn.version) return refuse('CONFLICT')
    const deleted = type === 'delete'
    const records = [deleted ? { t: 'deleted' } : { t: 'put', key: turn.key, value }]
    const next = deleted ? { ...state!, deleted } : { key: turn.key!, value, deleted }
    return { ok: true, records, state: next, data: turn.version + 1 }
  },
  evolve: (state, record) =>
    record.t === 'deleted'
      ? { ...state!, deleted: true }
      : { key: record['key'] as string, value: record['value'], deleted: false },
  isDeleted: (state) => state.deleted,
  keys: (state) => [state.key],
  naturalKeys: () => [],
  toSnapshot: (state) => state,
  fromSnapshot: (snapshot) => snapshot as SystemState,
}

/** A node of one shard, whose clocks a test moves on. */
async function start(t: Test) {
  const real = systemClock()
  let wallMs = 0
  let monotonicMs = 0
  const clock = {
    ...real,
    nowMs: () => real.nowMs() + wallMs,
    monotonicMs: () => real.monotonicMs() + monotonicMs,
  }
  const options = { ...journalOptions(t), shards: 1, clock: clock.nowMs }
  const open = async () => {
    const journal = await openEmbeddedJournal(options)
    const member = new Member({
      memberId: 'a',
      address: 'http://a',
      version: '1',
      journal,
      cluster: null,
      behaviours: [ledger, setting],
      world: { clock, random: options.random },
      wire: memoryWire((run) => clock.defer(run)),
      wireDeliversOnce: true,
      log: {
        debug: quiet,
        info: quiet,
        warn: quiet,
        error: (fields, text) => void t.fail(text, { fields }),
      },
      hooks: { has: () => false, effects: () => [] },
      query: () => null,
      throttleMs: () => 0,
      onCommitted: quiet,
      doneWith: () => Infinity,
      onLost: quiet,
    })
    await member.start()
    return { journal, member }
  }
  let node = await open()
  const stop = async () => {
    await node.member.stop(1_000)
    await node.journal.close()
  }
  // The clock keeps no process alive, nor while a member stops.
  const alive = setInterval(quiet, 1_000)
  t.teardown(async () => {
    await stop()
    clearInterval(alive)
  })
  const imageAt = async () => (await node.journal.derived.image())?.offset ?? 0
  const ask = async (
    to: { readonly type: string; readonly id: string },
    message: Message,
    key: string | null = null,
  ) =>
    said(
      await node.member.ask({
        ...to,
        messages: [message],
        idempotencyKey: key,
        bodyHash: key === null ? '' : JSON.stringify([message.type, message.body]),
        by: 'tester',
        preview: false,
        budgetMs: 10_000,
        trace: 'test',
      }),
    )
  /** What a node does by itself now and then, once everything committed is flushed. */
  const upkeep = async (): Promise<void> => {
    const { member, journal } = node
    for (const shard of member.shards.values()) {
      await shard.prepareHandoff()
      for (let looks = 0; looks < 2; looks++) shard.sweep(true)
      const needed = shard.number === SYSTEM_SHARD ? await imageAt() : Infinity
      while (await trimStep(shard, needed));
    }
    await journal.derived.expire!((shard) => member.shards.get(shard)?.clockMs() ?? null)
  }
  return {
    /** The machine's wall clock alone is set. */
    setWall: (ms: number) => void (wallMs += ms),
    async pass(ms: number) {
      wallMs += ms
      monotonicMs += ms
      await upkeep()
    },
    async restart() {
      await stop()
      node = await open()
    },
    ask: (id: string, type: string, body: object = {}, key: string | null = null) =>
      ask({ type: 'ledger', id }, { type, body }, key),
    tell: (id: string, type: string, body: object = {}, key: string | null = null) =>
      ask({ type: 'setting', id }, { type, body }, key),
    /** What the maps have of a setting. */
    shown: (id: string) => node.member.system.get('setting', id),
    /** Offset behind which the log of `system` begins, and that of its newest image. */
    async systemLog() {
      const [first] = await node.journal.log.read(SYSTEM_SHARD, 0, 1)
      const begin = first === undefined ? Infinity : first.offset - first.count
      return { begin, imageAt: await imageAt() }
    },
    async numbers(id: string) {
      const range = { order: 'ascending', after: 0, bytesMax: 1e6 } as const
      return (await node.journal.derived.entries(id, range)).map(({ n }) => n)
    },
    async findings() {
      await stop()
      const lines: string[] = []
      await verifyLog(options.dir, (line) => lines.push(line))
      node = await open()
      return lines
    },
  }
}

function said(reply: Reply): unknown {
  if (reply.outcome !== 'answered') return reply.error.code
  const result = reply.results.at(-1)!
  return result.success ? (result.data ?? 'success') : result.errors[0]!.code
}

t.test('an order that was refused for days before it was made', async (t) => {
  const node = await start(t)
  const id = 'aaaaaaaa-0000-4000-8000-000000000001'
  t.match(await node.ask('new', 'open', { number: 'N1' }), { number: 'N1' })
  const refused = () => node.ask(id, 'open', { number: 'N1' })
  for (let tries = 0; tries < 3; tries++) {
    t.equal(await refused(), 'ALREADY_EXISTS')
    await node.pass(EXPIRY_MS / 2 - HOUR_MS)
  }
  t.equal(await node.ask(id, 'open', { number: 'N1' }, 'k'), 'ALREADY_EXISTS')
  await node.ask('N1', 'renumber', { number: 'N9' })
  await node.pass(EXPIRY_MS / 2 - HOUR_MS)
  t.equal(await node.ask(id, 'open', { number: 'N1' }, 'k'), 'ALREADY_EXISTS', 'within its day')
  t.match(await node.ask(id, 'open', { number: 'N2', token: 'x' }), { number: 'N2' })
  for (const token of ['y', 'z']) {
    t.equal(await node.ask(id, 'append', { token: 'no', unless: 'x' }), 'INVALID_STATE')
    t.equal(await node.ask(id, 'append', { token }), token === 'y' ? 2 : 3)
    await node.pass(2 * EXPIRY_MS)
  }
  t.same(await node.numbers(id), [5, 7, 9], 'what changed it')
  await node.restart()
  t.same(await node.ask(id, 'read'), ['x', 'y', 'z'])
  t.same(await node.ask('N2', 'read'), ['x', 'y', 'z'])
  t.equal(await node.ask(id, 'open', { number: 'N3' }), 'ALREADY_EXISTS')
  t.equal(await node.ask(id, 'append', { token: 'last' }), 4)
  t.same(await node.findings(), [])
})

t.test('a wall clock that is set right by days doubles nothing', async (t) => {
  const node = await start(t)
  await node.pass(100 * HOUR_MS)
  node.setWall(-60 * HOUR_MS)
  const open = () => node.ask('new', 'open', { token: 'once' }, 'k')
  const first = await open()
  await node.pass(60_000)
  node.setWall(60 * HOUR_MS)
  await node.pass(60_000)
  t.same(await open(), first)
  await node.pass(EXPIRY_MS + HOUR_MS)
  t.notSame(await open(), first, 'by its own clock its time is over')
})

t.test('a setting that was refused for days before it was made, and again after', async (t) => {
  t.teardown(overrideLimits({ 'cluster.systemImageEntries': 4 }))
  const node = await start(t)
  for (let tries = 0; tries < 3; tries++) {
    t.equal(await node.tell('late', 'delete'), 'NOT_FOUND')
    t.equal(await node.tell('late', 'put', { value: 'no', version: 1 }), 'CONFLICT')
    await node.pass(EXPIRY_MS / 2 - HOUR_MS)
  }
  t.equal(await node.tell('late', 'put', { value: 'x', version: 0 }, 'k'), 1)
  const { actorId } = node.shown('late')!
  t.equal(await node.tell('gone', 'put', { value: 'x' }), 1)
  t.equal(await node.tell('gone', 'delete'), 2)
  for (const [i, value] of ['y', 'z'].entries()) {
    t.equal(await node.tell('late', 'put', { value: 'no', version: 9 }), 'CONFLICT')
    t.equal(await node.tell('late', 'put', { value, version: i + 1 }), i + 2)
    t.equal(await node.tell('gone', 'delete'), 'NOT_FOUND')
    await node.pass(2 * EXPIRY_MS)
  }
  t.same(await node.numbers(actorId), [7, 9, 11], 'what changed it, and no refusal')
  const { begin, imageAt } = await node.systemLog()
  t.equal(begin, 0, 'nothing of the log is trimmed')
  t.ok(imageAt > 9, `an image is at ${imageAt}`)
  await node.restart()
  t.match(node.shown('late'), { actorId, value: 'z', version: 3 })
  t.equal(node.shown('gone'), null)
  await node.pass(2 * EXPIRY_MS)
  t.equal(await node.tell('late', 'put', { value: 'no', version: 2 }), 'CONFLICT')
  t.equal(await node.tell('late', 'put', { value: 'last', version: 3 }), 4)
  t.equal(await node.tell('gone', 'put', { value: 'again', version: 2 }), 3, 'its version rises')
  await node.restart()
  t.match(node.shown('late'), { actorId, value: 'last', version: 4 })
  t.match(node.shown('gone'), { value: 'again', version: 3 })
  t.same(await node.findings(), [])
})
