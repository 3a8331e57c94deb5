// The course of a long load: its figures in windows of some seconds, and what was done in between.
// For scenarios that run for minutes.

import type { DiskKind } from './target/disk-usage.ts'
import type { Ending } from './target/own-node.ts'

/** Figures that could not be read are null; microseconds unless the name says else. */
export interface Window {
  /** From the start of the load to the end of the window. */
  readonly atSeconds: number
  readonly seconds: number
  /** Acknowledged from the start of the load to the end of the window. */
  readonly orders: number
  readonly rate: number
  readonly failed: number
  /** Latencies of a closed loop; of an open one from when the request was due. */
  readonly p50: number | null
  readonly p99: number | null
  /** The same from when the request really left: what the node took for it. */
  readonly ownP50: number | null
  readonly ownP99: number | null
  /** CPU of the server an order. */
  readonly cpu: number | null
  readonly entriesPerCommit: number | null
  /** At the end of the window. */
  readonly rssAnonMiB: number | null
  /** The most that was seen in the window. */
  readonly lagEntries: number | null
  readonly lagSeconds: number | null
  /** Bytes that the data directory has grown by since the load began, an order made since. */
  readonly diskPerOrder: Readonly<Record<DiskKind, number>> | null
}

/** One caller by itself, on a node that does nothing else. */
export interface SingleCaller {
  /** Orders in the store before it, in round numbers. */
  readonly orders: number
  readonly rate: number
  readonly p50: number
  readonly p99: number
}

/** The node was ended and started again on its data. */
export interface Restart {
  readonly ending: Ending
  /** From the start of the load until it was told to end. */
  readonly atSeconds: number
  readonly endedMs: number
  readonly readyMs: number
  /** Requests without success until it was ready again: what was said, counted. */
  readonly failed: Readonly<Record<string, number>>
  /** Of a load that had ended: orders that must be in the graph, that are, and how soon. */
  readonly graph: GraphAfter | null
}

export interface GraphAfter {
  readonly expected: number
  readonly orders: number
  /** From ready until all were there, or were given up. */
  readonly ms: number
}

export interface Course {
  readonly windows: readonly Window[]
  /** Orders a second in each tenth of the orders. */
  readonly tenths?: readonly number[]
  /** Before, in the middle, and after. */
  readonly single?: readonly SingleCaller[]
  readonly restart: Restart | null
}
