// What a scenario is: which node it runs on, what it prepares there, and its load. The rounds of
// the bench know no business word.

import { closedLoop } from '../load/closed-loop.ts'
import type { LoadResult, Readings } from '../load/load.ts'
import { openLoop } from '../load/open-loop.ts'
import { inTurn, type Destination, type PreparedRequest } from '../load/requests.ts'
import type { BenchSettings } from '../options.ts'
import type { CaseResult } from '../result.ts'
import type { FloorName } from '../target/floor.ts'
import type { Installation } from '../target/installation.ts'

export interface Run {
  readonly installation: Installation
  readonly settings: BenchSettings
  readonly connections: number
  readonly readings: Readings
}

export interface Scenario {
  readonly name: string
  readonly loop: CaseResult['loop']
  readonly askedRate: number | null
  /** Scenarios of one name here share a node (and its store). */
  readonly node: string
  readonly connections: readonly number[]
  /** Runs in the first round only: a load of many minutes. */
  readonly once?: boolean
  /** Floors that its figures are compared with; of the same round, at `floorConnections`. */
  readonly floors: readonly FloorName[]
  readonly floorConnections: (connections: number) => number
  /** Runs once, before the first round. */
  prepare(installation: Installation): Promise<void>
  load(run: Run): Promise<LoadResult>
  /** What is not as it must be after a run; the counts of orders are checked by the rounds. */
  verify(installation: Installation): Promise<readonly string[]>
}

/** Closed loop, or open when the settings give a rate. */
export async function loadInTurn(
  run: Run,
  make: (to: Destination) => readonly PreparedRequest[],
): Promise<LoadResult> {
  const { settings, connections, readings, installation } = run
  const to = await installation.destination()
  const { seconds, warmUpSeconds, rate } = settings
  const options = { to, connections, readings, seconds, warmUpSeconds, next: inTurn(make(to)) }
  return rate === null ? closedLoop(options) : openLoop({ ...options, rate })
}

/** What most scenarios share. */
export function requestScenario(
  settings: BenchSettings,
  rest: Pick<Scenario, 'name' | 'node' | 'load'> & Partial<Scenario>,
): Scenario {
  return {
    loop: settings.rate === null ? 'closed' : 'open',
    askedRate: settings.rate,
    connections: settings.concurrencies,
    floors: ['http', 'lmdb'],
    floorConnections: (connections) => connections,
    prepare: () => Promise.resolve(),
    verify: () => Promise.resolve([]),
    ...rest,
  }
}
