// An identity's activity against a plain oracle: by uses in any order, seen by members whose clocks
// differ, decided by owners whose clocks do, too.

import t from 'tap'
import fc from 'fast-check'
import assert from 'node:assert/strict'
import { LIMITS } from '../../../config/limits.ts'
import type { ActorRecord, Turn } from '../../../protocol/behaviour.ts'
import { RequestError } from '../../../protocol/errors.ts'
import { activityBehaviour, activityId, endOfActivity } from './activity.ts'
import type { Activity, ActivityState } from './activity.ts'

const HOUR_MS = LIMITS.access.activityEveryMs
const START_MS = Date.parse('2026-03-01T12:00:00Z')
const OF = { kind: 'client', identity: 'shop' } as const
const ID = activityId(OF)

/** One activity: its state, folded from its records alone. */
class Scene {
  state: ActivityState | null = null
  /** By the owner's clock, as turns have it: never below the last one. */
  nowMs = START_MS
  entries = 0
  #version = 0

  send(type: string, body: object): 'ok' | string {
    const turn = {
      ...{ actorId: ID, key: null, nowMs: this.nowMs, by: 'system', messageId: 'm' },
      ...{ version: this.#version, preview: false, newId: () => '', hooks: { has: () => false } },
    } satisfies Turn
    try {
      const step = activityBehaviour.decide(this.state, { type, body }, turn).next()
      if (!step.done || !step.value.ok) throw new Error('it decides at once')
      const { records, state } = step.value
      for (const record of records as ActorRecord[]) {
        const meta = { actorId: ID, version: ++this.#version, timeMs: this.nowMs, by: 'system' }
        this.state = activityBehaviour.evolve(this.state, record, { ...meta, messageId: 'm' })
      }
      if (records.length > 0) {
        this.entries++
        // What it says is what its records fold to, and what a snapshot brings back.
        assert.deepStrictEqual(state, this.state)
        const kept = JSON.parse(JSON.stringify(activityBehaviour.toSnapshot(state))) as object
        assert.deepStrictEqual(activityBehaviour.fromSnapshot(kept), state)
      }
      return 'ok'
    } catch (error) {
      if (!(error instanceof RequestError)) throw error
      return error.errors[0]!.code
    }
  }

  used(atMs: number, secretId: string | null = null, secretIds: readonly string[] = []): string {
    return this.send('used', { ...OF, atMs, secretId, secretIds })
  }

  get activity(): Activity {
    if (this.state === null || 'ended' in this.state) throw new Error('there is none')
    return this.state
  }
}

t.test('the latest use counts, to the hour, and none is ahead of the clock', (t) => {
  const secrets = ['s1', 's2', 's3']
  const use = fc.record({
    passMs: fc.integer({ min: 0, max: 2 * HOUR_MS }),
    /** Of the member's clock, and of the way to the owner: ahead or behind. */
    offMs: fc.integer({ min: -3 * HOUR_MS, max: 600_000 }),
    secret: fc.option(fc.constantFrom(...secrets)),
  })
  const run = (uses: { passMs: number; offMs: number; secret: string | null }[]): void => {
    const scene = new Scene()
    const latest = new Map<string, number>()
    const before = new Map<string, number>()
    for (const { passMs, offMs, secret } of uses) {
      scene.nowMs += passMs
      scene.used(scene.nowMs + offMs, secret, secrets)
      const seenMs = Math.min(scene.nowMs, scene.nowMs + offMs)
      for (const name of secret === null ? [''] : ['', secret]) {
        latest.set(name, Math.max(latest.get(name) ?? 0, seenMs))
      }
      const { activeAtMs, secrets: kept } = scene.activity
      for (const [name, latestMs] of latest) {
        const shownMs = name === '' ? activeAtMs : kept[name]!
        assert(shownMs <= scene.nowMs, 'never ahead of the clock')
        assert(shownMs >= (before.get(name) ?? 0), 'never goes back')
        assert(shownMs <= latestMs, 'never later than a use')
        assert(shownMs > latestMs - HOUR_MS, 'at most an hour behind it')
        before.set(name, shownMs)
      }
      for (const ms of Object.values(kept)) assert(ms <= activeAtMs, 'a secret is a use as well')
    }
  }
  fc.assert(fc.property(fc.array(use, { maxLength: 40 }), run), { numRuns: 500 })
  t.end()
})

t.test('a time that a wrong clock wrote gives way, and stands for no later ones', (t) => {
  const scene = new Scene()
  scene.used(START_MS, 's1', ['s1', 's2'])
  scene.nowMs += 400 * 24 * HOUR_MS
  scene.used(scene.nowMs, 's1', ['s1', 's2'])
  // The clock is right again; that of a turn never goes back.
  let atMs = START_MS + 2 * HOUR_MS
  t.equal(scene.used(atMs), 'ok')
  t.equal(scene.activity.activeAtMs, atMs)
  t.equal(scene.used(atMs, 's1', ['s1', 's2']), 'ok')
  t.same(scene.activity.secrets, { s1: atMs })
  t.equal(scene.activity.activeAtMs, atMs)
  t.equal(scene.used(atMs, 's2', ['s1', 's2']), 'ok')
  t.equal(scene.used(atMs, 's1', ['s1', 's2']), 'INVALID_STATE', 'then as ever')
  atMs -= 3 * HOUR_MS
  t.equal(scene.used(atMs, 's1', ['s1', 's2']), 'INVALID_STATE', 'one that is a little behind')
  t.end()
})

t.test('an entry an hour, whatever it does', (t) => {
  const scene = new Scene()
  for (let i = 0; i < 24 * 60; i++) {
    const said = scene.used(scene.nowMs)
    t.equal(said, i % 60 === 0 ? 'ok' : 'INVALID_STATE')
    scene.nowMs += 60_000
  }
  t.equal(scene.entries, 24)
  t.end()
})

t.test('times of secrets that are gone make room for those that are there', (t) => {
  const scene = new Scene()
  const { secretsOfClientMax: max } = LIMITS.access
  let there: string[] = ['first']
  scene.used(scene.nowMs, 'first', there)
  for (let i = 0; i < 100; i++) {
    // All but the first are made anew again and again.
    there = [...there.slice(-(max - 1)), `s${i}`].slice(-max)
    if (!there.includes('first')) there[0] = 'first'
    scene.nowMs += 1_000
    t.equal(scene.used(scene.nowMs, `s${i}`, there), 'ok')
    t.ok(Object.keys(scene.activity.secrets).length <= max)
  }
  t.equal(scene.activity.secrets['first'], START_MS, 'it is there, so it is remembered')
  t.equal(scene.activity.activeAtMs, scene.nowMs)
  scene.nowMs += 1_000
  t.equal(scene.used(scene.nowMs, 'gone', there), 'INVALID_STATE', 'a secret that is gone is none')
  t.end()
})

t.test('it ends with its identity, even if that was never active, and takes nothing more', (t) => {
  const scenes = [new Scene(), new Scene()]
  scenes[0]!.used(START_MS)
  const effect = endOfActivity(OF)
  t.same(effect.to, { type: activityBehaviour.type, id: ID })
  for (const scene of scenes) {
    for (const { type, body } of effect.messages) t.equal(scene.send(type, body as object), 'ok')
    t.ok(activityBehaviour.isDeleted(scene.state!))
    t.same(activityBehaviour.nodes(scene.state!), [])
    scene.nowMs += 2 * HOUR_MS
    t.equal(scene.used(scene.nowMs), 'NOT_FOUND')
    t.equal(scene.send('end', {}), 'NOT_FOUND')
    t.equal(scene.send('read', {}), 'NOT_FOUND')
  }
  t.end()
})

t.test('clients and people of one id have each their own; the graph shows it beside them', (t) => {
  t.not(activityId(OF), activityId({ ...OF, kind: 'principal' }))
  t.match(ID, /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  const scene = new Scene()
  t.equal(scene.send('read', {}), 'NOT_FOUND', 'never active')
  scene.nowMs += 5
  scene.used(START_MS)
  const [ref] = activityBehaviour.nodes(scene.activity)
  t.same(activityBehaviour.touched({ t: 'used' }, ID), [ref])
  t.same(activityBehaviour.project(scene.activity, ref!)?.doc, {
    ...{ identityActivityId: ID, kind: 'client', identityId: 'shop' },
    lastActiveAt: '2026-03-01T12:00:00.000Z',
    lastModified: '2026-03-01T12:00:00.005Z',
  })
  t.end()
})
