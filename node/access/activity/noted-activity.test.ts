// What a member writes of the activity that it sees: seldom, a bounded number a second, in bounded
// memory, and again what failed.

import t from 'tap'
import type { ActorRequest, SystemView } from '../../../cluster/actor-system.ts'
import type { Clock } from '../../../cluster/clock.ts'
import { LIMITS } from '../../../config/limits.ts'
import { overrideLimits } from '../../../config/testing/override-limits.ts'
import { errorItem } from '../../../protocol/errors.ts'
import type { Reply } from '../../../protocol/message.ts'
import { ActorSystemTwin } from '../../testing/actor-system-twin.ts'
import { accessBehaviours } from '../access.ts'
import { ACTIVITY } from './activity.ts'
import { LastActivity } from './last-activity.ts'
import { NotedActivity } from './noted-activity.ts'

const START_MS = Date.parse('2026-03-01T12:00:00Z')
const MINUTE_MS = 60_000
const ADA = { kind: 'principal', identity: 'ada' } as const
const SHOP = { kind: 'client', identity: 'shop' } as const

/** A clock that stands still until it is moved. */
class HeldClock implements Clock {
  ms = START_MS
  readonly #due: { at: number; run: () => void }[] = []
  nowMs = (): number => this.ms
  monotonicMs = (): number => this.ms
  defer = (run: () => void): void => run()

  after(ms: number, run: () => void): () => void {
    const timer = { at: this.ms + ms, run }
    this.#due.push(timer)
    return () => void this.#due.splice(this.#due.indexOf(timer), 1)
  }

  /** Runs what becomes due on the way, a second at a time. */
  async pass(ms: number): Promise<void> {
    const untilMs = this.ms + ms
    while (this.ms < untilMs) {
      this.ms = Math.min(untilMs, this.ms + 1_000)
      const due = this.#due.filter(({ at }) => at <= this.ms)
      for (const timer of due) {
        this.#due.splice(this.#due.indexOf(timer), 1)
        timer.run()
      }
      if (due.length > 0) for (let i = 0; i < 10; i++) await Promise.resolve()
      if (due.length > 0) await new Promise((resolve) => setImmediate(resolve))
    }
  }
}

function scene() {
  const system = new ActorSystemTwin(accessBehaviours())
  const clock = new HeldClock()
  Object.defineProperty(system, 'nowMs', { get: () => clock.ms })
  const dates = { createdAt: '', suspendedAt: null }
  system.put('principal', 'ada', { properties: { name: '', email: 'a@b.se' }, roles: [], ...dates })
  const secrets = ['s1', 's2'].map((secretId) => ({ secretId, hash: '' }))
  system.put('client', 'shop', { properties: { name: '' }, roles: [], secrets, ...dates })
  const shown = async (
    of: typeof ADA | typeof SHOP,
    secretId = '',
  ): Promise<string | null | undefined> => {
    const [found] = await new LastActivity(system, clock).of(of.kind, [of.identity], 't')
    return secretId === '' ? found!.lastActiveAt : found!.secretUsedAt(secretId)
  }
  const asked = (type: string): number =>
    system.asked.filter((one) => one.type === ACTIVITY && one.messages[0]!.type === type).length
  const member = () => new NotedActivity(system, clock)
  return { system, clock, member, shown, asked }
}

t.test('written within a second, then once an hour while it goes on', async (t) => {
  const { clock, member, shown, asked } = scene()
  const noted = member()
  t.equal(await shown(ADA), null)
  for (let minute = 0; minute < 180; minute++) {
    noted.active(ADA)
    await clock.pass(MINUTE_MS)
  }
  t.equal(asked('used'), 3)
  t.equal(await shown(ADA), '2026-03-01T14:00:00.000Z')
  t.equal(await shown(SHOP), null)
})

t.test('a secret has a time of its own, and is a use of its client', async (t) => {
  const { clock, member, shown } = scene()
  const noted = member()
  noted.secretUsed('shop', 's1')
  noted.active(SHOP)
  await clock.pass(30 * MINUTE_MS)
  noted.secretUsed('shop', 's2')
  noted.secretUsed('shop', 's1')
  await clock.pass(MINUTE_MS)
  t.equal(await shown(SHOP, 's1'), '2026-03-01T12:00:00.000Z')
  t.equal(await shown(SHOP, 's2'), '2026-03-01T12:30:00.000Z')
  t.equal(await shown(SHOP), '2026-03-01T12:30:00.000Z')
  t.equal(await shown(SHOP, 's3'), null)
})

