// The foundation of a cluster: this process is one member of many, on Cassandra, Redis and
// Elasticsearch. It stands between the composition root and those drivers.

import type { Foundation, FoundationOptions } from './foundation.ts'

export async function clusteredFoundation(_options: FoundationOptions): Promise<Foundation> {
  throw new Error('the drivers of a cluster are not here yet')
}
