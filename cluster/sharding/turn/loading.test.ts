// Which of an actor's stored entries make it: all that its log has had, whatever has expired of
// them, what is not durable yet, and whatever a reducer can't apply. Source: PROTOCOL 3.11, 3.12.

import t from 'tap'
import type { Test } from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import { overrideLimits } from '../../../config/testing/override-limits.ts'
import type { Behaviour } from '../../../protocol/behaviour.ts'
import { decodeEntry, encodeEntry, joinEntries } from '../../../protocol/entry/entry.ts'
import type { Entry } from '../../../protocol/entry/entry.ts'
import type { DerivedRow, EntryRow } from '../../../storage/journal.ts'
import { ledger } from '../../testing/ledger.ts'
import { decodeSnapshot } from './activation.ts'
import { Scene, code, data } from '../testing/scene.ts'

const EXPIRY_MS = LIMITS.storage.derivedTtlSeconds * 1_000
const ALL = { order: 'ascending', after: 0, bytesMax: 9e9 } as const

async function started(options: ConstructorParameters<typeof Scene>[0] = {}): Promise<Scene> {
  const scene = new Scene({ hooks: {}, ...options })
  await scene.run(scene.shard.claim())
  return scene
}

/** One message, what its caller is told. */
async function say(scene: Scene, id: string, message: [string, object], key?: string) {
  return code(await scene.run(scene.ask(id, { say: [message], ...(key ? { key } : null) })))
}

const append = (scene: Scene, id: string, token: string) => say(scene, id, ['append', { token }])

async function refused(t: Test, scene: Scene, id: string, key?: string): Promise<void> {
  const told = await say(scene, id, ['append', { token: 'no', unless: 'first' }], key)
  t.equal(told, 'INVALID_STATE')
}

async function flushed(scene: Scene): Promise<void> {
  await scene.clock.advance(LIMITS.sharding.flushStoredMs * 2)
}

/** Every row that may go has gone. */
async function expired(scene: Scene): Promise<void> {
  await flushed(scene)
  await scene.journal.derived.expire!(() => 100 * EXPIRY_MS)
}

function rowsOf(scene: Scene, id: string): readonly EntryRow[] {
  return scene.journal.derived.entries(id, ALL) as readonly EntryRow[]
}

const numbers = (scene: Scene, id: string): number[] => rowsOf(scene, id).map(({ n }) => n)

t.test('an actor is read over the refusals that have gone, wherever they stood', async (t) => {
  const scene = await started()
  const id = await scene.made()
  for (const token of ['second', 'third']) {
    await refused(t, scene, id)
    t.equal(await append(scene, id, token), 'success')
  }
  await refused(t, scene, id)
  await expired(scene)
  t.same(numbers(scene, id), [1, 3, 5])
  await scene.restart()
  t.same(await scene.tokens(id), ['first', 'second', 'third'])
  t.equal(await append(scene, id, 'fourth'), 'success')
  await expired(scene)
  await scene.restart()
  t.same(await scene.tokens(id), ['first', 'second', 'third', 'fourth'])
  const list = data(await scene.run(scene.ask(id, { say: [['checkpoints']] })))
  const [, second] = list as { checkpointId: string }[]
  const at = scene.ask(id, { say: [['at', { id: second!.checkpointId }]] })
  t.same(data(await scene.run(at)), ['first', 'second'], 'nor is its history short')
})

t.test('an actor that was refused before it was made is read once it is', async (t) => {
  const scene = await started()
  const [id, other] = [scene.newUuid(0), await scene.made()]
  const opens = (number: string) => say(scene, id, ['open', { number, token: 'x' }])
  t.equal(await say(scene, other, ['renumber', { number: 'N1' }]), 'success')
  t.equal(await opens('N1'), 'ALREADY_EXISTS')
  t.equal(await opens('N1'), 'ALREADY_EXISTS')
  t.equal(await opens('N2'), 'success')
  await expired(scene)
  t.same(numbers(scene, id), [3])
  await scene.restart()
  t.equal(await append(scene, id, 'y'), 'success')
  t.equal(await opens('N3'), 'ALREADY_EXISTS', 'its id is not free again')
  await scene.restart()
  t.same(await scene.tokens(id), ['x', 'y'])
})

