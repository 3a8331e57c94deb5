// The stream of events: who is told of what, against a plain look through all subscriptions, and
// what other members are asked for. Source: CONTRACT 1.10, PROTOCOL 3.18.

import fc from 'fast-check'
import t from 'tap'
import { TestClock } from '../../../cluster/testing/harness.ts'
import { LIMITS } from '../../../config/limits.ts'
import { overrideLimits } from '../../../config/testing/override-limits.ts'
import { ActorSystemTwin } from '../../testing/actor-system-twin.ts'
import { registryBehaviour } from '../../registry/entry.ts'
import { EventStream } from './event-stream.ts'
import type { EventTaker } from './event-stream.ts'
import type { PlatformEvent, Topic } from './topic.ts'

function scene() {
  const clock = new TestClock()
  const told: unknown[] = []
  const system = new ActorSystemTwin([registryBehaviour(() => null)])
  const stream = new EventStream({
    watch: { add() {}, want: async (_, interest) => void told.push(interest) },
    system: system.system,
    behaviours: new Map(),
    clock,
  })
  return { clock, told, system, stream }
}

class Taker implements EventTaker {
  readonly got: string[] = []
  take({ path, eventType }: PlatformEvent, ids: readonly string[]): void {
    this.got.push(`${eventType} ${path}: ${[...ids].sort().join(' ')}`)
  }
}

const PATHS = ['actors', 'actors/a', 'actors/a/1', 'actors/a/10', 'actors/b', 'actors/b/1']
const EVENTS = ['created', 'deleted']

function eventAt(path: string, eventType: string): PlatformEvent {
  return { path, root: 'actors', eventType, data: {}, timestamp: '' }
}

function topicAt(path: string, events: readonly string[]): Topic {
  return { path, root: path.startsWith('actors') ? 'actors' : 'registry', events }
}

const SUBSCRIPTION = fc.record({
  taker: fc.nat(2),
  id: fc.constantFrom('x', 'y', 'z'),
  path: fc.constantFrom(...PATHS),
  events: fc.subarray(EVENTS, { minLength: 1 }),
  isOver: fc.boolean(),
})

t.test('who has subscribed at or above is told, and nobody else', async (t) => {
  fc.assert(
    fc.property(
      fc.uniqueArray(SUBSCRIPTION, { selector: ({ taker, id }) => `${taker} ${id}`, maxLength: 9 }),
      fc.constantFrom(...PATHS),
      fc.constantFrom(...EVENTS),
      (all, path, eventType) => {
        const { stream } = scene()
        const takers = [new Taker(), new Taker(), new Taker()]
        for (const { taker, id, path: at, events } of all) {
          void stream.subscribe(takers[taker]!, new Map([[id, topicAt(at, events)]]))
        }
        const left = all.filter(({ taker, id, path: at, events, isOver }) => {
          if (isOver) stream.unsubscribe(takers[taker]!, new Map([[id, topicAt(at, events)]]))
          return !isOver
        })
        stream.publish(eventAt(path, eventType))
        for (const [i, { got }] of takers.entries()) {
          const ids = left
            .filter(({ taker, path: at, events }) => {
              const isAbove = path === at || path.startsWith(`${at}/`)
              return taker === i && isAbove && events.includes(eventType)
            })
            .map(({ id }) => id)
          const wanted = ids.length === 0 ? [] : [`${eventType} ${path}: ${ids.sort().join(' ')}`]
          if (got.join() !== wanted.join()) throw new Error(`${i}: ${got.join()}`)
        }
        if (stream.size !== new Set(left.map(({ path: at }) => at)).size) throw new Error('size')
      },
    ),
    { numRuns: 500 },
  )
  t.pass()
})

t.test('members are asked for paths, many together, and for types past the bound', async (t) => {
  const restore = overrideLimits({ 'live.watchedPathsMax': 3 })
  t.teardown(restore)
  const { stream, told, clock } = scene()
  const taker = new Taker()
  const pass = (): Promise<void> => clock.advance(LIMITS.feed.watchGatherMs)
  const topics = (...paths: readonly string[]): Map<string, Topic> =>
    new Map(paths.map((path) => [path, topicAt(path, EVENTS)]))
  void stream.subscribe(taker, topics('actors/a/2', 'registry/x'))
  void stream.subscribe(taker, topics('actors/a/1', 'actors/b'))
  t.strictSame(told, [])
  await pass()
  t.strictSame(told, [{ paths: ['actors/a/1', 'actors/a/2', 'actors/b'] }])
  void stream.subscribe(taker, topics('actors/a/3', 'actors/a/4'))
  await pass()
  t.strictSame(told.at(-1), { paths: ['actors/a', 'actors/b'] })
  void stream.subscribe(taker, topics('actors/a/5'))
  await pass()
  t.equal(told.length, 2, 'the same is not told again')
  stream.unsubscribe(taker, topics('actors/a/5', 'actors/a/4', 'actors/a/3', 'actors/b'))
  await pass()
  t.strictSame(told.at(-1), { paths: ['actors/a/1', 'actors/a/2'] })
  stream.unsubscribe(taker, topics('actors/a/1', 'actors/a/2'))
  await pass()
  t.equal(told.at(-1), null)
  t.equal(stream.size, 1)
})

t.test('the registry is told where it changes, without values', async (t) => {
  const { stream, system, told, clock } = scene()
  const taker = new Taker()
  const topic = topicAt('registry/shop', ['changed', 'deleted'])
  void stream.subscribe(taker, new Map([['r', topic]]))
  await clock.advance(LIMITS.feed.watchGatherMs)
  t.strictSame(told, [], 'nobody is asked for it')
  for (const key of ['shop', 'shopping', 'shop/a']) {
    system.put('registry', key, { value: 1, isSecret: false })
  }
  t.strictSame(taker.got, ['changed registry/shop: r', 'changed registry/shop/a: r'])
  stream.stop()
  system.put('registry', 'shop', { value: 2, isSecret: false })
  t.equal(taker.got.length, 2)
})
