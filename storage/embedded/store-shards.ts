// The shards of a store.

import { SYSTEM_SHARD } from '../../protocol/ids.ts'
import type { StoreIdentity } from '../journal.ts'

/** Shards of a store, the `system` shard first. */
export function* shardsOf({ shards }: StoreIdentity): Generator<number> {
  for (let shard = SYSTEM_SHARD; shard < shards; shard++) yield shard
}
