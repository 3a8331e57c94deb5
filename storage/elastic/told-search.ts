// Searches as they are told to who explains a query: in the engine's own language, so that they can
// be tried there, but without a value: those of parents, links and permissions are nobody's to see.
// Source: CONTRACT 1.4 "Explain".

import type { Trace } from '../../protocol/graph/explain/trace.ts'
import type { SearchAnswer, SearchRequest } from './engine.ts'

/** Members whose text is no value: names of fields, and words of the engine. */
const WORDS: ReadonlySet<string> = new Set(['field', 'format', 'order', 'missing'])

interface Searches {
  readonly requests: readonly SearchRequest[]
  readonly answers: readonly SearchAnswer[]
  readonly startedMs: number
}

export function tellSearches(trace: Trace, { requests, answers, startedMs }: Searches): void {
  // What was sent together came back together: each has its part of the time.
  const partMs = (trace.now() - startedMs) / requests.length
  for (const [i, request] of requests.entries()) {
    trace.query(toldSearch(request), answers[i]!.hits.length, trace.now() - partMs)
  }
}

/** A search as JSON, a question mark for each value. */
export function toldSearch({
  index,
  query,
  size,
  sort,
  searchAfter,
  counts,
}: SearchRequest): string {
  return JSON.stringify({
    index,
    query: withoutValues(query),
    size,
    sort,
    ...(searchAfter && { search_after: '?' }),
    ...(counts && { track_total_hits: true }),
  })
}

function withoutValues(part: unknown, name = ''): unknown {
  if (Array.isArray(part)) {
    const isOfValues = part.every((one) => typeof one !== 'object')
    return isOfValues ? ['?'] : part.map((one) => withoutValues(one))
  }
  if (typeof part === 'object' && part !== null) {
    return Object.fromEntries(
      Object.entries(part).map(([member, value]) => [member, withoutValues(value, member)]),
    )
  }
  return WORDS.has(name) ? part : '?'
}
