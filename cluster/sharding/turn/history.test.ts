// An actor's past is read in pages of bytes, and nothing is kept of them but what is asked for
// (CONTRACT 1.3, PROTOCOL 3.12).

import t from 'tap'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Test as Tap } from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import { overrideLimits } from '../../../config/testing/override-limits.ts'
import type { Behaviour, Checkpoint } from '../../../protocol/behaviour.ts'
import type { EntryRow } from '../../../storage/journal.ts'
import { settle } from '../../testing/harness.ts'
import { ledger } from '../../testing/ledger.ts'
import type { Ledger } from '../../testing/ledger.ts'
import { Scene, data, latch } from '../testing/scene.ts'

const ENTRY_BYTES = 100_000
const PAGES_BYTES = 1_000_000

/** Large entries, small state: only the newest token is kept. */
const forgetful: Behaviour<Ledger> = {
  ...ledger,
  evolve(state, record, meta) {
    const next = ledger.evolve(state, record, meta)
    return { ...next, tokens: next.tokens.slice(-1) }
  },
  *decide(state, message, turn) {
    const decision = yield* ledger.decide(state, message, turn)
    if (!decision.ok || decision.state.tokens === undefined) return decision
    return { ...decision, state: { ...decision.state, tokens: decision.state.tokens.slice(-1) } }
  },
}

setFlagsFromString('--expose-gc')
const gc = runInNewContext('gc') as () => void

interface Read {
  readonly of: WeakRef<Uint8Array>
  readonly bytes: number
}

/** Copies of what is read, and how many bytes of them were in memory at once. */
class Reading {
  readonly #reads: Read[] = []
  most = 0
  reads = 0

