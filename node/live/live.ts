// The station of what is pushed: `/ws` and subscriptions of GraphQL, and what is watched over them,
// on the feed of all members.
// Source: CONTRACT 1.10, PROTOCOL 3.18.

import type { World } from '../../cluster/clock.ts'
import { decodeSnapshot } from '../../cluster/sharding/turn/activation.ts'
import { FeedWatch } from '../../cluster/feed/watch/feed-watch.ts'
import type { Log } from '../../protocol/log.ts'
import type { Foundation } from '../foundation.ts'
import type { FilterFields } from '../graph/access.ts'
import type { GraphQl } from '../graph/graphql/loader.ts'
import type { Authenticate } from '../http/core.ts'
import type { SocketPath } from '../http/socket/sockets.ts'
import type { Metrics } from '../metrics.ts'
import { eventFrames } from './events/event-frames.ts'
import { EventStream } from './events/event-stream.ts'
import { GraphQlStation } from './graphql/graphql-station.ts'
import { LiveQueries } from './queries/live-queries.ts'
import { livePositions } from './queries/live-positions.ts'
import { NodeChanges } from './queries/node-changes.ts'
import { queryFrames } from './queries/query-frames.ts'
import { SocketStation } from './socket/socket-station.ts'

export interface LiveOptions {
  readonly foundation: Pick<
    Foundation,
    'member' | 'followers' | 'journal' | 'runner' | 'watch' | 'served' | 'applied'
  >
  readonly filterFields: FilterFields
  readonly authenticate: Authenticate
  readonly graphql: GraphQl
  readonly world: World
  readonly log: Log
  readonly metrics: Metrics
}

export interface Live {
  readonly sockets: readonly SocketPath[]
  stop(): Promise<void>
}

export function startLive(options: LiveOptions): Live {
  const { foundation, authenticate, world, log, metrics } = options
  const { member, followers } = foundation
  const { system, behaviours } = member
  const { clock } = world
  const watch = new FeedWatch({ wire: wireOf(member), followers, clock, log })
  member.onWatch = (notice, from) => watch.hear(notice, from)
  const events = new EventStream({ watch, system, behaviours, clock })
  const queries = makeQueries(options, watch)
  const positions = livePositions(foundation.journal.identity, world.random)
  const { served } = foundation
  const { filterFields } = options
  const sockets = new SocketStation({
    system,
    authenticate,
    isKnown: () => member.knowsConfiguration,
    clock,
    log,
    metrics,
    chance: chanceOf(world),
    frames: [
      ...eventFrames({ stream: events, behaviours, metrics }),
      ...queryFrames({ queries, positions, served, filterFields }),
    ],
  })
  const { graphql } = options
  const lists = { queries, positions, served, filterFields }
  const subscriptions = new GraphQlStation({ graphql, lists, sockets, clock, log })
  collect(metrics, watch, events)
  collectQueries(metrics, queries)
  return {
    sockets: [sockets, subscriptions],
    async stop() {
      sockets.stop()
      events.stop()
      queries.stop()
      await watch.stop()
    },
  }
}

function makeQueries({ foundation, world }: LiveOptions, watch: FeedWatch): LiveQueries {
  const { member, journal, runner, applied, served } = foundation
  const { behaviours } = member
  const { clock } = world
  const { derived, identity } = journal
  return new LiveQueries({
    watch,
    changes: new NodeChanges({ behaviours, derived, decodeSnapshot, clock }),
    runner,
    index: foundation.watch,
    ...{ applied, served },
    heads: () => member.heads(),
    shards: identity.shards,
    clock,
  })
}

function wireOf(member: Foundation['member']): ConstructorParameters<typeof FeedWatch>[0]['wire'] {
  return {
    others: () => member.ownership.others(),
    tell: (to, notice) => member.tell(to, notice),
  }
}

function chanceOf({ random }: World): () => number {
  const word = Buffer.alloc(4)
  return () => {
    random(word)
    return word.readUInt32LE() / 2 ** 32
  }
}

function collect(metrics: Metrics, watch: FeedWatch, events: EventStream): void {
  metrics.collect(function* () {
    const counter = (name: string, help: string, value: number) =>
      ({ name, help, type: 'counter', value }) as const
    const { items, dropped, gaps } = watch.counts
    yield counter('kontor_watch_items_total', 'What owners of shards had for who watches.', items)
    yield counter('kontor_watch_dropped_total', 'Of that what had no room on its way.', dropped)
    const lost = gaps + events.counts.gaps
    yield counter('kontor_watch_gaps_total', 'Times that something on its way was lost.', lost)
    const paths = 'Paths of events that are watched.'
    yield { name: 'kontor_event_paths', help: paths, type: 'gauge', value: events.size }
  })
}

function collectQueries(metrics: Metrics, queries: LiveQueries): void {
  metrics.collect(function* () {
    const counter = (name: string, help: string, value: number) =>
      ({ name, help, type: 'counter', value }) as const
    const { reads, changes, asked } = queries.counts
    const help = 'Live queries that stand.'
    yield { name: 'kontor_live_queries', help, type: 'gauge', value: queries.size }
    const lists = 'Lists that they stand on: those that ask and show the same share one.'
    yield { name: 'kontor_live_lists', help: lists, type: 'gauge', value: queries.lists }
    const chars = 'Characters that they and their lists hold.'
    yield { name: 'kontor_live_held_chars', help: chars, type: 'gauge', value: queries.heldChars }
    yield counter('kontor_live_reads_total', 'Times one was read from the index.', reads)
    yield counter('kontor_live_changes_total', 'Changed actors that they were told of.', changes)
    yield counter('kontor_live_asked_total', 'Times a query was asked of a change.', asked)
  })
}
