// Names near a misspelt one, for messages that say what would be right. For whatever refuses a
// name: settings, order commands, the graph planner.

/** At most three of `known`, nearest first: by edits, or because one holds the other. */
export function nearNames(wrong: string, known: Iterable<string>): string[] {
  const asked = wrong.slice(0, 100).toLowerCase()
  const bound = Math.max(2, Math.ceil(asked.length / 3))
  const found: { name: string; distance: number; edits: number }[] = []
  for (const name of known) {
    const candidate = name.toLowerCase()
    const held = within(asked, candidate)
    const limit = held === Number.POSITIVE_INFINITY ? bound : Number.POSITIVE_INFINITY
    const apart = edits(asked, candidate, limit)
    const distance = Math.min(apart, held)
    if (distance <= bound) found.push({ name, distance, edits: apart })
  }
  // `order` begins orders and orderJournalEntries alike: the shorter way is meant.
  found.sort((a, b) => a.distance - b.distance || a.edits - b.edits || (a.name < b.name ? -1 : 1))
  return found.slice(0, 3).map((f) => f.name)
}

/** A name that begins with the other is nearer than one that holds it somewhere. */
function within(a: string, b: string): number {
  if (a.length < 3 || b.length < 3) return Number.POSITIVE_INFINITY
  if (a.startsWith(b) || b.startsWith(a)) return 1
  return a.includes(b) || b.includes(a) ? 2 : Number.POSITIVE_INFINITY
}

/** `; did you mean a or b?` or, when nothing is near, `; there are a, b, c, ...`. */
export function suggestion(wrong: string, known: readonly string[]): string {
  const near = nearNames(wrong, known)
  if (near.length > 0) return `; did you mean ${near.join(' or ')}?`
  if (known.length === 0) return ''
  const shown = known.slice(0, 12).join(', ')
  return `; there ${known.length === 1 ? 'is' : 'are'} ${shown}${known.length > 12 ? ', ...' : ''}`
}

/** Rows of the table of edits; a longer name gets longer ones. */
let rows = [new Uint16Array(128), new Uint16Array(128), new Uint16Array(128)]

/**
 * Edits (insert, delete, replace, swap of neighbours) that turn one text into the other; infinite
 * as soon as there are more than `limit`, which is nearly always after a few rows.
 */
function edits(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) > limit) return Number.POSITIVE_INFINITY
  if (b.length >= rows[0]!.length) rows = rows.map(() => new Uint16Array(2 * b.length))
  let [before, row, next] = rows as [Uint16Array, Uint16Array, Uint16Array]
  for (let j = 0; j <= b.length; j++) row[j] = j
  let leastBefore = 0
  for (let i = 1; i <= a.length; i++) {
    const c = a.charCodeAt(i - 1)
    let least = (next[0] = i)
    for (let j = 1; j <= b.length; j++) {
      const d = b.charCodeAt(j - 1)
      let best = Math.min(next[j - 1]! + 1, row[j]! + 1, row[j - 1]! + (c === d ? 0 : 1))
      if (i > 1 && j > 1 && c === b.charCodeAt(j - 2) && a.charCodeAt(i - 2) === d) {
        best = Math.min(best, before[j - 2]! + 1)
      }
      next[j] = best
      if (best < least) least = best
    }
    // A swap reaches back over two rows.
    if (least > limit && leastBefore > limit) return Number.POSITIVE_INFINITY
    leastBefore = least
    ;[before, row, next] = [row, next, before]
  }
  return row[b.length]!
}