  rows(rows: readonly EntryRow[]): readonly EntryRow[] {
    this.reads++
    gc()
    const before = this.#reads.filter(({ of }) => of.deref() !== undefined)
    const copies = rows.map((row) => ({ ...row, body: Buffer.from(Uint8Array.from(row.body)) }))
    for (const { body } of copies) {
      this.#reads.push({ of: new WeakRef(body), bytes: body.length })
    }
    const sum = (all: readonly { readonly bytes: number }[]): number =>
      all.reduce((bytes, one) => bytes + one.bytes, 0)
    this.most = Math.max(this.most, sum(before) + sum(this.#reads.slice(-rows.length)))
    return copies
  }
}

async function long(count: number): Promise<{ scene: Scene; id: string; reading: Reading }> {
  const scene = new Scene({ behaviours: [forgetful] })
  await scene.run(scene.shard.claim())
  const id = await scene.made()
  for (let i = 0; i < count; i++) {
    const token = `${i} ${'x'.repeat(ENTRY_BYTES)}`
    await scene.run(scene.ask(id, { say: [['append', { token }]] }))
    if (i % 50 === 0) await scene.clock.advance(LIMITS.sharding.flushStoredMs)
  }
  await scene.clock.advance(LIMITS.sharding.flushStoredMs * 2)
  const reading = new Reading()
  const { derived } = scene.journal
  const entries = derived.entries.bind(derived)
  derived.entries = (actorId, range) => reading.rows(entries(actorId, range) as EntryRow[])
  return { scene, id, reading }
}

async function checkpoints(scene: Scene, id: string): Promise<Checkpoint[]> {
  return data(await scene.run(scene.ask(id, { say: [['checkpoints']] }))) as Checkpoint[]
}

function isBounded(t: Tap, reading: Reading): void {
  t.ok(reading.reads > 20, `${reading.reads} reads`)
  t.ok(reading.most <= PAGES_BYTES, `${reading.most} bytes at once`)
}

t.test('checkpoints of large entries', async (t) => {
  const { scene, id, reading } = await long(150)
  const found = await checkpoints(scene, id)
  t.equal(found.length, 100, 'the newest that were asked for')
  const times = found.map(({ timestamp }) => Date.parse(timestamp))
  t.same(
    times,
    times.toSorted((a, b) => a - b),
    'oldest first',
  )
  isBounded(t, reading)
})

t.test('a state as it was, behind large entries', async (t) => {
  const { scene, id, reading } = await long(150)
  const wanted = (await checkpoints(scene, id))[90]!.checkpointId
  const at = await scene.run(scene.ask(id, { say: [['at', { id: wanted }]] }))
  t.match((data(at) as string[])[0], /^140 x/)
  isBounded(t, reading)
})

t.test('what a dropped turn reads is no longer read', async (t) => {
  const { scene, id, reading } = await long(150)
  const asked = scene.tell(scene.envelope(id, { say: [['checkpoints']] }))
  const resting = scene.shard.seal()
  t.ok(await scene.run(resting))
  const { reads } = reading
  await scene.clock.advance(LIMITS.sharding.sealedHeldMs / 2)
  t.ok(reading.reads <= reads + 1, 'at most the read under way')
  scene.shard.unseal()
  t.equal((data(await scene.run(asked)) as Checkpoint[]).length, 100)
})

t.test('checkpoints are as many as an answer has room for, the newest', async (t) => {
  const { checkpointsBytesMax } = LIMITS.sharding
  t.teardown(() => overrideLimits({ 'sharding.checkpointsBytesMax': checkpointsBytesMax }))
  overrideLimits({ 'sharding.checkpointsBytesMax': 1_000 })
  const { scene, id } = await long(30)
  const found = await checkpoints(scene, id)
  t.ok(found.length > 2 && JSON.stringify(found).length <= 1_001, `${found.length}`)
  overrideLimits({ 'sharding.checkpointsBytesMax': checkpointsBytesMax })
  t.same((await checkpoints(scene, id)).slice(-found.length), found)
})

t.test('checkpoints whose rows are there, and not yet known to be, are told once', async (t) => {
  const scene = new Scene({ hooks: {} })
  await scene.run(scene.shard.claim())
  const id = await scene.made()
  // A write is known to be there once its snapshots are, too.
  const snapshot = latch()
  scene.journal.hooks.beforeWrite = (_, rows) =>
    rows.some(({ kind }) => kind === 'snapshot') ? snapshot.opened.then(() => null) : null
  const append = (token: string) => scene.run(scene.ask(id, { say: [['append', { token }]] }))
  const { snapshotEntriesMin: count, snapshotEntryBytesMin: bytes } = LIMITS.sharding
  for (let i = 1; i < count; i++) await append('x'.repeat((2 * bytes) / count))
  await append('behind it')
  const { head } = scene.shard.gate
  t.ok(scene.shard.flusher.flushed < head - 1, 'the snapshot is on its way')
  const during = (await checkpoints(scene, id)).map(({ checkpointId }) => checkpointId)
  t.equal(during.length, count + 1)
  snapshot.open()
  await settle()
  t.equal(scene.shard.flusher.flushed, head)
  t.same(
    during,
    (await checkpoints(scene, id)).map(({ checkpointId }) => checkpointId),
  )
})

t.test('a checkpoint names the commands that its first record does', async (t) => {
  const behaviour = {
    ...ledger,
    *decide(...asked: Parameters<typeof ledger.decide>) {
      const decision = yield* ledger.decide(...asked)
      if (!decision.ok || decision.records.length < 2) return decision
      const [first, ...rest] = decision.records
      return { ...decision, records: [{ ...first, commands: ['one', 'two'] }, ...rest] }
    },
  } as Behaviour
  const scene = new Scene({ behaviours: [behaviour] })
  await scene.run(scene.shard.claim())
  const id = await scene.made()
  await scene.run(scene.ask(id, { say: [['append', { token: 'second' }]] }))
  const [made, appended] = await checkpoints(scene, id)
  t.same(made!.metadata, { message: 'open', commands: ['one', 'two'] })
  t.same(appended!.metadata, { message: 'append' })
})
