// Sessions that are forgotten: from when, what is left of them, and that nothing that comes late,
// or is read of one in part, is ever taken for a session. Source: PROTOCOL 3.12 "Forgotten actors".

import t from 'tap'
import { load } from '../../../cluster/sharding/turn/loading.ts'
import { Activation } from '../../../cluster/sharding/turn/activation.ts'
import { Scene, code } from '../../../cluster/sharding/testing/scene.ts'
import { LIMITS } from '../../../config/limits.ts'
import type { Behaviour } from '../../../protocol/behaviour.ts'
import { decodeEntry } from '../../../protocol/entry/entry.ts'
import type { Envelope } from '../../../protocol/message.ts'
import type { EntryRow } from '../../../storage/journal.ts'
import { SESSION, sessionBehaviour } from './session.ts'
import { sessionListBehaviour } from './session-list.ts'
import type { SessionState } from './session-state.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const EXPIRY_MS = LIMITS.storage.derivedTtlSeconds * 1_000
const ALL = { order: 'ascending', after: 0, bytesMax: 9e9 } as const
const SUBJECT = { identity: 'app', kind: 'client', clientId: 'app', scope: null } as const
const BEHAVIOUR = sessionBehaviour as unknown as Behaviour
// It is told of what is renewed.
const BEHAVIOURS = [BEHAVIOUR, sessionListBehaviour as unknown as Behaviour]
const REFRESH = {
  ...{ hash: 'r0', family: 'f', clientId: 'app' },
  access: { hash: 'a1', lifeMs: HOUR_MS },
  refresh: { hash: 'r1', lifeMs: 30 * DAY_MS },
}

async function started(): Promise<Scene> {
  const scene = new Scene({ behaviours: BEHAVIOURS })
  await scene.run(scene.shard.claim())
  return scene
}

/** What a session is told; `relay`: by another actor, which is told for good. */
async function send(
  scene: Scene,
  id: string,
  [type, body = {}]: readonly [string, object?],
  relay?: Envelope['relay'],
): Promise<string> {
  const to = { type: SESSION, id }
  const asking = { to, say: [[type, body]] as const, ...(relay && { relay }) }
  return code(await scene.run(scene.ask(id, asking)))
}

async function opened(scene: Scene, lifeMs: number, grant = 'client_credentials'): Promise<string> {
  const id = scene.newUuid(0)
  const access = { hash: 'a0', lifeMs }
  const body = { subject: SUBJECT, grant, description: null, eras: ['', ''], access }
  if ((await send(scene, id, ['open', body])) !== 'success') throw new Error('it was not opened')
  return id
}

async function flushed(scene: Scene): Promise<void> {
  await scene.clock.advance(LIMITS.sharding.flushStoredMs * 2)
}

const rowsOf = (scene: Scene, id: string): readonly EntryRow[] =>
  scene.journal.derived.entries(id, ALL) as readonly EntryRow[]

/** So long after its entry that says so, a session of which that says so is forgotten. */
function forgottenAfter(scene: Scene, id: string): number {
  const { c, f } = decodeEntry(rowsOf(scene, id).at(-1)!.body)
  return f! - c
}

/** The shard's clock stands so long behind what the session's last entry says. */
async function later(scene: Scene, id: string, ms: number): Promise<void> {
  await flushed(scene)
  const { f } = decodeEntry(rowsOf(scene, id).at(-1)!.body)
  await scene.journal.derived.expire!(() => f! + ms)
}

