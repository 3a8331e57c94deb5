// The trimmer on one shard with owners that come and go: what the account of the log's bytes says
// must be what is there, and the log waits for a graph index for so long and so much, no more.

import fc from 'fast-check'
import t from 'tap'
import type { Test } from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import { overrideLimits } from '../../../config/testing/override-limits.ts'
import { Scene } from '../testing/scene.ts'
import { trimStep } from './trimmer.ts'

const HOUR = 3_600_000
/** Of one shard and `system`: half of it is the shard's. */
const RETAINED = 40 * 1024
const HELD = 4 * RETAINED
overrideLimits({ 'sharding.feedRetentionBytes': 2 * RETAINED, 'sharding.feedHeldBytes': 2 * HELD })

const rowsOf = (s: Scene) => s.journal.log.read(0, 0, Number.MAX_SAFE_INTEGER)

async function bytesOf(s: Scene): Promise<number> {
  return (await rowsOf(s)).reduce((sum, row) => sum + row.body.length, 0)
}

function account({ shard }: Scene): number {
  return shard.kept.logBytes - shard.kept.trimmedBytes
}

async function trim(s: Scene, wanted?: number): Promise<void> {
  while (await s.run(trimStep(s.shard, Number.POSITIVE_INFINITY, wanted)));
}

async function claimed(): Promise<Scene> {
  const s = new Scene()
  await s.run(s.shard.claim())
  return s
}

/** So many entries of so many bytes, and their derived rows. */
async function write(s: Scene, id: string, count: number, bytes = 1_000): Promise<void> {
  for (let i = 0; i < count; i++) {
    const token = `${i}`.padEnd(bytes, 'x')
    await s.run(s.ask(id, { say: [['append', { token }]] }))
  }
  await s.clock.advance(LIMITS.sharding.flushStoredMs + 100)
}

t.test('a shard that comes to rest, is trimmed and started again keeps its account', async (t) => {
  const s = await claimed()
  const id = await s.made()
  for (let week = 0; week < 3; week++) {
    await write(s, id, 10, 2_000)
    await s.clock.advance(48 * HOUR)
    await trim(s)
    t.equal(await bytesOf(s), 0)
    t.equal(account(s), 0)
    await s.restart()
    await trim(s)
    t.equal(account(s), 0, 'what was trimmed is not counted again')
  }
  await write(s, id, 10, 2_000)
  const there = await bytesOf(s)
  await trim(s)
  t.equal(await bytesOf(s), there, 'what is a moment old stays')
})

/** An owner of an older version has left an account that is too high, and another one follows. */
async function miscounted(): Promise<[Scene, string]> {
  const s = await claimed()
  const id = await s.made()
  await write(s, id, 5)
  const { offset, body } = s.journal.derived.shard(0) as { offset: number; body: Uint8Array }
  const { counted: _, ...memory } = JSON.parse(Buffer.from(body).toString()) as {
    counted: number
    logBytes: number
  }
  const old = Buffer.from(JSON.stringify({ ...memory, logBytes: memory.logBytes + 10 * RETAINED }))
  await s.journal.derived.write(0, s.shard.epoch, [{ kind: 'shard', offset, body: old }])
  await s.restart()
  return [s, id]
}

t.test('an account that an older version has left is counted again', async (t) => {
  const [s] = await miscounted()
  const there = await bytesOf(s)
  await trim(s)
  t.equal(await bytesOf(s), there, 'nothing goes for bytes that are not there')
  t.equal(account(s), there)
})

for (const isSeen of [false, true]) {
  const seen = isSeen ? 'and is read with it, once' : 'too'
  t.test(`what is committed while the log is counted counts, ${seen}`, async (t) => {
    const [s, id] = await miscounted()
    await s.tokens(id)
    await countMeanwhile(t, s, id, isSeen)
  })
}

async function countMeanwhile(t: Test, s: Scene, id: string, isSeen: boolean): Promise<void> {
  if (isSeen) {
    const { log } = s.journal
    const { read } = log
    log.read = async (...args) => {
      await new Promise<void>((resolve) => void s.clock.after(500, resolve))
      return read.apply(log, args)
    }
  } else s.readMs = 500
  const { head } = s.shard.gate
  const counting = trimStep(s.shard, Number.POSITIVE_INFINITY)
  // The oldest row is looked at first.
  await s.clock.advance(600)
  await s.run(s.ask(id, { say: [['append', { token: 'meanwhile' }]] }))
  t.equal(s.shard.gate.head, head + 1)
  t.not(account(s), await s.run(bytesOf(s)), 'it is still being counted')
  await s.run(counting)
  t.equal(account(s), await s.run(bytesOf(s)))
}

