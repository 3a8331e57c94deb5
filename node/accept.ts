// What an Accept header wishes for: a page, data, data of one kind. Source: RFC 9110 12.5.1.

/** A longer list of media types is nobody's honest wish. */
const ACCEPT_CHARS_MAX = 1_000

export interface Wish {
  /** Weight from 0 to 1; the first thing to go by. */
  readonly weight: number
  /** How exactly the type was named: 0 not at all, 1 as any type, 2 by its group, 3 itself. */
  readonly exactness: number
}

interface Range {
  readonly type: string
  readonly weight: number
}

/** What the header says of a media type; of too long a header: nothing of any. */
export function wishesOf(accept: string): (type: string) => Wish {
  const isHonest = accept.length <= ACCEPT_CHARS_MAX
  const ranges = isHonest ? accept.toLowerCase().split(',').map(rangeOf) : []
  return (type) => wishFor(type, ranges)
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

/** True when an Accept header asks for HTML rather than JSON; who has no preference gets JSON. */
export function prefersHtml(accept: string): boolean {
  const wish = wishesOf(accept)
  const html = wish('text/html')
  const json = wish('application/json')
  if (html.weight === 0) return false
  if (html.weight !== json.weight) return html.weight > json.weight
  return html.exactness > json.exactness
}
