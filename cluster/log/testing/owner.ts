// An owner of shard 0 on an engine of tests: takes the shard, claims its log, appends to it.

import { freshUuid, group } from '../../../storage/conformance/journal-samples.ts'
import type { Group } from '../../../storage/journal.ts'
import type { StatementState } from '../../../storage/memory/statements.ts'
import { TestClock } from '../../testing/harness.ts'
import { SegmentedLog } from '../segmented-log.ts'
import { engine, takeShard } from './engine.ts'
import type { Engine, Fate, StatementKind } from './engine.ts'

export interface Owner {
  readonly log: SegmentedLog
  readonly engine: Engine
  readonly bugs: string[]
  readonly clock: TestClock
  /** Takes shard 0 by the control rows and claims it. */
  claim(): Promise<{ epoch: number; head: number }>
}

export const SMALL = { rowsMax: 2, bytesMax: 1e9, entriesMax: 1e9 }
/** Never full. */
export const LARGE = { rowsMax: 1e9, bytesMax: 1e9, entriesMax: 1e9 }
export const BAD: readonly Fate[] = ['unheard', 'lost', 'late']

export function owner(state: StatementState, limits = LARGE): Owner {
  const clock = new TestClock()
  const bugs: string[] = []
  const its = engine(state)
  const quiet = () => undefined
  const log = new SegmentedLog({
    segments: its.segments,
    control: its.control,
    flushOf: () => Promise.resolve(0),
    clock,
    log: { debug: quiet, info: quiet, warn: quiet, error: quiet },
    onBug: (shard, text) => void bugs.push(`${shard}: ${text}`),
    limits,
  })
  const claim = async () => log.claim(0, await takeShard(state, 0, freshUuid()))
  return { log, engine: its, bugs, clock, claim }
}

export function of(epoch: number, head: number, count = 1): Group {
  return group({ shard: 0, epoch, head, count })
}

/** The next statement of this kind has this fate; all others are heard. */
export function once(its: Engine, kind: StatementKind, fate: Fate): void {
  its.fate = (sent) => {
    if (sent !== kind) return 'heard'
    its.fate = null
    return fate
  }
}

export async function append(one: Owner, sent: Group) {
  return (await one.log.append([sent]))[0]!
}

/** As the shard does it: status, then the same bytes again, until it is decided. */
export async function resolve(one: Owner, sent: Group) {
  let outcome = await append(one, sent)
  for (let i = 0; outcome === 'unknown'; i++) {
    if (i === 10) throw new Error('stays unknown')
    const status = await one.log.status(sent.shard)
    if (status.lastCommit === sent.commitId) return 'committed'
    if (status.epoch > sent.epoch) return 'fenced'
    outcome = await append(one, sent)
  }
  return outcome
}

/** Lets claims that wait between two attempts go on. */
export async function patiently<T>(one: Owner, asked: Promise<T>): Promise<T> {
  const its = { isDone: false }
  const ended = asked.finally(() => (its.isDone = true))
  ended.catch(() => undefined)
  for (let i = 0; !its.isDone && i < 100; i++) await one.clock.advance(100)
  return ended
}

export async function land(its: Engine): Promise<void> {
  for (const statement of its.late.splice(0)) await statement()
}
