// Topics of events: paths of what changes, and the names of what can happen there. A path stands
// for all below it: `actors/order` for each order. Source: CONTRACT 1.10.

import type { Behaviour } from '../../../protocol/behaviour.ts'
import type { Acl } from '../../../protocol/ace.ts'
import { RequestError } from '../../../protocol/errors.ts'
import { toUuid } from '../../../protocol/ids.ts'

/** What can happen, by the first segment of a path. */
const EVENTS = {
  actors: ['checkpoint', 'created', 'deleted'],
  registry: ['changed', 'deleted'],
} as const

/** Named by the specification, and of no part that is built. */
const LATER: ReadonlySet<string> = new Set(['jobs', 'sendings'])

/** The permission on a topic's path that shows its events. */
const PERMISSION = { actors: 'query', registry: 'read' } as const

export type TopicRoot = keyof typeof EVENTS

export interface Topic {
  /** Segments with slashes between them. */
  readonly path: string
  readonly root: TopicRoot
  /** Never empty. */
  readonly events: readonly string[]
}

/** Something that happened. */
export interface PlatformEvent {
  /** Of what it happened to: the longest path of a topic that it belongs to. */
  readonly path: string
  readonly root: TopicRoot
  readonly eventType: string
  readonly data: Readonly<Record<string, unknown>>
  /** ISO 8601. */
  readonly timestamp: string
}

/** Throws a RequestError that says what would be right. */
export function readTopic(
  { path: text, events }: { readonly path: string; readonly events: readonly string[] },
  behaviours: ReadonlyMap<string, Behaviour>,
): Topic {
  const path = text.startsWith('/') ? text.slice(1) : text
  const segments = path.split('/')
  const [root = ''] = segments
  if (LATER.has(root)) {
    throw new RequestError('NOT_AVAILABLE', `events of ${root} are not available`)
  }
  if (root !== 'actors' && root !== 'registry') {
    throw invalid(`a path begins with actors or registry, not with "${root}"`)
  }
  if (segments.includes('')) throw invalid(`the path "${path}" has an empty segment`)
  const known: readonly string[] = EVENTS[root]
  const unknown = events.find((event) => !known.includes(event))
  if (unknown !== undefined) {
    throw invalid(`${root} has no event "${unknown}"; it has ${known.join(', ')}`)
  }
  if (root === 'registry') return { path, root, events }
  return { path: actorPath(segments, behaviours), root, events }
}

/** Whether actors of this type are shown to callers at all. */
export function hasEvents(behaviour: Behaviour | undefined): behaviour is Behaviour {
  return behaviour?.home === 'shards' && behaviour.isInternal !== true
}

function actorPath(
  [, type, id, ...more]: readonly string[],
  behaviours: ReadonlyMap<string, Behaviour>,
): string {
  if (type === undefined) return 'actors'
  if (!hasEvents(behaviours.get(type))) {
    const types = [...behaviours.values()].filter(hasEvents)
    throw invalid(
      `there are no actors of type "${type}"; types: ${types.map((b) => b.type).join()}`,
    )
  }
  if (id === undefined) return `actors/${type}`
  const uuid = toUuid(id)
  if (uuid === null || more.length > 0) {
    throw invalid('a path of one actor is actors/<type>/<uuid>: authorization goes by the UUID')
  }
  return `actors/${type}/${uuid}`
}

/** Whether the caller may see something of a topic; each event is judged by itself. */
export function mayWatch(acl: Acl, { path, root }: Topic): boolean {
  const permission = PERMISSION[root]
  return acl.covers(path, permission) || acl.reaches(path, permission)
}

export function maySee(acl: Acl, { path, root }: Pick<PlatformEvent, 'path' | 'root'>): boolean {
  return acl.covers(path, PERMISSION[root])
}

export function neededAce({ path, root }: Topic): string {
  return `${path}:${PERMISSION[root]}`
}

/** The paths of all topics that have something at this path in them. */
export function* pathsAbove(path: string): Generator<string> {
  for (let at = path.indexOf('/'); at >= 0; at = path.indexOf('/', at + 1)) yield path.slice(0, at)
  yield path
}

function invalid(message: string): RequestError {
  return new RequestError('INVALID_PARAMETERS', message)
}
