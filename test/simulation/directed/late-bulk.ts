// A bulk of an owner that was replaced reaches the search engine long after its successor has
// written newer content and removed nodes (PROTOCOL 3.13.2, 3.13.3, F20).

import type { Stage } from './stage.ts'

export const hasGraph = true

export async function play(stage: Stage): Promise<void> {
  const { id, heir, bulks } = await stage.dieInBulk()
  await stage.must(heir, id, [['append', { token: 't2' }]])
  await stage.must(heir, id, [['strike'], ['strike']])
  await stage.until('it is shown', () => stage.isShown())
  // Longer than the engine remembers what was deleted for good.
  await stage.wait(1_000)
  await bulks.land()
}
