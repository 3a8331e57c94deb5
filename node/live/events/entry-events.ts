// What a committed entry is as events: an actor that was made, its new checkpoint, its end. Source:
// CONTRACT 1.10.

import type { FeedEntry } from '../../../cluster/feed/log-follower.ts'
import type { Matcher } from '../../../cluster/feed/watch/feed-watch.ts'
import type { Behaviour } from '../../../protocol/behaviour.ts'
import { checkpointId } from '../../../protocol/checkpoint.ts'
import { recordsOf } from '../../../protocol/entry/entry.ts'
import { hasEvents, pathsAbove } from './topic.ts'
import type { PlatformEvent } from './topic.ts'

/** Events of one entry, in their order; none: it changed nothing, or is of no type known here. */
export function eventsOf(
  { entry }: FeedEntry,
  behaviours: ReadonlyMap<string, Behaviour>,
): readonly PlatformEvent[] {
  const behaviour = behaviours.get(entry.y)
  if (!hasEvents(behaviour) || entry.r.length === 0) return []
  const records = recordsOf(entry, behaviour)
  const path = `actors/${entry.y}/${entry.p}`
  const timestamp = new Date(entry.t).toISOString()
  const actor = { type: entry.y, id: entry.p }
  const where = { path: `/resources/${path}`, actorType: entry.y, actorId: entry.p }
  const event = (eventType: string, data: object): PlatformEvent => ({
    path,
    root: 'actors',
    eventType,
    data: { ...where, timestamp, ...data, actor },
    timestamp,
  })
  const messages = [entry.a.type]
  // A type that works by commands names them in the first record of its message.
  const commands = records[0]!['commands'] ?? []
  const checkpoint = { checkpointId: checkpointId(entry.p, entry.m, entry.t), messages, commands }
  return [
    ...(entry.v === 0 ? [event('created', {})] : []),
    event('checkpoint', checkpoint),
    ...(records.some((record) => behaviour.isDeletion?.(record)) ? [event('deleted', {})] : []),
  ]
}

/** What another member, or this one, wants of actors: paths of topics. */
export interface EventInterest {
  readonly paths: readonly string[]
}

/** null: not as it should be. */
export function matcherOf(
  interest: unknown,
  behaviours: ReadonlyMap<string, Behaviour>,
): Matcher | null {
  const { paths } = (interest ?? {}) as { readonly paths?: unknown }
  if (!Array.isArray(paths)) return null
  const wanted = new Set<unknown>(paths)
  return (taken) => {
    if (taken.entry.r.length === 0) return []
    for (const path of pathsAbove(`actors/${taken.entry.y}/${taken.entry.p}`)) {
      if (wanted.has(path)) return eventsOf(taken, behaviours)
    }
    return []
  }
}
