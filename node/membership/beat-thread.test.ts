// The beat from a thread of its own: it goes on while the main loop does, stops with it, and what
// it tells are times of the main thread's clock. On Cassandra, with a membership around it.

import t from 'tap'
import { systemClock } from '../../cluster/clock.ts'
import type { Sent } from '../../cluster/membership/beat.ts'
import { Membership } from '../../cluster/membership/membership.ts'
import { LIMITS } from '../../config/limits.ts'
import { freshUuid } from '../../storage/conformance/journal-samples.ts'
import { StoreMaker, testCassandra } from '../../storage/cassandra/testing/test-store.ts'
import { BeatThread } from './beat-thread.ts'

t.setTimeout(180_000)
const NOWHERE = {
  contactPoints: [],
  datacenter: '',
  keyspace: '',
  serial: 'LOCAL_SERIAL',
  credentials: null,
} as const
const entry = new URL('./testing/memory-beat-worker.ts', import.meta.url)
const clock = systemClock()

/** Waits for it; throws after ten seconds. */
async function until(holds: () => boolean, ms = 10_000): Promise<void> {
  const end = performance.now() + ms
  while (!holds()) {
    if (performance.now() > end) throw new Error('not within the deadline')
    await new Promise<void>((resolve) => void setTimeout(resolve, 5))
  }
}

/** Keeps the main loop from anything else. */
function wedge(ms: number): void {
  const end = performance.now() + ms
  while (performance.now() < end);
}

interface Heard {
  readonly thread: BeatThread
  readonly applied: { readonly sent: Sent; readonly atMs: number }[]
  readonly lost: string[]
  failed: number
  readonly logged: string[]
  begin(member: string): void
}

function hear(): Heard {
  const logged: string[] = []
  const say = (fields: object, text: string) =>
    void logged.push(`${text} ${JSON.stringify(fields)}`)
  const log = { debug: say, info: say, warn: say, error: say }
  const thread = new BeatThread({ control: NOWHERE, clock, log, entry })
  const heard: Heard = {
    thread,
    applied: [],
    lost: [],
    failed: 0,
    logged,
    begin(member) {
      thread.start(
        { member, incarnation: freshUuid() },
        {
          applied: (sent) => void heard.applied.push({ sent, atMs: performance.now() }),
          failed: () => void heard.failed++,
          lost: (why) => void heard.lost.push(why),
        },
      )
    },
  }
  return heard
}

void t.test('beats, told in times of this thread', async (t) => {
  const heard = hear()
  const began = performance.now()
  heard.begin('a')
  await until(() => heard.applied.length >= 3)
  t.match(heard.logged[0], /no connection.*not yet/, 'it tries again until it is connected')
  for (const { sent, atMs } of heard.applied) {
    t.ok(sent.monotonicMs >= began && sent.monotonicMs <= atMs, `${began} ${sent.monotonicMs}`)
    t.ok(Math.abs(sent.wallMs - sent.monotonicMs - (Date.now() - performance.now())) < 100)
  }
  const [one, two] = heard.applied
  const betweenMs = two!.sent.monotonicMs - one!.sent.monotonicMs
  // A timer may fire a millisecond or two early by this clock.
  t.ok(betweenMs >= LIMITS.membership.beatEveryMs - 10, `${betweenMs}`)
  heard.thread.stop()
  const { length } = heard.applied
  heard.begin('b')
  await until(() => heard.applied.length > length)
  t.same(heard.lost, [])
  heard.thread.close()
})

void t.test('one incarnation after another', async (t) => {
  const heard = hear()
  heard.begin('a')
  await until(() => heard.applied.length >= 1)
  const { length } = heard.applied
  // A beat's answer is on its way while the next incarnation begins.
  const sentMs = heard.applied[0]!.sent.monotonicMs
  await until(() => performance.now() > sentMs + LIMITS.membership.beatEveryMs - 50)
  wedge(200)
  const began = performance.now()
  heard.begin('b')
  await until(() => heard.applied.length > length)
  t.ok(heard.applied[length]!.sent.monotonicMs >= began)
  heard.thread.stop()
  const beats = () => heard.logged.filter((line) => line.startsWith('beat ')).length
  const before = beats()
  const end = performance.now() + 4 * LIMITS.membership.beatEveryMs
  await until(() => performance.now() > end)
  t.ok(beats() <= before + 1, 'nobody beats for an incarnation that was stopped')
  heard.thread.close()
})

