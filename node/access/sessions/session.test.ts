// The session's state machine against a plain oracle: what is good, what is refused, what ends it,
// by messages in any order and a clock that moves.

import t from 'tap'
import fc from 'fast-check'
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { LIMITS } from '../../../config/limits.ts'
import type { ActorRecord, Effect, Turn } from '../../../protocol/behaviour.ts'
import { RequestError } from '../../../protocol/errors.ts'
import { sessionListId } from './session-list.ts'
import { endOf } from './session-state.ts'
import type { SessionState } from './session-state.ts'
import { sessionBehaviour } from './session.ts'

const ACCESS_MS = 3_600_000
const REFRESH_MS = 30 * 24 * 3_600_000
const ID = '0f0e0d0c-0b0a-4908-8706-050403020100'
const VERIFIER = 'v'.repeat(43)
const CHALLENGE = createHash('sha256').update(VERIFIER).digest('base64url')
const SUBJECT = { identity: 'p', kind: 'principal', clientId: 'app', scope: 'graph:query' } as const
const ERAS = ['0 then', '0 then'] as const

/** One session: its state, folded from its records alone. */
class Scene {
  state: SessionState | null = null
  nowMs = 1_000
  version = 0
  effects: Effect[] = []
  data: unknown = null

  /** What the turn told; the text of a refusal that wrote nothing. */
  send(type: string, body: object): string {
    const turn = {
      ...{ actorId: ID, key: null, nowMs: this.nowMs, by: 'x', messageId: 'm', preview: false },
      ...{ version: this.version, newId: () => '', hooks: { has: () => false } },
    } satisfies Turn
    try {
      const step = sessionBehaviour.decide(this.state, { type, body }, turn).next()
      if (!step.done || !step.value.ok) throw new Error('a session decides at once')
      const { records, state, data, effects = [] } = step.value
      for (const record of records as ActorRecord[]) {
        const meta = { actorId: ID, version: ++this.version, timeMs: this.nowMs, by: 'x' }
        this.state = sessionBehaviour.evolve(this.state, record, { ...meta, messageId: 'm' })
      }
      // What it says is what its records fold to.
      if (records.length > 0) assert.deepStrictEqual(state, this.state)
      this.effects.push(...effects)
      this.data = data
      return (data as { ended?: string }).ended === undefined ? 'ok' : 'ended'
    } catch (error) {
      if (!(error instanceof RequestError)) throw error
      return error.errors[0]!.code
    }
  }

  authorize(challenge: string | null): void {
    const code = { hash: 'code', redirectUri: 'https://app/back', challenge }
    this.send('authorize', { subject: SUBJECT, eras: ERAS, code })
  }

  exchange(more: object = {}): string {
    return this.send('exchange', {
      ...{ hash: 'code', clientId: 'app', redirectUri: 'https://app/back', verifier: VERIFIER },
      access: { hash: 'a0', lifeMs: ACCESS_MS },
      refresh: { hash: 'r0', family: 'f', lifeMs: REFRESH_MS },
      ...more,
    })
  }

  get live() {
    if (this.state === null || this.state.status === 'ended') throw new Error('it has ended')
    return this.state
  }
}

t.test('a clock that was ahead for a moment makes no token live longer, nor ends it', (t) => {
  const scene = new Scene()
  scene.authorize(CHALLENGE)
  scene.exchange({ atMs: scene.nowMs })
  const rightMs = scene.nowMs
  const refresh = (from: string, to: string): string =>
    scene.send('refresh', {
      ...{ hash: from, family: 'f', clientId: 'app', atMs: rightMs },
      access: { hash: `a of ${to}`, lifeMs: ACCESS_MS },
      refresh: { hash: to, lifeMs: REFRESH_MS },
    })
  // A turn's time is never below the actor's last one.
  scene.nowMs += 400 * 24 * 3_600_000
  scene.send('used', {})
  for (const [from, to] of [
    ['r0', 'r1'],
    ['r1', 'r2'],
  ] as const) {
    t.equal(refresh(from, to), 'ok')
    t.equal(scene.live.access?.untilMs, rightMs + ACCESS_MS)
    t.equal(scene.live.refresh?.untilMs, rightMs + REFRESH_MS)
    t.ok(scene.live.former!.untilMs <= rightMs + LIMITS.access.formerTokenMs)
  }
  // A member's clock that is ahead gives none more, either.
  const { nowMs } = scene
  const late = { hash: 'r2', family: 'f', clientId: 'app', atMs: nowMs + REFRESH_MS }
  t.equal(scene.send('refresh', { ...late, access: {}, refresh: {} }), 'INVALID_STATE')
  t.end()
})

t.test('RFC 7636 4.6, RFC 9700 2.1.1: verifier and challenge go together', async (t) => {
  for (const [challenge, verifier, expected] of [
    [CHALLENGE, VERIFIER, 'ok'],
    [CHALLENGE, null, 'INVALID_STATE'],
    [CHALLENGE, 'w'.repeat(43), 'INVALID_STATE'],
    [CHALLENGE, CHALLENGE, 'INVALID_STATE'],
    [null, null, 'ok'],
    [null, VERIFIER, 'INVALID_STATE'],
  ] as const) {
    const scene = new Scene()
    scene.authorize(challenge)
    t.equal(scene.exchange({ verifier }), expected, `${challenge} ${verifier}`)
  }
})

