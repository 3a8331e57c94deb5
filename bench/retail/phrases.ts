// What people type into a search box of a shop's order lines: product numbers, one to three words
// of a description, beginnings of words, and what nothing has.

import { PAGE, spread, type Question } from './questions.ts'
import type { Shop, ShopLine } from './shop.ts'

/** Shorter words are ignored, and those with signs in them are cut. */
const WORD = /^[A-Z]{3,}$/
const PREFIX_CHARS = 4
const NOWHERE = 'ZYXWVUT'

/** Of ten phrases. */
const MIX = [
  ...(['product', 'product', 'one', 'one', 'two', 'two', 'three'] as const),
  ...(['prefix', 'prefix', 'miss'] as const),
]

export function phraseQuestions({ lines }: Pick<Shop, 'lines'>): readonly Question[] {
  return spread(lines, ({ productNumber, description }, n) => {
    const words = (description ?? '').split(/\s+/).filter((word) => WORD.test(word))
    const kind = MIX[n % MIX.length]!
    if (kind === 'product' || words.length === 0) return phrase(productNumber, [productNumber])
    if (kind === 'miss') return phrase(`${words[0]} ${NOWHERE}`, null)
    if (kind === 'prefix') {
      const beginning = words.at(-1)!.slice(0, PREFIX_CHARS)
      return phrase([...words.slice(1, -1), `${beginning}*`].join(' '), [beginning])
    }
    const asked = words.slice(0, kind === 'one' ? 1 : kind === 'two' ? 2 : 3)
    return phrase(asked.join(' '), asked)
  })
}

/** `words`: what each line that is found has in it; null: none is found. */
function phrase(text: string, words: readonly string[] | null): Question {
  const node = { fields: ['orderLineId', 'productNumber', 'description', 'orderLineTotal'] }
  return {
    path: '/resources/graph',
    body: [{ edge: 'orderLines', phrase: text, limit: PAGE, node }],
    fault({ orderLines }) {
      const found = orderLines as readonly ShopLine[]
      if (words === null) return found.length === 0 ? null : `${text}: ${found.length} lines`
      const strange = found.find((line) => {
        const inLine = `${line.productNumber} ${line.description}`.toUpperCase()
        return !words.every((word) => inLine.includes(word.toUpperCase()))
      })
      if (strange !== undefined) return `${text}: found ${JSON.stringify(strange)}`
      return found.length === 0 ? `${text}: nothing is found` : null
    },
  }
}