t.test('several members, and one that starts anew, write as little as one', async (t) => {
  const { system, clock, member, shown } = scene()
  let members = [member(), member(), member()]
  const before = system.heads()[0]!.offset
  for (let minute = 0; minute < 240; minute++) {
    if (minute % 50 === 49) members = [member(), ...members.slice(0, 2)]
    members[minute % 3]!.active(ADA)
    await clock.pass(MINUTE_MS)
    const atMs = Date.parse((await shown(ADA))!)
    t.ok(atMs <= clock.ms && atMs > clock.ms - 63 * MINUTE_MS, 'to the hour')
  }
  t.equal(system.heads()[0]!.offset - before, 4, 'one entry an hour')
})

t.test(
  'a clock that was far ahead for a moment: nothing is told by it, and it is made good',
  async (t) => {
    const { clock, member, shown, system } = scene()
    const noted = member()
    const aheadMs = 400 * 24 * 60 * MINUTE_MS
    clock.ms += aheadMs
    noted.secretUsed('shop', 's1')
    noted.active(SHOP)
    await clock.pass(1_000)
    clock.ms -= aheadMs
    const [told] = await new LastActivity(system, clock).of('client', ['shop'], 't')
    t.equal(told?.lastActiveAt, undefined, 'nobody has used it now')
    t.equal(told?.secretUsedAt('s1'), undefined)
    t.equal(told?.secretUsedAt('s2'), null, 'this one never')
    // The same member, and then one that starts anew.
    noted.active(SHOP)
    await clock.pass(1_000)
    t.equal(await shown(SHOP), '2026-03-01T12:00:01.000Z')
    const other = member()
    other.secretUsed('shop', 's1')
    await clock.pass(1_000)
    t.equal(await shown(SHOP, 's1'), '2026-03-01T12:00:02.000Z')
  },
)

t.test('what fails is written when the identity is seen again', async (t) => {
  const { system, clock, member, shown, asked } = scene()
  const noted = member()
  system.before = () => ({ outcome: 'refused', error: errorItem('UNAVAILABLE', 'away') })
  for (let i = 0; i < 5; i++) {
    noted.active(ADA)
    await clock.pass(MINUTE_MS)
  }
  t.equal(asked('used'), 5)
  system.before = () => null
  await clock.pass(MINUTE_MS)
  t.equal(await shown(ADA), null, 'nobody tries by itself')
  noted.active(ADA)
  await clock.pass(MINUTE_MS)
  t.equal(await shown(ADA), '2026-03-01T12:06:00.000Z')
})

t.test('while it is being written it is not written a second time', async (t) => {
  const { system, clock, member, shown, asked } = scene()
  const answer = Promise.withResolvers<null>()
  system.before = () => answer.promise
  const noted = member()
  for (let i = 0; i < 5; i++) {
    noted.active(ADA)
    await clock.pass(MINUTE_MS)
  }
  t.equal(asked('used'), 1)
  answer.resolve(null)
  await clock.pass(1_000)
  t.equal(await shown(ADA), '2026-03-01T12:00:00.000Z')
})

t.test('whoever is gone is not written, nor what waits at the end', async (t) => {
  const { clock, member, asked } = scene()
  const noted = member()
  noted.active({ ...ADA, identity: 'nobody' })
  await clock.pass(MINUTE_MS)
  noted.active(ADA)
  noted.stop()
  await clock.pass(MINUTE_MS)
  t.equal(asked('used'), 0)
})

