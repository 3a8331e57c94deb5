// Which of the index files in a data directory is read at a start, which goes on being filled
// beside it, and which is left over from a crash. Source: PROTOCOL 3.13.5.

import { INDEX_CONSUMER } from '../../../cluster/feed/parked-actors.ts'
import { graphSchema } from '../../../protocol/graph/schema.ts'
import { discardIndex, findIndexes, type FoundIndex } from '../../../storage/sqlite/file.ts'
import { layoutOf } from '../../../storage/sqlite/layout.ts'
import type { SchemaVersion } from '../../graph/live-schema.ts'

/** One of them, and by which version of the schema it is laid out. */
export interface IndexFile {
  readonly number: number
  readonly version: SchemaVersion
  readonly isFilling: boolean
}

export interface IndexFiles {
  /** The one that is read. */
  readonly live: IndexFile
  /** It was there before; what it has may be whole. */
  readonly isKept: boolean
  /** Filled beside it. */
  readonly next: IndexFile | null
}

/** The version that is found in an index: of a schema that another start had. */
const FOUND_VERSION = 0

/** Consumer under which the actors are kept that an index of this number could not take. */
export function parkedConsumerOf(number: number): string {
  return number === 0 ? INDEX_CONSUMER : `${INDEX_CONSUMER}-file-${number}`
}

export function fingerprintOf({ schema }: SchemaVersion): string {
  return layoutOf(schema).fingerprint
}

/** Chooses among what is there, and deletes what is neither. `wanted`: the schema of today. */
export function chooseFiles(dir: string, wanted: SchemaVersion): IndexFiles {
  const found = findIndexes(dir)
  const fingerprint = fingerprintOf(wanted)
  const read = found.flatMap((index) => {
    const version = versionOf(index, { wanted, fingerprint })
    return version === null ? [] : [{ number: index.number, version, isFilling: index.isFilling }]
  })
  // Of two that are whole the later one has taken the other's place.
  const whole = read.findLast(({ isFilling }) => !isFilling)
  const least = whole?.number ?? Number.POSITIVE_INFINITY
  const next = read.findLast(({ number, version }) => number > least && version === wanted) ?? null
  for (const { number } of found) {
    if (number !== whole?.number && number !== next?.number) discardIndex({ dir, number })
  }
  const isKept = whole !== undefined
  const live = whole ?? { number: found.at(-1)?.number ?? 0, version: wanted, isFilling: false }
  return { live, isKept, next }
}

/** Null: it can't be read or gone on with by this program. */
function versionOf(
  { fingerprint, types, isAway }: FoundIndex,
  today: { readonly wanted: SchemaVersion; readonly fingerprint: string },
): SchemaVersion | null {
  // Its thread tries until it can be opened.
  if (isAway) return today.wanted
  if (fingerprint === null) return null
  if (fingerprint === today.fingerprint) return today.wanted
  if (types === null) return null
  try {
    const version = { number: FOUND_VERSION, types, schema: graphSchema(types) }
    return fingerprintOf(version) === fingerprint ? version : null
  } catch {
    // Another program's types.
    return null
  }
}
