// Files of the log are replaced: whatever crash comes, every place leads to what it led to, and
// nothing is gone that was not to go. Source: PROTOCOL 3.16.

import t from 'tap'
import { replaceRun } from './testing/replace-run.ts'
import { SimulatedDisk } from './testing/simulated-disk.ts'

const SEEDS = 60

t.test('a crash at any point loses no place', async (t) => {
  let [all, files] = [0, 0]
  for (let seed = 1; seed <= SEEDS; seed++) {
    const { points, replaced } = await replaceRun(seed, new SimulatedDisk())
    all += points
    files += replaced
  }
  t.ok(all > 50 * SEEDS && files > 3 * SEEDS, `${all} crash points, ${files} files replaced`)
})