t.test('of what is not durable yet some rows may be there and older ones not', async (t) => {
  const scene = await started()
  const id = await scene.made()
  await flushed(scene)
  scene.journal.hooks.beforeWrite = () => 'unknown'
  for (const token of ['second', 'third']) t.equal(await append(scene, id, token), 'success')
  await refused(t, scene, id)
  const tail = scene.shard.unflushed(id)
  scene.journal.hooks.beforeWrite = undefined
  const last = tail.map(({ offset, body }) => {
    return { kind: 'entry', actorId: id, n: decodeEntry(body).n, offset, body } as const
  })
  await scene.journal.derived.write(0, scene.shard.epoch, last.slice(1))
  scene.journal.hooks.beforeWrite = () => 'unknown'
  t.same(numbers(scene, id), [1, 3, 4])
  await scene.restart()
  t.same(await scene.tokens(id), ['first', 'second', 'third'])
  scene.journal.hooks.beforeWrite = undefined
  await flushed(scene)
  await scene.restart()
  t.same(await scene.tokens(id), ['first', 'second', 'third'])
})

t.test('the answer of a refusal that has gone is not another entry of its number', async (t) => {
  const scene = await started()
  const id = await scene.made()
  const number = 'n'.repeat(LIMITS.sharding.markAnswerBytesMax)
  const holder = await scene.made()
  t.equal(await say(scene, holder, ['renumber', { number }]), 'success')
  const renumber = () => say(scene, id, ['renumber', { number }], 'k')
  t.equal(await renumber(), 'ALREADY_EXISTS')
  t.equal(await say(scene, holder, ['renumber', { number: 'other' }]), 'success')
  t.equal(await renumber(), 'ALREADY_EXISTS', 'read from its entry')
  await expired(scene)
  t.equal(await renumber(), 'success', 'nobody repeats it so late: it is new')
  t.equal(await renumber(), 'success')
})

// What a store holds in which an earlier version has read an actor only as far as its entries were
// dense, and went on from there.
t.test(
  'an abandoned timeline is passed over, and its numbers are not given out again',
  async (t) => {
    const scene = await started()
    const id = await scene.made()
    t.equal(await append(scene, id, 'second'), 'success')
    await refused(t, scene, id)
    for (const token of ['third', 'fourth']) t.equal(await append(scene, id, token), 'success')
    const later = await scene.made()
    await expired(scene)
    const [last] = rowsOf(scene, later)
    const r = [{ t: 'appended', token: 'newer' }]
    const over: Entry = { ...decodeEntry(rowsOf(scene, id)[1]!.body), v: 3, n: 3, m: 'newer', r }
    await scene.journal.derived.write(0, scene.shard.epoch, [
      { kind: 'entry', actorId: id, n: 3, offset: last!.offset, body: encodeEntry(over) },
    ])
    t.same(numbers(scene, id), [1, 2, 3, 4, 5])
    await scene.restart()
    t.same(await scene.tokens(id), ['first', 'second', 'newer'])
    t.match(scene.logged.join(), /entries at offsets 4, 5 are passed over/)
    t.equal(await append(scene, id, 'next'), 'success')
    await flushed(scene)
    await scene.restart()
    t.same(await scene.tokens(id), ['first', 'second', 'newer', 'next'])
    t.same(numbers(scene, id), [1, 2, 3, 4, 5, 6], 'both timelines are there to be looked at')
  },
)

t.test('a refusal that took the place of another hides nothing behind it', async (t) => {
  const scene = await started()
  const id = await scene.made()
  await refused(t, scene, id)
  t.equal(await append(scene, id, 'second'), 'success')
  const later = await scene.made()
  await expired(scene)
  const made = decodeEntry(rowsOf(scene, id)[0]!.body)
  const a: Entry['a'] = { type: 'append', success: false, errors: [] }
  const over: Entry = { ...made, v: 2, n: 2, m: 'over', r: [], a }
  const { offset } = rowsOf(scene, later)[0]!
  await scene.journal.derived.write(0, scene.shard.epoch, [
    { kind: 'entry', actorId: id, n: 2, offset, body: encodeEntry(over) },
  ])
  await scene.restart()
  t.same(await scene.tokens(id), ['first', 'second'])
  t.equal(await append(scene, id, 'third'), 'success')
  await scene.restart()
  t.same(await scene.tokens(id), ['first', 'second', 'third'])
})

