// The embedded foundation: one member on LMDB, its graph on SQLite in worker threads, a wire that
// is a call. Source: PROTOCOL 3.16, ARCHITECTURE 2.

import { availableParallelism } from 'node:os'
import { getHeapStatistics } from 'node:v8'
import { LIMITS } from '../config/limits.ts'
import { LogFollowers } from '../cluster/feed/log-followers.ts'
import { Member } from '../cluster/member.ts'
import { memoryWire } from '../cluster/memory/wire.ts'
import { lockDirectory } from '../storage/embedded/directory-lock.ts'
import { openEmbeddedJournal, type EmbeddedJournal } from '../storage/embedded/journal/journal.ts'
import { NO_RULES, stuckShardCheck } from './foundation.ts'
import type { Foundation, FoundationOptions } from './foundation.ts'
import { collectGraphMetrics } from './indexing/embedded/index-metrics.ts'
import { EmbeddedIndex } from './indexing/embedded/embedded-index.ts'
import { ReaderPool } from './graph/plans/reader-pool.ts'
import { ReaderThread } from './graph/plans/reader-thread.ts'
import type { Check } from './health/routes.ts'
import { StuckShardWatch } from './health/stuck-shards.ts'

/** What follows the member's commits; set once the member serves. */
interface Following {
  readonly followers: LogFollowers
  index: EmbeddedIndex | null
}

export async function embeddedFoundation(options: FoundationOptions): Promise<Foundation> {
  const { settings, log, world } = options
  // The process ends when the start fails, and the lock with it.
  const lock = await lockDirectory(settings.dataDir, { what: `a node at ${settings.http.baseUrl}` })
  const journal = await openEmbeddedJournal({
    dir: settings.dataDir,
    shards: settings.shards,
    acceptLoss: settings.acceptLoss,
    secretsKeys: options.secretsKeys,
    log,
    random: world.random,
    clock: () => world.clock.nowMs(),
    onFatal: options.onFatal,
  })
  const followers = new LogFollowers({ ...journal, clock: world.clock })
  const following: Following = { followers, index: null }
  const member = makeMember(options, journal, following)
  await member.start()
  options.learn(member.system)
  const index = startIndex(options, journal, member)
  following.index = index
  const watch = new StuckShardWatch(world.clock)
  const reader = new ReaderPool({
    clock: world.clock,
    threads: settings.graphReaders ?? readersBy(availableParallelism()),
    startThread: (stats, onChange) =>
      new ReaderThread(
        { journal: journal.access, clock: world.clock, log, read: () => index.read },
        stats,
        onChange,
      ),
  })
  index.onMoved(() => reader.follow())
  return {
    journal,
    member,
    followers,
    watch: index.watch,
    runner: reader,
    served: () => index.read.version,
    index,
    applied: (shard) => index.progress.applied(shard),
    parkedBy: () => index.parkedBy,
    checks: () => [
      ...checks(member, index),
      stuckShardCheck(watch, member, {
        applied: (shard) => index.progress.applied(shard),
        outages: 0,
      }),
    ],
    collect: (metrics) => collectGraphMetrics(metrics, { index, reader }),
    async stop(leftMs) {
      await member.stop(leftMs() * 0.5)
      // Readers first: the index that they read last is closed behind them.
      await reader.close()
      await Promise.all([index.close(), followers.close()])
      await journal.close()
      lock.release()
    },
  }
}

/** One a core; at least two, for heavy plans have all but one. */
function readersBy(cores: number): number {
  return Math.min(Math.max(2, cores), LIMITS.graph.readersDefaultMax)
}

function makeMember(
  { settings, log, version, world, behaviours, query, onFatal }: FoundationOptions,
  journal: EmbeddedJournal,
  following: Following,
): Member {
  return new Member({
    memberId: settings.memberId,
    address: settings.http.baseUrl,
    version,
    journal,
    cluster: null,
    behaviours,
    world,
    heapBytes: getHeapStatistics().heap_size_limit,
    wire: memoryWire((run) => world.clock.defer(run)),
    wireDeliversOnce: true,
    log,
    hooks: NO_RULES,
    query,
    throttleMs: () => following.index?.throttleMs() ?? 0,
    onCommitted: (shard, entries, first, body) => {
      following.index?.committed(shard, first + entries.length - 1)
      following.followers.committed(shard, { first, entries, body })
    },
    onGained: (shard, { head }) => following.followers.gained(shard, head),
    onReleased: (shard) => following.followers.lost(shard),
    onRetryParked: () => following.index?.retryParked(),
    doneWith: (shard) =>
      Math.min(following.index?.doneWith(shard) ?? 0, following.followers.doneWith(shard)),
    onLost: (shard, why) => onFatal(new Error(`shard ${shard} was lost: ${why}`)),
  })
}

function startIndex(
  { world, log, schema }: FoundationOptions,
  journal: EmbeddedJournal,
  member: Member,
): EmbeddedIndex {
  return new EmbeddedIndex({
    journal: journal.access,
    shards: journal.identity.shards,
    generation: journal.identity.generation,
    clock: world.clock,
    log,
    schema,
    heads: member.heads(),
    flushed: (shard) => member.shards.get(shard)!.flusher.flushed,
    async writeRows(shard, rows) {
      const { epoch } = member.shards.get(shard)!
      const outcome = await journal.derived.write(shard, epoch, rows)
      if (outcome !== 'committed') throw new Error(`rows were not written: ${outcome}`)
    },
  })
}

function checks(member: Member, index: EmbeddedIndex): readonly Check[] {
  const away = [...member.shards.values()].filter(({ state }) => state !== 'serving')
  const unready = index.watch.unready()
  return [
    away.length === 0
      ? { name: 'shards', ok: true }
      : { name: 'shards', ok: false, reason: `${away.length} shards are not served` },
    unready === null ? { name: 'graph', ok: true } : { name: 'graph', ok: false, reason: unready },
  ]
}