t.test('one that has run out is forgotten two days after its end was written', async (t) => {
  const scene = await started()
  const id = await opened(scene, 1_000)
  t.equal(await send(scene, id, ['expire']), 'INVALID_STATE', 'it has not run out')
  await scene.clock.advance(2_000)
  t.equal(await send(scene, id, ['expire']), 'success')
  await flushed(scene)
  t.equal(forgottenAfter(scene, id), 0)
  await later(scene, id, EXPIRY_MS - 1)
  t.equal(rowsOf(scene, id).length, 2)
  await later(scene, id, EXPIRY_MS)
  t.same(rowsOf(scene, id), [])
  t.notOk((await scene.journal.derived.actors(null, 10)).includes(id))
  for (let owner = 0; owner < 2; owner++) {
    const used = { untilMs: 0 }
    const late: [string, object?][] = [['read'], ['refresh', REFRESH], ['renew', used], ['end']]
    for (const message of late) t.equal(await send(scene, id, message), 'NOT_FOUND', message[0])
    await flushed(scene)
    t.same(rowsOf(scene, id), [], 'what is refused is written nowhere')
    await scene.restart()
  }
})

t.test('what another actor tells it is answered for good, and that goes as well', async (t) => {
  const scene = await started()
  const id = await opened(scene, HOUR_MS)
  t.equal(await send(scene, id, ['expel'], [3, 7, 0]), 'success')
  t.equal(await send(scene, id, ['expire'], [3, 8, 0]), 'NOT_FOUND')
  await flushed(scene)
  t.equal(rowsOf(scene, id).length, 3)
  await later(scene, id, EXPIRY_MS)
  t.same(rowsOf(scene, id), [])
  await scene.restart()
  // Sent again, for its shard doesn't know that it was taken.
  t.equal(await send(scene, id, ['expel'], [3, 7, 0]), 'NOT_FOUND')
  await flushed(scene)
  t.equal(rowsOf(scene, id).length, 1)
  await later(scene, id, EXPIRY_MS)
  t.same(rowsOf(scene, id), [])
})

t.test('one that is ended early stays until all of it would have run out', async (t) => {
  const scene = await started()
  const long = await opened(scene, 5 * DAY_MS)
  t.equal(await send(scene, long, ['expel']), 'success')
  const pat = await opened(scene, 90 * DAY_MS, 'pat')
  const untilMs = scene.clock.nowMs() + DAY_MS
  t.equal(await send(scene, pat, ['renew', { untilMs }]), 'success', 'made shorter')
  t.equal(await send(scene, pat, ['expel']), 'success')
  await flushed(scene)
  const about = (id: string, ms: number) => {
    const after = forgottenAfter(scene, id)
    t.ok(Math.abs(after - ms) < 60_000, `${after} ms`)
  }
  about(long, 5 * DAY_MS)
  about(pat, 90 * DAY_MS)
})

/** Rows of a session that was opened, refreshed twice and ended, with their offsets. */
async function lived(): Promise<{ readonly id: string; readonly rows: readonly EntryRow[] }> {
  const scene = await started()
  const id = scene.newUuid(0)
  const code = { hash: 'c', redirectUri: 'x', challenge: null }
  const asked = { subject: SUBJECT, eras: ['', ''], code }
  const access = { hash: 'a0', lifeMs: HOUR_MS }
  const first = { hash: 'r0', family: 'f', lifeMs: DAY_MS }
  const exchange = { hash: 'c', clientId: 'app', redirectUri: 'x', verifier: null }
  await send(scene, id, ['authorize', asked])
  await send(scene, id, ['exchange', { ...exchange, access, refresh: first }])
  await send(scene, id, ['refresh', REFRESH])
  await send(scene, id, ['expel'])
  await flushed(scene)
  return { id, rows: rowsOf(scene, id) }
}

async function read(id: string, rows: readonly EntryRow[], tail: readonly EntryRow[] = []) {
  const activation = new Activation(BEHAVIOUR, id, null)
  await load(activation, {
    snapshot: () => null,
    entries: (_, after) => rows.filter(({ n }) => n > after),
    tail: () => tail,
    lostBehind: -1,
  })
  return activation
}

const statusOf = (activation: Activation): string | null =>
  (activation.state as SessionState | null)?.status ?? null

