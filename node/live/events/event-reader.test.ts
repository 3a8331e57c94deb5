// Events read one after another: in order, with positions that tell what was missed, until the end.

import t from 'tap'
import { TestClock } from '../../../cluster/testing/harness.ts'
import { LIMITS } from '../../../config/limits.ts'
import { overrideLimits } from '../../../config/testing/override-limits.ts'
import { ActorSystemTwin } from '../../testing/actor-system-twin.ts'
import { EventReader } from './event-reader.ts'
import { EventStream } from './event-stream.ts'
import type { PlatformEvent } from './topic.ts'

function scene() {
  const clock = new TestClock()
  const stream = new EventStream({
    ...{ system: new ActorSystemTwin([]).system, clock, behaviours: new Map() },
    watch: { add() {}, want: async () => undefined },
  })
  const open = async (maySee: (event: PlatformEvent) => boolean = () => true) => {
    const topic = { path: 'registry/a', root: 'registry', events: ['changed'] } as const
    const opened = EventReader.open({ stream, topic, maySee })
    await clock.advance(LIMITS.feed.watchGatherMs)
    return opened
  }
  const happens = (path: string, eventType = 'changed'): void =>
    stream.publish({ path, root: 'registry', eventType, data: { path }, timestamp: 'now' })
  return { stream, open, happens }
}

t.test('events are read in order, as they come or from those that wait', async (t) => {
  const { open, happens } = scene()
  const reader = await open()
  const first = reader.next()
  const second = reader.next()
  for (const path of ['registry/b', 'registry/a', 'registry/a/x']) happens(path)
  happens('registry/a', 'deleted')
  happens('registry/a/y')
  const about = { done: false, value: { data: { path: 'registry/a' }, timestamp: 'now' } }
  t.match(await first, { ...about, value: { ...about.value, position: 0 } })
  t.match(await second, { value: { path: 'registry/a/x', position: 1 } })
  for await (const { path, position } of reader) {
    t.strictSame([path, position], ['registry/a/y', 2])
    break
  }
})

t.test(
  'who reads too slowly sees how many were missed; what is not seen is not counted',
  async (t) => {
    t.teardown(overrideLimits({ 'live.eventsUnreadMax': 2 }))
    const { open, happens } = scene()
    const reader = await open(({ path }) => path !== 'registry/a/hidden')
    for (const name of ['1', '2', 'hidden', '3', '4']) happens(`registry/a/${name}`)
    t.match(await reader.next(), { value: { path: 'registry/a/1', position: 0 } })
    t.match(await reader.next(), { value: { path: 'registry/a/2', position: 1 } })
    const next = reader.next()
    happens('registry/a/5')
    t.match(await next, { value: { path: 'registry/a/5', position: 4 } })
    const reads = [reader.next(), reader.next()]
    await t.rejects(reader.next(), /too many reads/)
    await reader.return()
    t.match(await Promise.all(reads), [{ done: true }, { done: true }])
  },
)

t.test('its end is for who waits too, and nothing is left of it', async (t) => {
  const { stream, open, happens } = scene()
  const reader = await open()
  const other = await open()
  const waits = reader.next()
  t.strictSame(await reader.return(), { done: true, value: undefined })
  t.match(await waits, { done: true })
  happens('registry/a')
  t.match(await reader.next(), { done: true })
  t.match(await other.next(), { value: { position: 0 } })
  await other.return()
  await other.return()
  t.equal(stream.size, 0)
})
