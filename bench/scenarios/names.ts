// Names of the scenarios, in the order in which they run. By itself so that the arguments can be
// read without loading any.

export const SCENARIO_NAMES = [
  'order-create',
  'order-commands-hot',
  'order-commands-spread',
  'bulk',
  'mixed',
  'graph-get',
  'graph-page-state',
  'graph-page-customer',
  'graph-page-dates',
  'steady',
  'live-fanout',
  'live-fanout-hot',
  'live-standing',
  'live-writers',
] as const

/** Loads of many minutes: they run only when they are named, whole. */
export const LONG_SCENARIO_NAMES = ['soak', 'growth'] as const
