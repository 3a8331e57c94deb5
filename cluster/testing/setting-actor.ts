// A configuration actor for tests of those that follow the configuration.

import type { ActorRecord, Behaviour } from '../../protocol/behaviour.ts'
import type { SystemMaps } from '../system-view.ts'

// --- on a log that is trimmed ---------------------------------------------------------------

/** A setting, as configuration actors are: `put` and `deleted`. */
const setting = {
  type: 'setting',
  evolve: (state: object | null, record: ActorRecord) =>
    record.t === 'put' ? { value: record['value'], deleted: false } : { ...state, deleted: true },
  toSnapshot: (state: unknown) => state,
  fromSnapshot: (state: unknown) => state,
} as unknown as Behaviour

export const BEHAVIOURS = new Map([['setting', setting]])

export function all(maps: SystemMaps): unknown[] {
  return [...maps.withPrefix('setting', '')].map(({ key, value, version }) => [key, value, version])
}
