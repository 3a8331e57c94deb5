// Requests that are counted in windows, and what is told of them.

import t from 'tap'
import { overrideLimits } from '../../../config/testing/override-limits.ts'
import { RateLimit } from './rate-limit.ts'

function scene(max: number) {
  const time = { ms: 10_000 }
  return { time, limit: new RateLimit('client', max, () => time.ms) }
}

t.test('so many in a window, counted down; then none until it ends', (t) => {
  const { time, limit } = scene(2)
  const first = limit.take('a')
  t.strictSame(first.headers, {
    'RateLimit-Policy': '"client";q=2;w=60',
    RateLimit: '"client";r=1;t=60',
  })
  const lines = Object.entries(first.headers).map(([name, value]) => `\r\n${name}: ${value}`)
  t.equal(first.text, lines.join(''))
  time.ms += 59_001
  const second = limit.take('a')
  t.strictSame([second.isOver, second.headers['RateLimit']], [false, '"client";r=0;t=1'])
  for (let i = 0; i < 100; i++) t.ok(limit.take('a').isOver)
  t.match(limit.take('a').headers, { RateLimit: '"client";r=0;t=1' })
  t.notOk(limit.take('b').isOver, 'others have their own')
  time.ms += 999
  const next = limit.take('a')
  t.strictSame([next.isOver, next.seconds], [false, 60])
  t.end()
})

t.test('memory has a bound: who began first is forgotten', (t) => {
  t.teardown(overrideLimits({ 'http.rateWindowsMax': 3 }))
  const { time, limit } = scene(1)
  for (const key of ['a', 'b', 'c']) {
    limit.take(key)
    time.ms++
  }
  t.ok(limit.take('a').isOver)
  limit.take('d')
  t.equal(limit.size, 3)
  t.ok(limit.take('b').isOver)
  t.notOk(limit.take('a').isOver)
  t.end()
})