t.test('100,000 identities at once: 50 a second are written, and memory has a bound', async (t) => {
  const clock = new HeldClock()
  const asked: ActorRequest[] = []
  const written = new Map<string, number>()
  const noted = new NotedActivity(
    {
      system: { get: () => ({ value: {} }) } as unknown as SystemView,
      ask: (request): Promise<Reply> => {
        asked.push(request)
        const body = request.messages[0]!.body as { identity: string; atMs: number }
        written.set(body.identity, (written.get(body.identity) ?? 0) + 1)
        const data = { atMs: body.atMs }
        const results = [{ type: 'used', success: true, data }] as const
        return Promise.resolve({
          ...{ outcome: 'answered', actorId: request.id, keys: [], results, position: null },
        } as Reply)
      },
    },
    clock,
  )
  const { activityWritesPerSecondMax, activityWaitingMax, activityKnownMax } = LIMITS.access
  t.ok(activityKnownMax >= LIMITS.access.principalsMax + LIMITS.access.clientsMax)
  const seconds = 100_000 / activityWritesPerSecondMax
  t.ok(seconds * 1_000 < LIMITS.access.activityEveryMs, 'all are written within the hour')
  let most = 0
  const all = Array.from({ length: 100_000 }, (_, i) => `p${i}`)
  // Each of them is seen every half minute, as tokens in use are.
  for (let half = 0; half * 30 < seconds + 60; half++) {
    for (const identity of all) noted.active({ kind: 'principal', identity })
    const before = asked.length
    await clock.pass(30_000)
    most = Math.max(most, asked.length - before)
    t.ok(noted.sizes.waiting <= activityWaitingMax)
  }
  t.ok(most <= 30 * activityWritesPerSecondMax, `${most} in half a minute`)
  t.equal(written.size, 100_000)
  t.equal(asked.length, 100_000, 'each once')
  t.same(noted.sizes, { written: 100_000, waiting: 0 })
})

t.test('what it knows has a bound: who was written longest ago is forgotten', async (t) => {
  t.teardown(overrideLimits({ 'access.activityKnownMax': 2 }))
  const { system, clock, member, asked } = scene()
  system.put('principal', 'eve', { properties: { email: 'e@b.se' }, roles: [] })
  const noted = member()
  const all = [ADA, SHOP, { ...ADA, identity: 'eve' }]
  for (let round = 1; round <= 2; round++) {
    for (const one of all) noted.active(one)
    await clock.pass(MINUTE_MS)
    t.equal(noted.sizes.written, 2)
  }
  const offset = system.heads()[0]!.offset
  t.equal(asked('used'), 4, 'asked again, and refused without an entry')
  t.equal(offset, 6, 'three identities, three activities')
})

t.test('a page is read side by side within a deadline; what is late is left out', async (t) => {
  const clock = new HeldClock()
  let now = 0
  let most = 0
  const budgets: number[] = []
  const last = new LastActivity(
    {
      async ask({ budgetMs }): Promise<Reply> {
        most = Math.max(most, ++now)
        budgets.push(budgetMs)
        await new Promise((resolve) => setImmediate(resolve))
        now--
        if (budgets.length % 16 === 0) clock.ms += 400
        if (budgetMs < 400) return { outcome: 'refused', error: errorItem('UNAVAILABLE', 'late') }
        return { outcome: 'refused', error: errorItem('NOT_FOUND', 'never') }
      },
    },
    clock,
  )
  const shown = await last.of(
    'principal',
    Array.from({ length: 100 }, (_, i) => `p${i}`),
    't',
  )
  t.equal(most, LIMITS.access.activityReadsMax)
  t.ok(budgets.every((ms) => ms <= LIMITS.access.activityReadMs && ms > 0))
  const told = shown.filter((one) => one !== null)
  t.ok(told.length >= 32 && told.length < 64, `${told.length} in time`)
  t.ok(
    told.every(({ lastActiveAt }) => lastActiveAt === null),
    'never is not the same as unknown',
  )
})

t.test('what can not be told is not the same as never', async (t) => {
  const { system, clock } = scene()
  const last = new LastActivity(system, clock)
  const [never] = await last.of('principal', ['ada'], 't')
  t.equal(never!.lastActiveAt, null)
  system.before = () => ({ outcome: 'refused', error: errorItem('UNAVAILABLE', 'away') })
  t.same(await last.of('principal', ['ada'], 't'), [null])
})

t.test('a time that is ahead of this clock is shown as now', async (t) => {
  const { clock, member, shown } = scene()
  member().active(ADA)
  await clock.pass(1_000)
  clock.ms = START_MS - 5_000
  t.equal(await shown(ADA), '2026-03-01T11:59:55.000Z')
})
