// Names near a misspelt one, for messages that say what would be right. It stands between whatever
// refuses a name (settings, order commands, the graph planner) and the person who reads why.

/** At most three of `known`, nearest first: by edits, or because one holds the other. */
export function nearNames(wrong: string, known: Iterable<string>): string[] {
  const asked = wrong.slice(0, 100).toLowerCase()
  const bound = Math.max(2, Math.ceil(asked.length / 3))
  const found: { name: string; distance: number; edits: number }[] = []
  for (const name of known) {
    const candidate = name.toLowerCase()
    const apart = edits(asked, candidate)
    const distance = Math.min(apart, within(asked, candidate))
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

/** Edits (insert, delete, replace, swap of neighbours) that turn one text into the other. */
function edits(a: string, b: string): number {
  let before: number[] = []
  let row = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1]
      let best = Math.min(next[j - 1]! + 1, row[j]! + 1, row[j - 1]! + (same ? 0 : 1))
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        best = Math.min(best, before[j - 2]! + 1)
      }
      next.push(best)
    }
    before = row
    row = next
  }
  return row[b.length]!
}
