// An owner dies while its bulk is on the way, and the bulk is lost: its successor finds the offset
// of before it, and writes what the bulk would have written (PROTOCOL 3.13.1, F20).

import type { Stage } from './stage.ts'

export const hasGraph = true

export async function play(stage: Stage): Promise<void> {
  await stage.dieInBulk()
  await stage.until('it is shown', () => stage.isShown())
}
