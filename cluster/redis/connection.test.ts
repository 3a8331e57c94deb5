// A connection to Redis that is made again: how long it waits, what it counts as lost, and that it
// ends when it is told to. The sockets are real, the waits are written down and over at once.

import t from 'tap'
import type { Test } from 'tap'
import { LIMITS } from '../../config/limits.ts'
import type { Clock } from '../clock.ts'
import { eventually } from '../testing/wire-conformance.ts'
import { Connection } from './connection.ts'
import type { Redis } from './connection.ts'
import { ScriptedRedis } from './testing/scripted-redis.ts'

t.setTimeout(120_000)
const soon = (holds: () => boolean): Promise<boolean> => eventually(holds, 30_000)

/** `onUp`: what is done with it as soon as it is there. */
function connecting(t: Test, url: string, onUp: (scene: Scene) => void) {
  const scene: Scene = { waits: [], ups: 0, downs: 0, told: 0, nowMs: 0, connection: null as never }
  const clock: Clock = {
    nowMs: () => scene.nowMs,
    monotonicMs: () => scene.nowMs,
    after(ms, run) {
      scene.waits.push(ms)
      setImmediate(run)
      return () => undefined
    },
    defer: (run) => void setImmediate(run),
  }
  const quiet = (): void => undefined
  scene.connection = new Connection({
    urls: [url],
    name: 'test',
    clock,
    log: { debug: quiet, info: quiet, warn: () => void scene.told++, error: quiet },
    onUp: () => {
      scene.ups++
      onUp(scene)
    },
    onDown: () => void scene.downs++,
  })
  t.teardown(() => scene.connection.stop())
  scene.connection.start()
  return scene
}

interface Scene {
  readonly waits: number[]
  ups: number
  downs: number
  told: number
  nowMs: number
  connection: { readonly client: Redis | null } & Pick<Connection, 'start' | 'drop' | 'stop'>
}

async function server(t: Test): Promise<ScriptedRedis> {
  const redis = await ScriptedRedis.start()
  t.teardown(() => redis.stop())
  return redis
}

t.test('a server that is reached and can not be used is tried ever later', async (t) => {
  const redis = await server(t)
  const scene = connecting(t, redis.url, ({ connection }) => connection.drop())
  t.ok(await soon(() => scene.waits.length >= 9))
  const most = LIMITS.redis.reconnectMsMax
  t.same(scene.waits.slice(0, 9), [20, 40, 80, 160, 320, 640, most, most, most])
  t.equal(scene.told, 1, 'that is told once a minute')
})

t.test('one that was used for a while is tried again soon, and its loss is told', async (t) => {
  const redis = await server(t)
  const scene = connecting(t, redis.url, (scene) => {
    scene.nowMs += LIMITS.redis.reconnectMsMax
    scene.connection.drop()
  })
  t.ok(await soon(() => scene.waits.length >= 4))
  t.same(scene.waits.slice(0, 4), [20, 20, 20, 20])
  t.ok(scene.told >= 4)
  t.ok(scene.downs >= 4, `${scene.downs} losses of ${scene.ups}`)
})

t.test('what was never up is not lost, and nothing is tried once it is stopped', async (t) => {
  const redis = await ScriptedRedis.start()
  const { url } = redis
  await redis.stop()
  const scene = connecting(t, url, () => t.fail('nobody is there'))
  t.ok(await soon(() => scene.waits.length >= 3))
  t.equal(scene.downs, 0)
  t.equal(scene.connection.client, null)
  scene.connection.stop()
  await new Promise((resolve) => setImmediate(resolve))
  const { length } = scene.waits
  for (let i = 0; i < 50; i++) await new Promise((resolve) => setImmediate(resolve))
  t.equal(scene.waits.length, length)
})

t.test('one that is stopped while it is up goes without a word', async (t) => {
  const redis = await server(t)
  const scene = connecting(t, redis.url, () => undefined)
  t.ok(await soon(() => scene.connection.client !== null))
  const client = scene.connection.client!
  scene.connection.stop()
  t.ok(await soon(() => client.status === 'end'))
  t.equal(scene.connection.client, null)
  t.same([scene.waits, scene.downs, scene.told], [[], 0, 0])
})
