// What is said of an engine that is away, by a clock that the test moves.

import t from 'tap'
import { Outage } from './outage.ts'

function outage(quietMs = 5_000) {
  const said: string[] = []
  const scene = { nowMs: 1_000, said, of: null as unknown as Outage }
  const say = (fields: object, text: string): void => {
    said.push(`${text} ${(fields as { failures: number }).failures}`)
  }
  scene.of = new Outage({
    log: { info: say, warn: say },
    now: () => scene.nowMs,
    failing: 'away',
    back: 'back',
    quietMs,
  })
  return scene
}

t.test('an engine that is away for two minutes is three lines and one', async (t) => {
  const scene = outage()
  scene.of.answered()
  t.strictSame(scene.said, [], 'all is well')
  for (let i = 0; i <= 1_200; i++) {
    scene.of.failed({ err: i })
    scene.nowMs += 100
  }
  t.strictSame(scene.said.splice(0), ['away 1', 'away 601', 'away 1201'])
  scene.of.answered()
  t.strictSame(scene.said, [], 'some of it answers')
  scene.nowMs += 5_000
  scene.of.answered()
  scene.of.answered()
  t.strictSame(scene.said.splice(0), ['back 1201'])
  scene.of.failed({})
  t.strictSame(scene.said, ['away 1'], 'the next one is told at once')
})

t.test('who asks for one thing at a time takes the first answer for it', async (t) => {
  const scene = outage(0)
  scene.of.failed({})
  scene.of.answered()
  t.strictSame(scene.said, ['away 1', 'back 1'])
})
