// What a command really changes: wanted members against those that are there. Commands name members
// to set; records hold before and after of changed ones.

export interface Difference<P> {
  readonly before: P
  readonly after: P
}

/** Changed members; `undefined` in `wanted` means "leave it". Null: nothing changes. */
export function difference<P extends object>(
  current: P,
  wanted: { readonly [K in keyof P]?: P[K] | undefined },
): Difference<Partial<P>> | null {
  let before: Partial<P> | null = null
  let after: Partial<P> | null = null
  for (const key of Object.keys(wanted) as (keyof P)[]) {
    const value = wanted[key]
    if (value === undefined || sameJson(current[key], value)) continue
    before ??= {}
    after ??= {}
    before[key] = current[key]
    after[key] = value
  }
  return before === null ? null : { before, after: after! }
}

/**
 * The same for open maps (dynamic, addresses): a member that is not there counts as null, and null
 * takes one away.
 */
export function mapDifference<V>(
  current: Readonly<Record<string, V>>,
  wanted: Readonly<Record<string, V | null | undefined>>,
  keys: readonly string[],
): Difference<Record<string, V | null>> | null {
  let before: Record<string, V | null> | null = null
  let after: Record<string, V | null> | null = null
  for (const key of keys) {
    const value = wanted[key]
    const now = Object.hasOwn(current, key) ? current[key]! : null
    if (value === undefined || sameJson(now, value)) continue
    before ??= {}
    after ??= {}
    before[key] = now
    after[key] = value
  }
  return before === null ? null : { before, after: after! }
}

/** Equality of JSON values; the order of members does not count. */
export function sameJson(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (Array.isArray(a) !== Array.isArray(b)) return false
  const keys = Object.keys(a)
  if (keys.length !== Object.keys(b).length) return false
  for (const key of keys) {
    if (!Object.hasOwn(b, key)) return false
    if (!sameJson((a as Record<string, unknown>)[key], (b as Record<string, unknown>)[key])) {
      return false
    }
  }
  return true
}