t.test('RFC 6749 4.1.2, 4.1.3: a code is bound to client, redirect and time', async (t) => {
  for (const more of [
    { clientId: 'other' },
    { redirectUri: 'https://app/back/' },
    { hash: 'guess' },
  ]) {
    const scene = new Scene()
    scene.authorize(CHALLENGE)
    t.equal(scene.exchange(more), 'INVALID_STATE')
    t.equal(scene.version, 1, 'nothing is written')
    t.equal(scene.exchange(), 'ok', 'who was wrong has taken it from nobody')
  }
  const late = new Scene()
  late.authorize(CHALLENGE)
  late.nowMs += LIMITS.access.codeMs
  t.equal(late.exchange(), 'INVALID_STATE')
  t.equal(new Scene().exchange(), 'NOT_FOUND')
})

t.test(
  'who refreshes every hour is listed anew once a day, and never ends early there',
  async (t) => {
    const scene = new Scene()
    scene.authorize(CHALLENGE)
    scene.exchange()
    let listedMs = 0
    let times = 0
    const hours = 40 * 24
    for (let i = 0; i < hours; i++) {
      for (const { messages } of scene.effects.splice(0)) {
        t.equal(messages[0]!.type, 'touch')
        listedMs = (messages[0]!.body as { untilMs: number }).untilMs
        times++
      }
      const laterMs = listedMs - endOf(scene.live)
      if (laterMs < 0 || laterMs >= REFRESH_MS / 30) t.fail(`${laterMs} ms later than it is`)
      scene.nowMs += ACCESS_MS
      const access = { hash: `a${i + 1}`, lifeMs: ACCESS_MS }
      const refresh = { hash: `r${i + 1}`, lifeMs: REFRESH_MS }
      const body = { hash: `r${i}`, family: 'f', clientId: 'app', access, refresh }
      if (scene.send('refresh', body) !== 'ok') t.fail('it was not refreshed')
    }
    t.ok(times >= 40 && times <= 42, `${times} times`)
    const access = { hash: `a${hours}` }
    t.match(scene.data, { session: { access, code: null, former: null } }, 'kept with each entry')
  },
)

t.test('the end of a session is told by its outbox, an eviction is not', async (t) => {
  const told = (type: string): string[] => {
    const scene = new Scene()
    scene.authorize(CHALLENGE)
    scene.exchange()
    scene.effects = []
    scene.send(type, {})
    return scene.effects.map(({ to, messages }) =>
      [to.type, 'key' in to ? to.key : to.id, messages[0]!.type].join(' '),
    )
  }
  const list = sessionListId(SUBJECT)
  t.same(told('end'), [`revocation ${ID} put`, `auth-session-list ${list} remove`])
  t.same(told('expel'), [])
})

type Step =
  | { readonly do: 'pass'; readonly ms: number }
  | { readonly do: 'exchange'; readonly right: boolean; readonly refresh: boolean }
  | { readonly do: 'refresh'; readonly which: number; readonly right: boolean }
  | { readonly do: 'forged' }
  | { readonly do: 'end' }
  | { readonly do: 'expire' }
  | { readonly do: 'used' }

const PASSES = [1, 59_999, 60_000, ACCESS_MS - 1, ACCESS_MS, REFRESH_MS - 1, REFRESH_MS]
/** Most sessions are opened at once, and few are ended: what lies behind is seldom reached else. */
const steps = fc
  .tuple(
    fc.constantFrom(true, true, true, false),
    fc.array(
      fc.oneof(
        {
          weight: 3,
          arbitrary: fc.record({
            do: fc.constant('pass' as const),
            ms: fc.constantFrom(...PASSES),
          }),
        },
        {
          weight: 1,
          arbitrary: fc.record({
            ...{ do: fc.constant('exchange' as const), right: fc.boolean(), refresh: fc.boolean() },
          }),
        },
        {
          weight: 10,
          arbitrary: fc.record({
            do: fc.constant('refresh' as const),
            which: fc.constantFrom(0, 0, 0, 0, 0, 0, 1, 2),
            right: fc.constantFrom(true, true, true, false),
          }),
        },
        {
          weight: 3,
          arbitrary: fc.record({
            do: fc.constantFrom('forged' as const, 'expire' as const, 'used' as const),
          }),
        },
        { weight: 1, arbitrary: fc.record({ do: fc.constant('end' as const) }) },
      ),
      { maxLength: 30 },
    ),
  )
  .map(([isOpened, run]): Step[] =>
    isOpened ? [{ do: 'exchange', right: true, refresh: true }, ...run] : run,
  )

