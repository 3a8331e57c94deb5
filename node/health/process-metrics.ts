// The process's own numbers: CPU, memory, how long the event loop keeps callers waiting. Read at a
// scrape, it costs nothing in between.

import { readFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { getHeapStatistics } from 'node:v8'
import type { Metrics, Sample } from '../metrics.ts'

const LOOP_RESOLUTION_MS = 20

/** Adds the process's numbers to the registry. */
export function collectProcessMetrics(metrics: Metrics): void {
  const delay = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS })
  delay.enable()
  metrics.collect(function* (): Iterable<Sample> {
    const cpu = process.cpuUsage()
    const heap = getHeapStatistics()
    yield {
      name: 'process_cpu_seconds_total',
      help: 'CPU time of the process, user and system.',
      type: 'counter',
      value: (cpu.user + cpu.system) / 1e6,
    }
    const resident = residentBytes()
    if (resident !== null) {
      yield gauge(
        'process_resident_memory_bytes',
        'Resident memory, mapped files included.',
        resident,
      )
    }
    const anonymous = anonymousBytes()
    if (anonymous !== null) {
      yield gauge(
        'process_anonymous_memory_bytes',
        'Resident memory of its own, without mapped files.',
        anonymous,
      )
    }
    yield gauge('nodejs_heap_used_bytes', 'Used part of the JavaScript heap.', heap.used_heap_size)
    yield gauge('nodejs_external_memory_bytes', 'Buffers outside the heap.', heap.external_memory)
    // Without a turn of the loop there is no percentile yet.
    const p99 = Number.isFinite(delay.mean) ? delay.percentile(99) / 1e9 : 0
    yield gauge('nodejs_eventloop_lag_p99_seconds', 'Delay of timers since the last scrape.', p99)
    delay.reset()
  })
}

function gauge(name: string, help: string, value: number): Sample {
  return { name, help, type: 'gauge', value }
}

// Both open a file: what only observes must not fail a process that has run out of descriptors.

function residentBytes(): number | null {
  try {
    return process.memoryUsage.rss()
  } catch {
    return null
  }
}

/** RssAnon of Linux; null elsewhere. */
function anonymousBytes(): number | null {
  try {
    const kibibytes = /RssAnon:\s+([0-9]+) kB/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]
    return kibibytes === undefined ? null : Number(kibibytes) * 1024
  } catch {
    return null
  }
}
