// The beat's own connection, by a clock that the test moves: one that can't be made is told of
// once, then once a minute, then that it is there.

import { MessageChannel } from 'node:worker_threads'
import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { TestClock } from '../../cluster/testing/harness.ts'
import { MemoryControl, newStatementState } from '../../storage/memory/statements.ts'
import type { FromBeatWorker } from './beat-messages.ts'
import { BeatService } from './beat-service.ts'

t.test('a connection that is not to be had for two minutes', async (t) => {
  const { port1, port2 } = new MessageChannel()
  const said: FromBeatWorker[] = []
  port2.on('message', (message: FromBeatWorker) => void said.push(message))
  const clock = new TestClock()
  let attempts = 0
  let isAway = true
  new BeatService({
    port: port1,
    ticks: new SharedArrayBuffer(4),
    clock,
    async connect() {
      attempts++
      if (isAway) throw new Error('no host is there')
      const control = new MemoryControl(newStatementState(1))
      return { control, close: () => Promise.resolve() }
    },
  }).serve()
  for (let ms = 0; ms <= 120_000; ms += LIMITS.membership.beatEveryMs)
    await clock.advance(LIMITS.membership.beatEveryMs)
  t.ok(attempts > 240)
  isAway = false
  await clock.advance(LIMITS.membership.beatEveryMs)
  const endsAtMs = performance.now() + 10_000
  while (said.length < 4 && performance.now() < endsAtMs) {
    await new Promise((resolve) => setImmediate(resolve))
  }
  const failing = 'the beat has no connection to the control rows'
  t.match(said, [
    { kind: 'log', level: 'warn', text: failing, fields: { failures: 1 } },
    { kind: 'log', level: 'warn', text: failing, fields: { failures: 121 } },
    { kind: 'log', level: 'warn', text: failing, fields: { failures: 241 } },
    { kind: 'log', level: 'info', text: 'the beat has its connection to the control rows' },
  ])
  t.equal(said.length, 4)
  port2.postMessage({ kind: 'close' })
  await new Promise((resolve) => port2.once('close', resolve))
})
