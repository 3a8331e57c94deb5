// Whether a request asks for a page or for data. Source: RFC 9110 12.5.1.

/** A longer list of media types is nobody's honest wish. */
const ACCEPT_CHARS_MAX = 1_000

interface Wish {
  /** Weight from 0 to 1; the first thing to go by. */
  readonly weight: number
  /** How exactly the type was named: 0 not at all, 1 as any type, 2 by its group, 3 itself. */
  readonly exactness: number
}

/** True when an Accept header asks for HTML rather than JSON; who has no preference gets JSON. */
export function prefersHtml(accept: string): boolean {
  if (accept.length > ACCEPT_CHARS_MAX) return false
  const ranges = accept.toLowerCase().split(',').map(rangeOf)
  const html = wishFor('text/html', ranges)
  const json = wishFor('application/json', ranges)
  if (html.weight === 0) return false
  if (html.weight !== json.weight) return html.weight > json.weight
  return html.exactness > json.exactness
}

interface Range {
  readonly type: string
  readonly weight: number
}

function rangeOf(text: string): Range {
  const [type = '', ...parameters] = text.split(';').map((part) => part.trim())
  const q = parameters.find((parameter) => parameter.startsWith('q='))
  const weight = q === undefined ? 1 : Number(q.slice(2))
  return { type, weight: weight >= 0 && weight <= 1 ? weight : 0 }
}

/** What the most exact range says of a type. */
function wishFor(type: string, ranges: readonly Range[]): Wish {
  const names = ['', '*/*', `${type.split('/')[0]}/*`, type]
  for (let exactness = 3; exactness > 0; exactness--) {
    const range = ranges.find((one) => one.type === names[exactness])
    if (range !== undefined) return { weight: range.weight, exactness }
  }
  return { weight: 0, exactness: 0 }
}
