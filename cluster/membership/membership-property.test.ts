// Leases and deaths under chance: machines that stop and are suspended, clocks of unlike rates that
// jump, statements that are late, lost, unheard, newcomers of the same names. Whoever may serve by
// its own clocks is alive in the store: nobody else can have taken its shards. Source: PROTOCOL 3.7
// (I5).

import fc from 'fast-check'
import t from 'tap'
import { newStatementState } from '../../storage/memory/statements.ts'
import { TestClock, seeded } from '../testing/harness.ts'
import { Machine } from './testing/machine.ts'

const STEP_MS = 20
const STEPS = 1_000
const CALM_MS = 10_000
const CALM_STEP_MS = 100
/** Two processes of each name. */
const NAMES = ['a', 'a', 'b', 'b', 'c', 'c']

interface Run {
  readonly machines: readonly Machine[]
  readonly chance: () => number
  readonly time: TestClock
  readonly state: ReturnType<typeof newStatementState>
  served: number
  ended: number
}

function makeRun(seed: number): Run {
  const chance = seeded(seed)
  const time = new TestClock()
  const state = newStatementState(1)
  const machines = NAMES.map((member, i) => {
    // The fastest is less than a quarter faster than the slowest.
    const rate = 0.9 + 0.22 * chance()
    const machine = new Machine({ member, time, state, rate, seed: seed * 31 + i })
    machine.delay = () => Math.floor(chance() * (chance() < 0.05 ? 1_500 : 60))
    machine.fate = () => {
      if (chance() < 0.85) return 'heard'
      return (['unheard', 'lost', 'late'] as const)[Math.floor(chance() * 3)]!
    }
    return machine
  })
  return { machines, chance, time, state, served: 0, ended: 0 }
}

/** Something happens to one of the machines. */
async function fault({ machines, chance }: Run): Promise<void> {
  const i = Math.floor(chance() * machines.length)
  const one = machines[i]!
  // A wall clock that is set back by as much as its machine was suspended hides that from anybody.
  const maySuspend = i % 2 === 0
  const what = chance()
  if (what < 0.35) one.stop()
  else if (what < 0.4 && maySuspend) one.suspend()
  else if (what < 0.6) one.resume()
  else if (what < 0.65) {
    one.wallOffsetMs += Math.floor((chance() - (maySuspend ? 0 : 0.5)) * 10_000)
  } else if (what < 0.75) one.isAway = !one.isAway
  else if (what < 0.97) await one.late.shift()?.()
  else if (one.membership.incarnation !== null) void one.membership.startLeaving()
}

/** A process whose incarnation is over begins another, as its owner does. */
function live({ machines }: Run, incarnations: number[]): void {
  for (const [i, one] of machines.entries()) {
    if (one.lost.length >= incarnations[i]!) {
      incarnations[i]!++
      one.membership.join().catch(() => undefined)
    }
  }
}

/** What must hold at any time, whether a machine is stopped or not: it may go on just now. */
function check(run: Run): void {
  for (const { membership } of run.machines) {
    if (!membership.mayServe()) continue
    run.served++
    const { incarnation } = membership
    const row = [...run.state.members.values()].find((r) => r.incarnation === incarnation)
    if (!row) throw new Error(`${incarnation} serves, and its row is another's`)
    if (row.state !== 'up' && row.state !== 'leaving') {
      throw new Error(`${incarnation} serves, and its row says ${row.state}`)
    }
  }
}

async function holds(seed: number): Promise<Run> {
  const run = makeRun(seed)
  const { machines, chance, time, state } = run
  const incarnations = machines.map(() => 0)
  for (let step = 0; step < STEPS; step++) {
    live(run, incarnations)
    if (chance() < 0.06) await fault(run)
    await time.advance(STEP_MS)
    check(run)
  }
  for (const one of machines) {
    one.resume()
    one.isAway = false
    one.delay = null
    one.fate = null
    for (const land of one.late.splice(0)) await land()
  }
  for (let ms = 0; ms < CALM_MS; ms += CALM_STEP_MS) {
    live(run, incarnations)
    await time.advance(CALM_STEP_MS)
    check(run)
  }
  for (const name of new Set(NAMES)) {
    const serving = machines.filter((one, i) => NAMES[i] === name && one.membership.mayServe())
    if (serving.length !== 1) throw new Error(`${serving.length} serve as ${name} in the end`)
    const { incarnation } = serving[0]!.membership
    if (state.members.get(name)!.incarnation !== incarnation) throw new Error('not by its row')
  }
  run.ended = incarnations.reduce((sum, n) => sum + n - 1, 0)
  for (const { membership } of machines) membership.close()
  return run
}

void t.test('who may serve, is alive', async (t) => {
  let [served, ended] = [0, 0]
  const seeds = fc.asyncProperty(fc.nat(), async (seed) => {
    const run = await holds(seed)
    served += run.served
    ended += run.ended
  })
  await fc.assert(seeds, { numRuns: 8, endOnFailure: true })
  t.ok(served > 500 && ended > 8, `${served} times served, ${ended} incarnations ended`)
})
