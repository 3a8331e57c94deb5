// Names of the scenarios, in the order in which they run. By itself so that the arguments can be
// read without loading any.

/** Those that ask a whole shop, which is loaded first. */
export const RETAIL_SCENARIO_NAMES = [
  'graph-filter-state',
  'graph-filter-customer',
  'graph-filter-total',
  'graph-filter-country',
  'graph-filter-product',
  'graph-count-state',
  'graph-count-customer',
  'graph-count-product',
  'graph-count-quantity',
  'graph-count-text',
  'graph-phrase',
  'graphql-page',
  'graphql-page-navigation',
] as const

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
  ...RETAIL_SCENARIO_NAMES,
  'steady',
  'live-fanout',
  'live-fanout-hot',
  'live-standing',
  'live-writers',
] as const

/** Loads of many minutes: they run only when they are named, whole. */
export const LONG_SCENARIO_NAMES = ['soak', 'growth', 'live-soak'] as const
