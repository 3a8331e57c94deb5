// A suspect by itself: what it waits for, how long, and that it ends once.

import t from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import type { Envelope, WireReply } from '../../../protocol/message.ts'
import { TestClock } from '../../testing/harness.ts'
import type { Arrivals } from './arrivals.ts'
import { Suspect } from './suspect.ts'
import type { SuspectHost } from './suspect.ts'

const MOVED = { outcome: 'moved' } as unknown as WireReply
const ANSWER = { outcome: 'answered' } as unknown as WireReply

function makeSuspect() {
  const clock = new TestClock()
  const shard = {
    context: { clock },
    state: 'serving',
    gate: { hasOpen: false, isFlying: false },
    activations: new Map([['idle', { running: null, mailbox: [] }]]),
    moved: () => MOVED,
  }
  /** What runs, by name, until it is answered. */
  const running = new Map<string, () => void>()
  const arrivals = {
    receive: ({ traceId }: { traceId: string }, respond: (reply: WireReply) => void) =>
      void running.set(traceId, () => respond(ANSWER)),
  }
  const replies: (readonly [string, WireReply])[] = []
  const world = { clock, shard, running, replies, ends: 0, suspect: null as unknown as Suspect }
  world.suspect = new Suspect(
    shard as unknown as SuspectHost,
    arrivals as unknown as Pick<Arrivals, 'receive'>,
    () => void world.ends++,
  )
  const receive = (name: string, crashes: number = LIMITS.sharding.crashesAlone): void => {
    const envelope = { traceId: name, crashes } as unknown as Envelope
    world.suspect.receive(envelope, (reply) => void replies.push([name, reply]))
  }
  const setActor = (actor: { running: unknown; mailbox: readonly unknown[] }): void =>
    void shard.activations.set('busy', actor as never)
  return Object.assign(world, { receive, setActor })
}

type World = ReturnType<typeof makeSuspect>

t.test('alone it runs at once, and others go on with its answer', async (t) => {
  const world = makeSuspect()
  const { receive, running, suspect, replies, clock } = world
  receive('one')
  t.same([[...running.keys()], suspect.isRunning], [['one'], true])
  await clock.advance(LIMITS.sharding.sealedHeldMs - 1)
  t.ok(suspect.isRunning)
  running.get('one')!()
  t.same(replies, [['one', ANSWER]])
  t.notOk(suspect.isRunning)
  t.equal(world.ends, 1)
  await clock.advance(LIMITS.sharding.sealedHeldMs)
  t.equal(world.ends, 1, 'its time is over with it')
})

const BUSY: readonly (readonly [string, (world: World, isBusy: boolean) => void])[] = [
  ['an open group', ({ shard }, isBusy) => void (shard.gate.hasOpen = isBusy)],
  ['a group in flight', ({ shard }, isBusy) => void (shard.gate.isFlying = isBusy)],
  ['a turn', (world, isBusy) => world.setActor({ running: isBusy ? {} : null, mailbox: [] })],
  ['a mailbox', (world, isBusy) => world.setActor({ running: null, mailbox: isBusy ? [{}] : [] })],
]

for (const [what, set] of BUSY) {
  t.test(`${what} is waited for, a second at most`, async (t) => {
    const world = makeSuspect()
    const { receive, running, suspect, clock } = world
    set(world, true)
    receive('one')
    await clock.advance(LIMITS.sharding.sealedHeldMs / 2)
    t.same([running.size, suspect.isRunning], [0, true])
    set(world, false)
    await clock.advance(20)
    t.equal(running.size, 1)
    running.get('one')!()
    t.equal(world.ends, 1)
    set(world, true)
    receive('two')
    await clock.advance(LIMITS.sharding.sealedHeldMs - 10)
    t.notOk(running.has('two'))
    await clock.advance(20)
    t.ok(running.has('two'), 'it has waited for long enough')
  })
}

t.test('one that takes long lets others go on, and its answer ends nobody else', async (t) => {
  const world = makeSuspect()
  const { receive, running, suspect, clock, replies } = world
  receive('slow')
  await clock.advance(LIMITS.sharding.sealedHeldMs)
  t.same([suspect.isRunning, world.ends], [false, 1])
  receive('next')
  running.get('slow')!()
  t.same(replies, [['slow', ANSWER]])
  t.same([suspect.isRunning, world.ends], [true, 1], 'the next is alone still')
  running.get('next')!()
  t.same([suspect.isRunning, world.ends], [false, 2])
})

t.test('a shard that steps down meanwhile sends it back at once', async (t) => {
  const world = makeSuspect()
  const { receive, running, shard, clock, replies, suspect } = world
  shard.gate.isFlying = true
  receive('one')
  shard.state = 'sealed'
  await clock.advance(10)
  t.same([running.size, replies, suspect.isRunning], [0, [['one', MOVED]], false])
  t.equal(world.ends, 0, 'what waits here is for its next owner')
})

t.test('one that is given up anyway is handed on at once', (t) => {
  const world = makeSuspect()
  world.shard.gate.hasOpen = true
  world.receive('last', LIMITS.sharding.crashesMax)
  t.same([[...world.running.keys()], world.suspect.isRunning], [['last'], false])
  t.end()
})
