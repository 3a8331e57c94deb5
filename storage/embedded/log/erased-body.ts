// Bodies of groups from which entries are gone, as readers of the log get them: with an entry that
// says nothing in the place of each. The log port's offsets are dense.

import { ERASED_ENTRY, joinEntries, splitEntries } from '../../../protocol/entry/entry.ts'

/** The body of a group of `count` entries. */
export function withErased(body: Buffer, count: number): Buffer {
  if (body.length === 0) return joinEntries(Array.from({ length: count }, () => ERASED_ENTRY))
  let entries: Buffer[] = []
  try {
    entries = splitEntries(body)
  } catch {
    // Bytes that aren't entries are what they are.
    return body
  }
  if (entries.every(({ length }) => length > 0)) return body
  return joinEntries(entries.map((entry) => (entry.length === 0 ? ERASED_ENTRY : entry)))
}
