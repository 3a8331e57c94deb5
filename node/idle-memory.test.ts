// A process that can open no more files goes on: what only observes doesn't end it.

import t from 'tap'
import { collectProcessMetrics } from './health/process-metrics.ts'
import { giveMemoryBackWhenIdle } from './idle-memory.ts'
import { Metrics } from './metrics.ts'

const full = (): never => {
  throw Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' })
}

t.test('the look at an idle heap opens no file', (t) => {
  t.intercept(process, 'memoryUsage', { value: Object.assign(full, { rss: full }) })
  let look = (): void => undefined
  const timer = { unref: () => undefined }
  const capture = (callback: () => void): typeof timer => {
    look = callback
    return timer
  }
  t.intercept(globalThis, 'setInterval', { value: capture })
  giveMemoryBackWhenIdle()
  t.doesNotThrow(look)
  t.end()
})

t.test('the metrics page leaves out what it can not find out', (t) => {
  const metrics = new Metrics()
  collectProcessMetrics(metrics)
  t.match(metrics.text(), /process_resident_memory_bytes [0-9]/)
  t.intercept(process, 'memoryUsage', { value: Object.assign(full, { rss: full }) })
  t.notMatch(metrics.text(), 'process_resident_memory_bytes')
  t.match(metrics.text(), /nodejs_heap_used_bytes [0-9]/)
  t.end()
})
