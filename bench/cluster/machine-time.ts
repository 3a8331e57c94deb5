// How much of the machine's CPU nobody used, by the kernel's own count (Linux /proc/stat). It tells
// whether the machine was a run's limit.

import { readFileSync } from 'node:fs'

export class MachineTime {
  #began = times()
  #ended = this.#began

  start(): void {
    this.#began = times()
  }

  stop(): void {
    this.#ended = times()
  }

  /** Share of all CPUs between start and stop; waiting for a disk counts as idle. */
  get idle(): number {
    const all = this.#ended.all - this.#began.all
    return all === 0 ? 1 : (this.#ended.idle - this.#began.idle) / all
  }
}

function times(): { readonly all: number; readonly idle: number } {
  const [line = ''] = readFileSync('/proc/stat', 'utf8').split('\n', 1)
  // user nice system idle iowait irq softirq steal; guest times are in user's already.
  const ticks = line.split(/\s+/).slice(1, 9).map(Number)
  const all = ticks.reduce((sum, n) => sum + n, 0)
  return { all, idle: (ticks[3] ?? 0) + (ticks[4] ?? 0) }
}
