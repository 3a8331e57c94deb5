// One log, whatever its owners do: several take the shard from each other, append and roll, while
// statements are lost, unheard and late, in any order. What was acknowledged is there once, in one
// chain without holes. Source: PROTOCOL 3.7 (I1-I3).

import fc from 'fast-check'
import t from 'tap'
import { freshUuid, group } from '../../storage/conformance/journal-samples.ts'
import { LostTenure } from '../../storage/journal.ts'
import type { AppendOutcome, Group } from '../../storage/journal.ts'
import type { StatementState } from '../../storage/memory/statements.ts'
import { SegmentedLog } from './segmented-log.ts'
import { Chaos } from './testing/chaos.ts'
import { audit, chooser, engine, newState, takeShard } from './testing/engine.ts'
import type { Engine } from './testing/engine.ts'

const SHARD = 0
const OWNERS = 3
const TENURES = 4

interface World {
  readonly state: StatementState
  readonly chaos: Chaos
  readonly below: (n: number) => number
  readonly engines: Engine[]
  readonly acknowledged: string[]
  readonly bugs: string[]
  open(bad: number): SegmentedLog
}

function makeWorld(seed: number, bad: number): World {
  const { below, fate } = chooser(seed)
  const chaos = new Chaos(below)
  const state = newState()
  const engines: Engine[] = []
  const bugs: string[] = []
  const quiet = (): void => undefined
  return {
    state,
    chaos,
    below,
    engines,
    bugs,
    acknowledged: [],
    open(its = bad) {
      const one = engine(state)
      engines.push(one)
      one.fate = () => fate(its)
      one.pause = () => chaos.pause()
      return new SegmentedLog({
        segments: one.segments,
        control: one.control,
        flushOf: () => Promise.resolve(0),
        clock: chaos,
        log: { debug: quiet, info: quiet, warn: quiet, error: quiet },
        onBug: (_, text) => void bugs.push(text),
        limits: { rowsMax: 3, bytesMax: 1e9, entriesMax: 7 },
      })
    },
  }
}

/** An owner: takes the shard, appends until it is fenced or tired of it, and again. */
async function live(world: World, log: SegmentedLog): Promise<void> {
  for (let tenure = 0; tenure < TENURES; tenure++) {
    await world.chaos.pause()
    const given = await takeShard(world.state, SHARD, freshUuid())
    const { epoch } = given
    let head = 0
    try {
      head = (await log.claim(SHARD, given)).head
    } catch (error) {
      if (error instanceof LostTenure || /in time/.test(String(error))) continue
      throw error
    }
    for (let i = world.below(8); i >= 0; i--) {
      const sent = group({ shard: SHARD, epoch, head, count: 1 + world.below(3) })
      if ((await appendAndResolve(world, log, sent)) !== 'committed') break
      world.acknowledged.push(sent.commitId)
      head += sent.count
    }
  }
}

/** As a shard resolves an outcome; sometimes it gives up, and is claimed again. */
async function appendAndResolve(
  world: World,
  log: SegmentedLog,
  sent: Group,
): Promise<AppendOutcome> {
  for (;;) {
    const [outcome] = await log.append([sent])
    if (outcome !== 'unknown') return outcome!
    const { lastCommit, epoch } = await log.status(SHARD)
    if (lastCommit === sent.commitId) return 'committed'
    if (epoch > sent.epoch) return 'fenced'
    if (world.below(4) === 0) return 'unknown'
  }
}

/** Somebody who follows the log from its beginning. */
async function follow(world: World, log: SegmentedLog, until: () => boolean): Promise<string[]> {
  const found: string[] = []
  for (let at = 0; ;) {
    const isLast = until()
    const rows = await log.read(SHARD, at, 1 + world.below(60))
    for (const { commitId, offset, count } of rows) {
      if (offset - count !== at) throw new Error(`the follower sees a hole behind ${at}`)
      at = offset
      found.push(commitId)
    }
    if (rows.length === 0 && isLast) return found
    await world.chaos.pause()
  }
}

async function holds(seed: number, bad: number): Promise<void> {
  const world = makeWorld(seed, bad)
  const { chaos, state, below } = world
  const lateLands = async (): Promise<void> => {
    const { late } = world.engines[below(world.engines.length)]!
    if (late.length > 0) await late.splice(below(late.length), 1)[0]!()
  }
  let isOver = false
  const runs = Array.from({ length: OWNERS }, () => live(world, world.open(bad)))
  const owners = Promise.all(runs).then(() => void (isOver = true))
  const followed = follow(world, world.open(0), () => isOver)
  const all = Promise.all([owners, followed])
  const [, seen] = await chaos.run(all, lateLands)
  while (world.engines.some(({ late }) => late.length > 0)) await lateLands()

  const log = world.open(0)
  const given = await takeShard(state, SHARD, 'last')
  const claimed = await chaos.run(log.claim(SHARD, given), lateLands)
  const { wrong, commits } = await audit(state, SHARD)
  const { acknowledged, bugs } = world
  const lost = acknowledged.filter((commitId) => !commits.includes(commitId))
  const rows = await chaos.run(log.read(SHARD, 0, 1e9), lateLands)
  const problems = [...wrong, ...bugs, ...lost.map((commitId) => `${commitId} is lost`)]
  if (rows.map(({ commitId }) => commitId).join() !== commits.join()) problems.push('read is short')
  // What lands while it reads its last may be behind that.
  if (seen.join() !== commits.slice(0, seen.length).join()) problems.push('followed otherwise')
  const last = group({ shard: SHARD, epoch: given.epoch, head: claimed.head })
  const [outcome] = await chaos.run(log.append([last]), lateLands)
  if (outcome !== 'committed') problems.push('and cannot go on')
  if (problems.length > 0) throw new Error(problems.join('; '))
}

void t.test('one chain, nothing acknowledged lost', async (t) => {
  let runs = 0
  const seeds = fc.asyncProperty(fc.nat(), fc.constantFrom(0, 0.1, 0.4), async (seed, bad) => {
    runs++
    await holds(seed, bad)
  })
  await fc.assert(seeds, { numRuns: 250, endOnFailure: true })
  t.ok(runs >= 250)
})
