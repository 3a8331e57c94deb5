// Crashes: at some 10,000 points of random runs, and again while opening, everything that was
// acknowledged is there, and at most what was under way besides. And the other way round: a disk
// or a fence that lies is found out by these runs, or they would prove nothing.

import t from 'tap'
import { CRASH_POINTS, crashRun, staleRun } from './testing/log-run.ts'
import { SimulatedDisk } from './testing/simulated-disk.ts'

const SEEDS = 200

/** A disk on which no writer ever sees that a newer one has begun a file. */
class BlindDisk extends SimulatedDisk {
  override exists(name: string): boolean {
    return !name.endsWith('.seg') && super.exists(name)
  }
}

async function failures(run: (seed: number) => Promise<unknown>): Promise<number> {
  let failed = 0
  for (let seed = 1; seed <= 20; seed++) await run(seed).catch(() => failed++)
  return failed
}

t.test('a crash at any point loses nothing that was acknowledged', async (t) => {
  let points = 0
  for (let seed = 1; seed <= SEEDS; seed++) points += await crashRun(seed, new SimulatedDisk())
  t.ok(points >= SEEDS * CRASH_POINTS, `${points} crash points`)
})

t.test('a stale writer never acknowledges what a newer one does not have', async (t) => {
  let fenced = 0
  for (let seed = 1; seed <= 300; seed++)
    fenced += (await staleRun(seed, new SimulatedDisk())) ? 1 : 0
  t.ok(fenced > 200, `${fenced} were fenced while they appended`)
})

t.test('a disk that forgets what it says is synced is found out', async (t) => {
  t.equal(await failures((seed) => crashRun(seed, new SimulatedDisk({ forgetsSyncs: true }))), 20)
})

t.test('a writer that does not look for a newer one is found out', async (t) => {
  t.ok((await failures((seed) => staleRun(seed, new BlindDisk()))) > 4)
})
