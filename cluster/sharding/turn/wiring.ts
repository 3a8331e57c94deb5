// The parts that run a shard's turns, each with what it needs of the shard and of the others.
// Source: ARCHITECTURE 2.

import { Claims } from '../keys/claims.ts'
import type { ClaimHost } from '../keys/claims.ts'
import { Holds } from '../keys/holds.ts'
import type { HoldsHost } from '../keys/holds.ts'
import { Arrivals } from './arrivals.ts'
import type { ArrivalHost } from './arrivals.ts'
import { RuntimeCalls } from './runtime-calls.ts'
import type { RuntimeCallHost } from './runtime-calls.ts'
import { Dedup } from './dedup.ts'
import type { DedupHost } from './dedup.ts'
import { History } from './history.ts'
import type { HistoryHost } from './history.ts'
import { TurnRunner } from './turns.ts'
import type { TurnHost } from './turns.ts'

/** A shard to which all of them can be wired; none sees more of it than its own part. */
export type WiringHost = ArrivalHost &
  RuntimeCallHost &
  ClaimHost &
  DedupHost &
  HistoryHost &
  HoldsHost &
  TurnHost

export interface Wired {
  readonly turns: TurnRunner
  readonly arrivals: Arrivals
}

export function wire(shard: WiringHost): Wired {
  const claims = new Claims(shard)
  const dedup = new Dedup(shard)
  const calls = new RuntimeCalls(shard, claims, new History(shard))
  const turns = new TurnRunner(shard, { calls, dedup, holds: new Holds(shard, dedup) })
  return { turns, arrivals: new Arrivals(shard, { turns, claims }) }
}