/** So many refusals of an actor that never came to be, as its owner has left them. */
async function refusedOften(
  scene: Scene,
  { id, count, more = {} }: { id: string; count: number; more?: Partial<Entry> },
): Promise<void> {
  const first = scene.shard.gate.head + 1
  const a: Entry['a'] = { type: 'append', success: false, errors: [] }
  const fixed = { y: 'ledger', p: id, v: 0, r: [], l: 0 as const, a, t: 0, c: 0, b: 'tester' }
  const bodies = Array.from({ length: count }, (_, i) => {
    return encodeEntry({ ...fixed, n: i + 1, m: `refused ${i + 1}`, ...more })
  })
  for (let i = 0; i < count; i += LIMITS.storage.groupEntriesMax) {
    const some = bodies.slice(i, i + LIMITS.storage.groupEntriesMax)
    const place = { shard: 0, epoch: scene.shard.epoch, head: first - 1 + i, count: some.length }
    await scene.journal.log.append([
      { ...place, commitId: scene.newUuid(), body: joinEntries(some) },
    ])
  }
  const rows = bodies.map((body, i): DerivedRow => {
    return { kind: 'entry', actorId: id, n: i + 1, offset: first + i, body }
  })
  const consumer = { kind: 'consumer', consumer: 'flush', offset: first - 1 + count } as const
  await scene.journal.derived.write(0, scene.shard.epoch, [...rows, consumer])
  await scene.restart()
}

/** What a load of this actor reads of its entries. */
async function readOf(scene: Scene, id: string): Promise<number> {
  const { derived } = scene.journal
  const entries = derived.entries.bind(derived)
  let found = 0
  derived.entries = (actorId, range) => {
    const rows = entries(actorId, range) as readonly EntryRow[]
    if (actorId === id) found += rows.length
    return rows
  }
  await scene.restart()
  await scene.run(scene.ask(id))
  derived.entries = entries
  return found
}

t.test('an actor that was refused ever so often, and never made, is loaded at once', async (t) => {
  const scene = await started()
  const id = scene.newUuid(0)
  const count = 20 * LIMITS.sharding.unmadeSnapshotEntriesMin
  await refusedOften(scene, { id, count })
  t.equal(await readOf(scene, id), count, 'as an earlier version has left it')
  const refuse = () => say(scene, id, ['append', { token: 'no' }], 'k1')
  t.equal(await refuse(), 'NOT_FOUND')
  await flushed(scene)
  t.ok((await readOf(scene, id)) < LIMITS.sharding.unmadeSnapshotEntriesMin)
  t.equal(await refuse(), 'NOT_FOUND')
  t.equal(numbers(scene, id).length, count + 1, 'and is still remembered')
  const open = () => say(scene, id, ['open', { token: 'x' }], 'k2')
  t.equal(await open(), 'success')
  await expired(scene)
  await scene.restart()
  t.equal(await open(), 'success')
  t.same(await scene.tokens(id), ['x'])
  t.equal(await append(scene, id, 'y'), 'success')
  await flushed(scene)
  await scene.restart()
  t.same(await scene.tokens(id), ['x', 'y'])
})

t.test('nothing hides the records of an actor of which only refusals are left', async (t) => {
  const scene = await started()
  const id = scene.newUuid(0)
  await refusedOften(scene, { id, count: LIMITS.sharding.unmadeSnapshotEntriesMin, more: { v: 1 } })
  t.equal(await append(scene, id, 'x'), 'NOT_FOUND')
  await flushed(scene)
  t.equal(scene.journal.derived.snapshot(id), null)
})

/** Hides a stored entry of an actor, as a store that has lost it does. */
function lose(scene: Scene, id: string, lost: number): void {
  const { derived } = scene.journal
  const entries = derived.entries.bind(derived)
  derived.entries = (actorId, range) => {
    const rows = entries(actorId, range) as readonly EntryRow[]
    return rows.filter(({ n }) => actorId !== id || n !== lost)
  }
}

t.test('an entry with records that is missing is noticed, never read over', async (t) => {
  const scene = await started()
  const id = await scene.made()
  for (const token of ['second', 'third']) t.equal(await append(scene, id, token), 'success')
  await flushed(scene)
  lose(scene, id, 2)
  await scene.restart()
  t.same(await scene.tokens(id), ['first'])
  t.equal(await append(scene, id, 'fourth'), 'QUARANTINED')

  const another = await scene.made()
  t.equal(await append(scene, another, 'second'), 'success')
  await flushed(scene)
  lose(scene, another, 2)
  scene.journal.hooks.beforeWrite = () => 'unknown'
  t.equal(await append(scene, another, 'third'), 'success')
  await scene.restart()
  t.equal(code(await scene.run(scene.ask(another))), 'UNAVAILABLE', 'what is left is not served')
  t.match(scene.logged.join(), /entries of .* are missing/)
})

