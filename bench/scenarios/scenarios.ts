// The table of scenarios: names to what they do.

import type { BenchSettings } from '../options.ts'
import { growth } from './growth.ts'
import { liveScenarios } from './live.ts'
import { LONG_SCENARIO_NAMES, SCENARIO_NAMES } from './names.ts'
import { graphScenarios } from './reads.ts'
import { retailScenarios } from './retail.ts'
import type { Scenario } from './scenario.ts'
import { soak } from './soak.ts'
import { bulk, mixed, orderCommands, orderCreate, steady } from './writes.ts'

/** The scenarios of the settings, in the order of their names. */
export function chosenScenarios(settings: BenchSettings): readonly Scenario[] {
  const all = [
    orderCreate(settings),
    orderCommands(settings, 'hot'),
    orderCommands(settings, 'spread'),
    bulk(settings),
    mixed(settings),
    ...graphScenarios(settings),
    ...retailScenarios(settings),
    steady(settings),
    ...liveScenarios(settings),
    soak(settings),
    growth(settings),
  ]
  return [...SCENARIO_NAMES, ...LONG_SCENARIO_NAMES]
    .filter((name) => settings.scenarios.includes(name))
    .map((name) => all.find((scenario) => scenario.name === name)!)
}