void t.test(
  'an incarnation that ends before there is a connection is not beaten for',
  async (t) => {
    const heard = hear()
    heard.begin('a')
    heard.thread.stop()
    await until(() => heard.logged.some((line) => /no connection/.test(line)))
    const end = performance.now() + 4 * LIMITS.membership.beatEveryMs
    await until(() => performance.now() > end)
    t.match(heard.logged.slice(1), [/^the beat has its connection/], 'once there is one')
    t.equal(heard.logged.length, 2)
    heard.begin('b')
    await until(() => heard.applied.length > 0)
    heard.thread.close()
  },
)

void t.test('a wedged loop does not look alive', async (t) => {
  const heard = hear()
  heard.begin('a')
  await until(() => heard.applied.length >= 2)
  const beats = () => heard.logged.filter((line) => line.startsWith('beat ')).length
  const before = beats()
  wedge(2_500)
  await until(() => heard.applied.length >= 3)
  t.ok(beats() - before <= 3, `${beats() - before} beats`)
  const gaps = heard.applied.map(({ sent }, i) => {
    return i === 0 ? 0 : sent.monotonicMs - heard.applied[i - 1]!.sent.monotonicMs
  })
  await until(() => heard.applied.length >= 5)
  t.ok(Math.max(...gaps) > 0)
  t.same(heard.lost, [], 'and afterwards it goes on')
  heard.thread.close()
})

void t.test(
  'an incarnation that is over, a thread that ends, an outcome that is unknown',
  async (t) => {
    const heard = hear()
    heard.begin('dead')
    await until(() => heard.lost.length > 0)
    t.same(heard.lost, ['its row says dead'])
    heard.begin('unheard')
    await until(() => heard.failed > 0)
    const before = heard.applied.length
    await until(() => heard.applied.length > before + 1)
    heard.begin('dies')
    await until(() => heard.lost.length > 1)
    t.same(heard.lost.slice(1), ['the thread of the beat has ended'])
    const { length } = heard.applied
    heard.begin('again')
    await until(() => heard.applied.length > length)
    t.equal(heard.lost.length, 2, 'the next incarnation has a new thread')
    heard.thread.close()
    const after = heard.applied.length
    heard.begin('closed')
    t.equal(heard.applied.length, after)
  },
)

const cassandra = await testCassandra()
if ('skipped' in cassandra) {
  void t.test('the beat on Cassandra', { skip: cassandra.skipped }, () => {})
} else {
  const options = cassandra.options(t)
  const stores = new StoreMaker(options)
  void t.test('a membership on Cassandra', async (t) => {
    t.setTimeout(60_000)
    const { control, identity } = await stores.make(t, 2)
    const logged: string[] = []
    const say = (fields: object, text: string) =>
      void logged.push(`${text} ${JSON.stringify(fields)}`)
    const log = { debug: say, info: say, warn: say, error: say }
    const lost: string[] = []
    const { contactPoints, datacenter, keyspace } = options
    const at = { contactPoints, datacenter, keyspace, serial: identity.serial, credentials: null }
    const membership = new Membership({
      control,
      member: 'a',
      address: 'http://127.0.0.1',
      version: '1',
      world: { clock, random: (bytes) => void crypto.getRandomValues(bytes) },
      log,
      beat: new BeatThread({ control: at, clock, log }),
      onLost: (why) => void lost.push(why),
    })
    const incarnation = await membership.join()
    t.equal(membership.mayServe(), true)
    await until(() => membership.view?.live()[0]?.beat !== undefined)
    const { beat } = (await membership.refresh()).live()[0]!
    await until(() => (membership.view?.live()[0]?.beat ?? 0) >= beat + 3)
    t.equal(membership.mayServe(), true)
    const died = await control.updateMember('a', { state: 'dead' }, { incarnation, state: 'up' })
    t.equal(died, 'applied')
    await until(() => lost.length > 0)
    t.same(lost, ['its row says dead'])
    t.equal(membership.mayServe(), false)
    const began = performance.now()
    t.not(await membership.join(), incarnation)
    t.ok(performance.now() - began < 2_000)
    await membership.startLeaving()
    t.equal((await control.member('a'))!.state, 'leaving')
    await membership.left()
    t.equal((await control.member('a'))!.state, 'left')
    t.equal(lost.length, 1)
    membership.close()
  })
}
