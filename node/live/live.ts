// The station of what is pushed: `/ws`, and what is watched over it, on the feed of all members.
// Source: CONTRACT 1.10, PROTOCOL 3.18.

import type { World } from '../../cluster/clock.ts'
import { FeedWatch } from '../../cluster/feed/watch/feed-watch.ts'
import type { Log } from '../../protocol/log.ts'
import type { Foundation } from '../foundation.ts'
import type { Authenticate } from '../http/core.ts'
import type { SocketPath } from '../http/socket/sockets.ts'
import type { Metrics } from '../metrics.ts'
import { eventFrames } from './events/event-frames.ts'
import { EventStream } from './events/event-stream.ts'
import { SocketStation } from './socket/socket-station.ts'

export interface LiveOptions {
  readonly foundation: Pick<Foundation, 'member' | 'followers'>
  readonly authenticate: Authenticate
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
  const sockets = new SocketStation({
    system,
    authenticate,
    isKnown: () => member.knowsConfiguration,
    clock,
    log,
    metrics,
    chance: chanceOf(world),
    frames: eventFrames({ stream: events, behaviours, metrics }),
  })
  collect(metrics, watch, events)
  return {
    sockets: [sockets],
    async stop() {
      sockets.stop()
      events.stop()
      await watch.stop()
    },
  }
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
    yield counter('kontor_watch_gaps_total', 'Times that something on its way was lost.', gaps)
    const paths = 'Paths of events that are watched.'
    yield { name: 'kontor_event_paths', help: paths, type: 'gauge', value: events.size }
  })
}
