// Other bounds than the product's, for the whole process. It stands between a test, which wants to
// reach a bound soon, and config/limits.ts.

import { LIMITS, type LimitOverrides } from '../limits.ts'

/**
 * Sets bounds by their places: `{ 'sharding.marksMax': 4 }`. Returns what puts back those from
 * before, for a teardown. Throws on a place that isn't in LIMITS, and has set none then.
 */
export function overrideLimits(overrides: LimitOverrides): () => void {
  const groups: Readonly<Record<string, Record<string, unknown>>> = LIMITS
  const places = Object.entries(overrides).map(([path, value]) => {
    const [group = '', name = ''] = path.split('.')
    const bounds = Object.hasOwn(groups, group) ? groups[group]! : {}
    if (!Object.hasOwn(bounds, name)) throw new Error(`LIMITS has no ${path}`)
    return { bounds, name, value, before: bounds[name] }
  })
  for (const { bounds, name, value } of places) bounds[name] = value
  return () => {
    for (const { bounds, name, before } of places) bounds[name] = before
  }
}
