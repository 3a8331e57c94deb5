// What tests of journals are made of: journals to test, groups, ids that are never the same. It
// stands under the conformance suite and the drivers' own tests.

import type { Test } from 'tap'
import type { ClaimedShard, Group, Journal, LogStore } from '../journal.ts'

export interface JournalUnderTest {
  readonly journal: Journal
  /** Closes and opens again, as after a restart; null when the driver keeps nothing. */
  readonly reopen: (() => Promise<Journal>) | null
}

/** Makes an empty journal of `shards` shards; ends it with `t.teardown`. */
export type MakeJournal = (t: Test, shards: number) => Promise<JournalUnderTest>

export interface LogUnderTest {
  readonly log: LogStore
  /** Takes a shard, in the epoch that comes next. */
  claim(shard: number): Promise<ClaimedShard>
  /** Trimming leaves the last row where it is, and takes every other. */
  readonly keepsLast: boolean
}

/** Makes an empty log of `shards` shards; ends it with `t.teardown`. */
export type MakeLog = (t: Test, shards: number) => Promise<LogUnderTest>

let made = 0
/** A UUID that no other call gives. */
export function freshUuid(): string {
  made++
  return `00000000-0000-7000-9000-${made.toString(16).padStart(12, '0')}`
}

export function group(place: Partial<Group> & { shard: number; epoch: number }): Group {
  const body = Buffer.from(`group ${made}`)
  return { head: 0, count: 1, commitId: freshUuid(), body, ...place }
}