/** What a session is, in the plainest words: no hashes, no records. */
class Oracle {
  status: 'asked' | 'open' | 'ended' = 'asked'
  codeUntil: number
  accessUntil = 0
  /** Tokens that were issued, the newest last. */
  refreshTokens: string[] = []
  refreshUntil = 0

  constructor(nowMs: number) {
    this.codeUntil = nowMs + 60_000
  }

  exchange(nowMs: number, right: boolean, refresh: string | null): string {
    if (this.status === 'ended') return 'NOT_FOUND'
    if (this.status === 'open') {
      this.status = 'ended'
      return 'ended'
    }
    if (!right || nowMs >= this.codeUntil) return 'INVALID_STATE'
    this.status = 'open'
    this.#issue(nowMs, refresh)
    return 'ok'
  }

  refresh(nowMs: number, given: string, right: boolean, next: string): string {
    if (this.status === 'ended') return 'NOT_FOUND'
    if (!this.refreshTokens.includes(given)) return 'INVALID_STATE'
    if (given !== this.refreshTokens.at(-1)) {
      this.status = 'ended'
      return 'ended'
    }
    if (!right || nowMs >= this.refreshUntil) return 'INVALID_STATE'
    this.#issue(nowMs, next)
    return 'ok'
  }

  #issue(nowMs: number, refresh: string | null): void {
    this.accessUntil = nowMs + ACCESS_MS
    if (refresh === null) return
    this.refreshTokens.push(refresh)
    this.refreshUntil = nowMs + REFRESH_MS
  }

  get end(): number {
    if (this.status === 'asked') return this.codeUntil
    return Math.max(this.accessUntil, this.refreshUntil)
  }
}

t.test(
  'any messages, in any order: as the oracle says (RFC 6749 4.1.2, 6; RFC 9700 4.14.2)',
  async (t) => {
    const met = new Map<string, number>()
    fc.assert(
      fc.property(steps, (run) => {
        const scene = new Scene()
        scene.authorize(CHALLENGE)
        const oracle = new Oracle(scene.nowMs)
        let made = 0
        for (const step of run) {
          const said = play(scene, oracle, step, () => `r${++made}`)
          const what = `${step.do} ${said?.[0]}`
          met.set(what, (met.get(what) ?? 0) + 1)
          if (said !== null && said[0] !== said[1])
            throw new Error(`${JSON.stringify(step)}: ${said.join()}`)
          const isOver = scene.state?.status === 'ended'
          if (isOver !== (oracle.status === 'ended')) throw new Error('one has ended')
          if (isOver) continue
          if (endOf(scene.live) !== oracle.end) throw new Error('they end at other times')
          if (scene.live.status !== oracle.status) throw new Error('they are in other states')
        }
      }),
      { numRuns: 2_000 },
    )
    for (const what of ['refresh ok', 'refresh ended', 'exchange ended', 'expire ok', 'end ok']) {
      t.ok((met.get(what) ?? 0) > 5, `${what}: ${met.get(what)} times`)
    }
  },
)

/** What the session and the oracle say to one step; null: nobody is asked. */
function play(
  scene: Scene,
  oracle: Oracle,
  step: Step,
  name: () => string,
): readonly [string, string] | null {
  const access = { hash: name(), lifeMs: ACCESS_MS }
  const { nowMs } = scene
  switch (step.do) {
    case 'pass':
      scene.nowMs += step.ms
      return null
    case 'exchange': {
      const hash = step.refresh ? name() : null
      const refresh = hash === null ? null : { hash, family: 'f', lifeMs: REFRESH_MS }
      const more = { access, refresh, ...(step.right ? null : { verifier: 'wrong' }) }
      return [scene.exchange(more), oracle.exchange(nowMs, step.right, hash)]
    }
    case 'refresh': {
      const hash = oracle.refreshTokens.at(-1 - step.which)
      if (hash === undefined) return null
      const next = name()
      const clientId = step.right ? 'app' : 'thief'
      const body = {
        hash,
        family: 'f',
        clientId,
        access,
        refresh: { hash: next, lifeMs: REFRESH_MS },
      }
      return [scene.send('refresh', body), oracle.refresh(nowMs, hash, step.right, next)]
    }
    case 'forged': {
      const body = { hash: 'x', family: 'x', clientId: 'app', access, refresh: access }
      const expected = oracle.status === 'ended' ? 'NOT_FOUND' : 'INVALID_STATE'
      return [scene.send('refresh', body), expected]
    }
    case 'expire': {
      const isDue = oracle.end <= nowMs
      const isOver = oracle.status === 'ended'
      if (isDue) oracle.status = 'ended'
      return [scene.send('expire', {}), isOver ? 'NOT_FOUND' : isDue ? 'ok' : 'INVALID_STATE']
    }
    case 'used':
      return [scene.send('used', {}), oracle.status === 'ended' ? 'NOT_FOUND' : 'ok']
    default: {
      const expected = oracle.status === 'ended' ? 'NOT_FOUND' : 'ok'
      oracle.status = 'ended'
      return [scene.send('end', {}), expected]
    }
  }
}