t.test('in quarantine everything but the state goes on', async (t) => {
  let isBroken = false
  const evolve: Behaviour['evolve'] = (state, record, meta) => {
    if (isBroken && record['token'] === 'second') throw new Error('a mistake of this version')
    return ledger.evolve(state as never, record, meta)
  }
  const scene = await started({ behaviours: [{ ...(ledger as Behaviour), evolve }] })
  const id = await scene.made()
  t.equal(await append(scene, id, 'second'), 'success')
  const third = () => say(scene, id, ['append', { token: 'third' }], 'k3')
  t.equal(await third(), 'success')
  t.equal(await say(scene, id, ['renumber', { number: 'N2' }], 'k4'), 'success')
  await flushed(scene)
  isBroken = true
  await scene.restart()
  t.same(await scene.tokens(id), ['first'], 'its last good state is read')
  t.equal(await third(), 'success', 'what was acknowledged behind it keeps its answer')
  const before = numbers(scene, id)
  for (let i = 0; i < 9; i++) t.equal(await append(scene, id, 'fourth'), 'QUARANTINED')
  await flushed(scene)
  t.same(numbers(scene, id), before, 'without a snapshot, a load must not read it ever longer')
  const relayed = { say: [['append', { token: 'x' }]] as [string, object][] }
  const relay = [0, 1, 0] as const
  t.equal(code(await scene.run(scene.ask(id, { ...relayed, relay }))), 'QUARANTINED')
  await flushed(scene)
  t.equal(decodeEntry(rowsOf(scene, id).at(-1)!.body).v, 5, 'recorded where the actor really is')
  const voided = { say: [['!holds', { keyType: 'ledger', key: 'N2', messageId: 'k4' }]] as never }
  t.equal(data(await scene.run(scene.ask(id, voided))), true, 'it still has its key')
  isBroken = false
  await scene.restart()
  t.same(await scene.tokens(id), ['first', 'second', 'third'])
  t.equal(await append(scene, id, 'fourth'), 'success')
  t.equal(code(await scene.run(scene.ask(id, { ...relayed, relay }))), 'success', 'taken before')
  await flushed(scene)
  await scene.restart()
  t.same(await scene.tokens(id), ['first', 'second', 'third', 'fourth'])
})

t.test('what an earlier version recorded in quarantine does no harm', async (t) => {
  const scene = await started()
  const id = await scene.made()
  t.equal(await append(scene, id, 'second'), 'success')
  await refused(t, scene, id, 'k')
  await flushed(scene)
  const { n, offset, body } = rowsOf(scene, id)[2]!
  const stale = encodeEntry({ ...decodeEntry(body), r: [], v: 1, c: 1 })
  await scene.journal.derived.write(0, scene.shard.epoch, [
    { kind: 'entry', actorId: id, n, offset, body: stale },
  ])
  await scene.restart()
  t.equal(await append(scene, id, 'third'), 'success')
  await refused(t, scene, id, 'k')
  await scene.restart()
  t.same(await scene.tokens(id), ['first', 'second', 'third'])
})

t.test('by a snapshot, too, an actor knows that marks have left its window', async (t) => {
  const tokens = ['a', 'b', 'c', 'd', 'e', 'f', 'g']
  const sum = 1 + tokens.length
  t.teardown(
    overrideLimits({
      'sharding.marksMax': 4,
      'sharding.snapshotEntriesMin': sum,
      'sharding.snapshotEntryBytesMin': 1,
    }),
  )
  const scene = await started()
  const id = await scene.made()
  const key = (token: string) => token.repeat(32)
  const once = async (token: string) => {
    const reply = scene.ask(id, { say: [['append', { token }]], key: key(token) })
    return data(await scene.run(reply))
  }
  for (const [i, token] of tokens.entries()) t.equal(await once(token), i + 2)
  await flushed(scene)
  const { body } = (await scene.journal.derived.snapshot(id))!
  t.equal(decodeSnapshot(body).n, sum, 'nothing is replayed behind it')
  await scene.restart()
  for (const [i, token] of tokens.entries()) t.equal(await once(token), i + 2, `${token} again`)
  t.same(await scene.tokens(id), ['first', ...tokens])
})