interface Act {
  readonly kind: 'write' | 'pass' | 'trim' | 'kill'
  readonly size: number
  /** Hours; part of the log that the index has. */
  readonly much: number
}

const acts = fc.array(
  fc.record({
    kind: fc.constantFrom<Act['kind'][]>('write', 'write', 'pass', 'trim', 'trim', 'kill'),
    size: fc.integer({ min: 1, max: 12_000 }),
    much: fc.integer({ min: 0, max: 10 }),
  }),
  { minLength: 4, maxLength: 24 },
)

t.test('the account is what is there, and what goes may go, whatever happens', async (t) => {
  const property = fc.asyncProperty(acts, async (some) => {
    const s = await claimed()
    const id = await s.made()
    for (const { kind, size, much } of some) {
      if (kind === 'write')
        await s.run(s.ask(id, { say: [['append', { token: 'y'.repeat(size) }]] }))
      else if (kind === 'pass') await s.clock.advance(much * HOUR)
      else if (kind === 'kill') await s.restart()
      else await trimAndCheck(s, Math.floor((s.shard.gate.head * much) / 10))
    }
    await s.clock.advance(LIMITS.sharding.flushStoredMs)
    await trimAndCheck(s, Number.POSITIVE_INFINITY)
  })
  await fc.assert(property, { numRuns: 60 })
  t.pass('they hold')
})

async function trimAndCheck(s: Scene, wanted: number): Promise<void> {
  const before = await rowsOf(s)
  const nowMs = s.shard.clockMs()
  await trim(s, wanted)
  const after = await rowsOf(s)
  const limit = Math.min(s.shard.kept.relayed, s.shard.flusher.stored)
  let left = before.reduce((sum, row) => sum + row.body.length, 0)
  const gone = before.filter(({ offset }) => !after.some((row) => row.offset === offset))
  for (const { offset, body } of gone) {
    const most = offset > wanted ? HELD : RETAINED
    const isOld = nowMs >= LIMITS.sharding.feedRetentionMs
    if (offset > limit || (left <= most && !isOld)) throw new Error(`${offset} has gone too early`)
    left -= body.length
  }
  const [first] = after
  const isHeld = first === undefined || first.offset > limit
  const most = first !== undefined && first.offset > wanted ? HELD : RETAINED
  if (!isHeld && left > most) throw new Error(`${left} bytes stay, ${most} may`)
  if (limit > s.shard.kept.trimmed && left !== account(s)) {
    throw new Error(`${left} bytes are there, the account says ${account(s)}`)
  }
}

t.test('the log waits for an index that is away for a day, not longer', async (t) => {
  const s = await claimed()
  const id = await s.made()
  await write(s, id, 3)
  await s.clock.advance(23 * HOUR)
  await write(s, id, 2)
  await trim(s, 1)
  t.equal((await rowsOf(s))[0]?.offset, 1, 'nothing is a day old')
  await s.clock.advance(2 * HOUR)
  await trim(s, 1)
  t.strictSame(
    (await rowsOf(s)).map(({ offset }) => offset),
    [5, 6],
    'what is younger stays for it',
  )
  t.match(s.logged, [/no longer waits for the graph index: it is made anew 0 1 4/])
  await trim(s, 1)
  t.equal(s.logged.length, 1, 'that is told once')
  await s.restart()
  await s.clock.advance(25 * HOUR)
  await trim(s, 1)
  t.equal(await bytesOf(s), 0)
  t.equal(s.logged.length, 1, 'by another owner neither')
})

t.test('... and up to its bytes, which are many more than it keeps else', async (t) => {
  const s = await claimed()
  const id = await s.made()
  await write(s, id, 12, 10_000)
  const all = await bytesOf(s)
  t.ok(all > 2 * RETAINED && all < HELD)
  await trim(s, 0)
  t.equal(await bytesOf(s), all, 'it waits')
  await write(s, id, 12, 10_000)
  await trim(s, 0)
  t.ok((await bytesOf(s)) <= HELD)
  t.ok((await bytesOf(s)) > HELD - 20_000, 'no more than must goes')
  t.equal(account(s), await bytesOf(s))
  t.match(s.logged, [/no longer waits for the graph index/])
  await trim(s)
  t.ok((await bytesOf(s)) <= RETAINED, 'an index that has it all needs none of it')
})

t.test("it is the shard's clock that counts, not the machine's", async (t) => {
  const s = await claimed()
  const id = await s.made()
  await write(s, id, 3)
  const { nowMs } = s.clock
  s.clock.nowMs = () => nowMs.call(s.clock) + 30 * 24 * HOUR
  await trim(s)
  t.equal((await rowsOf(s)).length, 4)
})
