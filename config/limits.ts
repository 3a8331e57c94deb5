// Every bound of the system, by the room whose code it protects, with its unit in its name:
// `LIMITS.sharding.marksMax`. A queue, wait or buffer that is not here is a mistake. A group has
// the name of a folder; a bound of several rooms stands with the lowest (test/limits.test.ts).
// Source: PROTOCOL 3.1, 3.6, 3.10, 3.12; CONTRACT 0.

import { PROTOCOL_LIMITS } from './limits/protocol.ts'
import { GRAPH_LIMITS } from './limits/graph.ts'
import { COMMERCE_LIMITS } from './limits/commerce.ts'
import { STORAGE_LIMITS } from './limits/storage.ts'
import { CLUSTER_LIMITS } from './limits/cluster.ts'
import { SHARDING_LIMITS } from './limits/sharding.ts'
import { HTTP_LIMITS } from './limits/http.ts'
import { ACCESS_LIMITS } from './limits/access.ts'
import { LIVE_LIMITS } from './limits/live.ts'
import { NODE_LIMITS } from './limits/node.ts'

export const LIMITS = {
  protocol: PROTOCOL_LIMITS,
  graph: GRAPH_LIMITS,
  ...COMMERCE_LIMITS,
  ...STORAGE_LIMITS,
  ...CLUSTER_LIMITS,
  sharding: SHARDING_LIMITS,
  http: HTTP_LIMITS,
  access: ACCESS_LIMITS,
  ...NODE_LIMITS,
  ...LIVE_LIMITS,
} as const

type Groups = typeof LIMITS

/** Where a bound stands: `sharding.marksMax`. */
export type LimitPath = {
  [Group in keyof Groups]: `${Group}.${keyof Groups[Group] & string}`
}[keyof Groups]

type Bound<Path extends LimitPath> =
  Path extends `${infer Group extends keyof Groups}.${infer Name}`
    ? Name extends keyof Groups[Group]
      ? Groups[Group][Name] extends number
        ? number
        : readonly number[]
      : never
    : never

/** Other bounds than the product's, for tests (config/testing/override-limits.ts). */
export type LimitOverrides = { readonly [Path in LimitPath]?: Bound<Path> }