t.test('whatever is missing before its end, it has ended', async (t) => {
  const { id, rows } = await lived()
  const count = rows.length - 1
  t.equal(count, 3)
  const end = rows[count]!
  for (let mask = 0; mask < 2 ** count; mask++) {
    const some = rows.filter((_, i) => i < count && (mask & (2 ** i)) !== 0)
    for (let stored = 0; stored <= some.length + 1; stored++) {
      const all = [...some, end]
      const activation = await read(id, all.slice(0, stored), all.slice(stored))
      const what = `${all.map(({ n }) => n).join(' ')}, ${stored} in rows`
      t.equal(statusOf(activation), 'ended', what)
      t.equal(activation.quarantined, null, what)
      t.equal(activation.n, rows.length, what)
    }
  }
})

t.test('where its end is missing as well nothing is taken for a session', async (t) => {
  const { id, rows } = await lived()
  for (const some of [[2], [3], [2, 3], [1, 3]]) {
    const found = rows.filter(({ n }) => some.includes(n))
    const activation = await read(id, found)
    t.equal(statusOf(activation), null, some.join(' '))
    t.ok(activation.quarantined, 'and that is told')
    await t.rejects(async () => read(id, [], found), { message: /entries of .* are missing/ })
  }
})

t.test('where entries go at once, what may be repeated is remembered', async (t) => {
  const scene = new Scene({ behaviours: BEHAVIOURS })
  // As a server, whose rows go by its own time.
  Object.assign(scene.journal.derived, { expire: undefined })
  await scene.run(scene.shard.claim())
  const quick = await opened(scene, HOUR_MS)
  t.equal(await send(scene, quick, ['expel']), 'success')
  const slow = await opened(scene, HOUR_MS)
  await scene.clock.advance(LIMITS.storage.edgeMarkMs)
  t.equal(await send(scene, slow, ['expel']), 'success')
  await flushed(scene)
  const snapshot = await scene.journal.derived.snapshot(quick)
  const body = JSON.parse(Buffer.from(snapshot!.body).toString())
  t.match(body, { state: { status: 'ended' }, n: 2, version: 2, marks: { length: 2 } })
  t.equal(await scene.journal.derived.snapshot(slow), null, 'nobody repeats anything of it')
  await scene.restart()
  t.equal(await send(scene, quick, ['read']), 'NOT_FOUND')
})

t.test('what only says that it was not there says that it has ended, too', async (t) => {
  const scene = await started()
  const id = await opened(scene, HOUR_MS)
  t.equal(await send(scene, id, ['expel'], [3, 7, 0]), 'success')
  t.equal(await send(scene, id, ['expire'], [3, 8, 0]), 'NOT_FOUND')
  await flushed(scene)
  const [first, , last] = rowsOf(scene, id)
  for (const stored of [0, 1, 2]) {
    const all = [first!, last!]
    const activation = await read(id, all.slice(0, stored), all.slice(stored))
    t.not(statusOf(activation), 'open', `${stored} in rows`)
    t.equal(activation.n, 3)
  }
})

t.test('one that can not be read is not taken for one that has ended', async (t) => {
  const scene = await started()
  const id = await opened(scene, HOUR_MS)
  t.equal(await send(scene, id, ['used']), 'success')
  await flushed(scene)
  // As a version that doesn't know a record of it.
  const { evolve } = BEHAVIOUR
  t.teardown(() => Object.assign(BEHAVIOUR, { evolve }))
  const unknown: Behaviour['evolve'] = (state, record, meta) => {
    if ((record as { readonly t: string }).t === 'used') throw new Error('not known')
    return evolve(state, record, meta)
  }
  Object.assign(BEHAVIOUR, { evolve: unknown })
  await scene.restart()
  t.equal(await send(scene, id, ['expire'], [3, 8, 0]), 'QUARANTINED')
  await flushed(scene)
  t.same(
    rowsOf(scene, id).map(({ body }) => decodeEntry(body).f),
    [undefined, undefined, undefined],
  )
  Object.assign(BEHAVIOUR, { evolve })
  await scene.restart()
  t.equal(await send(scene, id, ['read']), 'success')
})
