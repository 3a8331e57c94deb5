// Moves the clocks of a node process ahead while it runs (lowered-limits.ts), so that what ends in
// hours or days ends within a test.

import type { NodeProcess } from './node-process.ts'
import { Patience, tick } from './patience.ts'

/**
 * Moves them `times` times by what its environment says (`LEAP_VARIABLE`, `leapMs`), and waits
 * until they are there: its sessions say what time it is.
 */
export async function leap(node: NodeProcess, leapMs: number, times = 1): Promise<void> {
  for (let i = 0; i < times; i++) {
    const toMs = (await timeThereMs(node)) + leapMs
    process.kill(node.pid, 'SIGUSR2')
    const patience = new Patience(30_000)
    // What is under way meanwhile is out of time.
    while ((await timeThereMs(node).catch(() => 0)) < toMs) {
      if (patience.isOver()) throw new Error('its clocks stand still')
      await tick()
    }
  }
}

/** When a session that is made now is made, by its own clock; milliseconds since 1970. */
export async function timeThereMs(node: NodeProcess): Promise<number> {
  const token = await node.token()
  const answer = await node.ask('/resources/me/sessions', { token })
  const [newest] = answer.json<{ sessions: { createdAt: string }[] }>().sessions
  return Date.parse(newest!.createdAt)
}
