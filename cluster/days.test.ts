// Days pass over an embedded store: everything that may go goes, and nothing else does. Source:
// PROTOCOL 3.12 "What expires".

import t, { type Test } from 'tap'
import { LIMITS } from '../config/limits.ts'
import type { Reply } from '../protocol/message.ts'
import { openEmbeddedJournal } from '../storage/embedded/journal.ts'
import { journalOptions } from '../storage/embedded/testing/journal-options.ts'
import { verifyLog } from '../storage/embedded/verify-log.ts'
import { systemClock } from './clock.ts'
import { Member } from './member.ts'
import { memoryWire } from './memory/wire.ts'
import { trimStep } from './sharding/trimmer.ts'
import { ledger } from './testing/ledger.ts'

const HOUR_MS = 3_600_000
const LIFE_MS = LIMITS.derivedTtlSeconds * 1_000
const quiet = () => undefined

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
      behaviours: [ledger],
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
  /** What a node does by itself now and then, once everything committed is flushed. */
  const upkeep = async (): Promise<void> => {
    const { member, journal } = node
    for (const shard of member.shards.values()) {
      await shard.prepareHandoff()
      for (let looks = 0; looks < 2; looks++) shard.sweep(true)
      while (await trimStep(shard, Infinity));
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
    async ask(id: string, type: string, body: object = {}, key: string | null = null) {
      return said(
        await node.member.ask({
          type: 'ledger',
          id,
          messages: [{ type, body }],
          idempotencyKey: key,
          bodyHash: key === null ? '' : JSON.stringify([type, body]),
          by: 'tester',
          preview: false,
          budgetMs: 10_000,
          trace: 'test',
        }),
      )
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
    await node.pass(LIFE_MS / 2 - HOUR_MS)
  }
  t.equal(await node.ask(id, 'open', { number: 'N1' }, 'k'), 'ALREADY_EXISTS')
  await node.ask('N1', 'renumber', { number: 'N9' })
  await node.pass(LIFE_MS / 2 - HOUR_MS)
  t.equal(await node.ask(id, 'open', { number: 'N1' }, 'k'), 'ALREADY_EXISTS', 'within its day')
  t.match(await node.ask(id, 'open', { number: 'N2', token: 'x' }), { number: 'N2' })
  for (const token of ['y', 'z']) {
    t.equal(await node.ask(id, 'append', { token: 'no', unless: 'x' }), 'INVALID_STATE')
    t.equal(await node.ask(id, 'append', { token }), token === 'y' ? 2 : 3)
    await node.pass(2 * LIFE_MS)
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
  await node.pass(LIFE_MS + HOUR_MS)
  t.notSame(await open(), first, 'by its own clock its time is over')
})
