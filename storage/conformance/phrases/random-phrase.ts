// Random phrases for the conformance suite, and what they mean: the rules once more, on plain
// texts, without words, columns or queries. It stands beside the suite. Source: CONTRACT 1.4.2.

import fc from 'fast-check'
import type { NodeType } from '../../../protocol/graph/node-type.ts'
import type { SearchField } from '../../../protocol/graph/search/search-index.ts'
import type { Doc } from '../search-nodes.ts'
import { memberOf } from '../search-terms.ts'

interface Word {
  readonly text: string
  readonly quote: '' | "'" | '"'
  readonly prefix: boolean
}

export interface RandomPhrase {
  readonly text: string
  readonly words: readonly Word[]
}

const WORDS = [
  'öberg',
  'asa',
  'ÅSA',
  'lind',
  'Åsa Öberg',
  'öberg lind',
  'lin',
  'as',
  'oberg lin',
  '小',
  '王小明',
  '王 小',
  "it's",
  'its asa',
  "'t lind",
  'O\uff07asa',
  'ö\u00adberg',
]
/** Words that hardly anything has, or that don't count. */
const RARE = [
  'key', 'key 1', 'a', 'ab', 'now', 'true', 'back', 'say', '2026-01-01', '2026', '50%', 'a_c', '😀b', 'B',
  '1', 'it', 'a-b', '-', "'t", 'a\u200db',
] // prettier-ignore

const anyWord: fc.Arbitrary<Word> = fc
  .record({
    text: fc.constantFrom(...WORDS, ...WORDS, ...RARE),
    quote: fc.constantFrom('', '', '', "'" as const, '"' as const),
    prefix: fc.nat(3).map((n) => n === 0),
  })
  .map(({ text, quote, prefix }) => ({ text, prefix, quote: quoteFor(text, quote) }))

/** What has a space in it is one word in quotes alone. */
const quoteFor = (text: string, quote: '' | "'" | '"'): Word['quote'] =>
  quote === '' && text.includes(' ') ? '"' : quote

export const randomPhrase: fc.Arbitrary<RandomPhrase> = fc
  .array(anyWord, { minLength: 1, maxLength: 3, size: '-1' })
  .map(unambiguous)
  .map((words) => ({
    words,
    text: words
      .map(({ text, quote, prefix }) => `${quote}${text}${quote}${prefix ? '*' : ''}`)
      .join(' '),
  }))

/** An apostrophe before a word would be closed by the next quote of its kind. */
function unambiguous(words: readonly Word[]): readonly Word[] {
  if (words.every(({ text, quote }) => quote !== '' || !text.startsWith("'"))) return words
  return words.map((word) => (word.quote === "'" ? { ...word, quote: '"' } : word))
}

/** A phrase that finds one of these values; null: there is none that can be written so. */
export function phraseMeeting(values: readonly Held[], n: number): RandomPhrase | null {
  const written = values.filter(({ text }) => /^[\p{L}\p{N}]/u.test(text) && !text.includes('"'))
  if (written.length === 0) return null
  const { text, keyword } = written[n % written.length]!
  if (keyword) {
    const word: Word = { text, quote: '"', prefix: n % 3 === 0 }
    return { words: [word], text: `"${text}"${word.prefix ? '*' : ''}` }
  }
  const words = text
    .split(/\s+/)
    .map((one): Word => ({ text: one, quote: '', prefix: n % 5 === 0 }))
  const some = n % 2 === 0 ? words : words.slice(-1)
  return { words: some, text: some.map((one) => one.text + (one.prefix ? '*' : '')).join(' ') }
}

const ALONE = /\p{sc=Han}/gu
const UNSEEN = /[\u00ad\u200c\u200d]/g

/** A text as its words between spaces, one before the first and one behind the last. */
function spaced(text: string): string {
  const plain = text.replaceAll(UNSEEN, '').normalize('NFD').replaceAll(/\p{M}/gu, '').toLowerCase()
  const joined = plain.replaceAll(/(?<=[\p{L}\p{N}])['\uff07](?=[\p{L}\p{N}])/gu, '')
  const words = joined.replaceAll(ALONE, ' $& ').replaceAll(/[^\p{L}\p{N}]+/gu, ' ')
  return ` ${words.trim()} `
}

const whole = (text: string): string =>
  text.replaceAll(UNSEEN, '').trim().replaceAll(/\s+/g, ' ').toLowerCase()

function counts({ text, quote }: Word): boolean {
  const words = spaced(text).trim()
  if (words === '') return false
  return quote !== '' || /\p{sc=Han}/u.test(words) || words.replaceAll(' ', '').length >= 3
}

/** A value with how it is found. */
interface Held {
  readonly text: string
  readonly keyword: boolean
}

export interface Found {
  /** Of the node itself, and of nodes that its edges lead to. */
  readonly own: readonly Held[]
  readonly others: readonly Held[]
}

/** The values of fields in documents. */
export function heldBy(docs: readonly Doc[], fields: readonly SearchField[]): Held[] {
  return docs.flatMap((doc) =>
    fields.flatMap(({ path, keyword }) => {
      const value = memberOf(doc, path)
      const texts = [value].flat().filter((one) => typeof one === 'string')
      return [...texts, ...(isNumber(value, path) ? [value] : [])].map((one) => {
        return { text: String(one), keyword }
      })
    }),
  )
}

/** A number is found in a member that may be anything, not as one of a list. */
const isNumber = (value: unknown, path: readonly string[]): boolean =>
  typeof value === 'number' && path[0] === 'dynamic'

/** The rank of a node; null: not found. */
export function rankOf({ words }: RandomPhrase, { own, others }: Found): number | null {
  const counted = words.filter(counts)
  const isFound = (word: Word, values: readonly Held[]): boolean =>
    values.some((held) => isIn(word, held, counted.length > 0))
  const asked = counted.length > 0 ? counted : words
  if (!asked.every((one) => isFound(one, own))) {
    return asked.every((one) => isFound(one, own) || isFound(one, others)) ? 0 : null
  }
  const standing = counted.length === 0 ? [] : words.filter(({ text }) => spaced(text) !== '  ')
  if (standing.length > 1) {
    if (standing.some(({ prefix }) => prefix)) return 1
    const text = standing.map((one) => one.text).join(' ')
    const all: Word = { text, quote: '"', prefix: false }
    return own.some((held) => !held.keyword && stands(all, held.text)) ? 2 : 1
  }
  const [only] = asked
  if (words.length > 1 || only!.prefix) return 1
  return own.some((held) => held.keyword && whole(held.text) === whole(only!.text)) ? 3 : 1
}

function isIn(word: Word, { text, keyword }: Held, looksIntoTexts: boolean): boolean {
  if (!keyword) return looksIntoTexts && spaced(word.text) !== '  ' && stands(word, text)
  const value = whole(text)
  if (value === '') return false
  return word.prefix ? value.startsWith(whole(word.text)) : value === whole(word.text)
}

function stands({ text, prefix }: Word, value: string): boolean {
  const words = spaced(text)
  return spaced(value).includes(prefix ? words.slice(0, -1) : words)
}

/** Node types that a type's search has edges to, with the fields of each. */
export function searchedEdges({ search, edges }: NodeType) {
  return (search?.edges ?? []).map(({ edge, fields }) => ({
    edge: edges.find(({ name }) => name === edge)!,
    fields,
  }))
}
