// The grammar of phrases: words, a `*` behind the beginning of one, quotes around words that stand
// so. Source: specification "Graph", CONTRACT 1.4.2.

import { SyntaxMistake } from '../filter/lexer.ts'
import { SEARCH_LIMITS } from './search-index.ts'
import { areLong, keywordOf, valueOfKeyword, visible, wordsOf } from './words.ts'

/** What is looked for: every term is found, each in any field. */
export interface Phrase {
  readonly terms: readonly PhraseTerm[]
  /** All words one after another, those that may be missing too; null: one, or some only begin. */
  readonly sequence: PhraseTerm | null
  /** The keyword that all of it is; null: it is more than one, or only begins so. */
  readonly whole: string | null
}

export interface PhraseTerm {
  /** Words that stand one after another in a field; empty: only keywords are looked into. */
  readonly words: readonly string[]
  /** A keyword that is all of it; null: none can be. */
  readonly keyword: string | null
  /** The last word, or the keyword, only begins so. */
  readonly prefix: boolean
}

/** A term as it is written. */
interface Written {
  readonly text: string
  readonly position: number
  readonly isQuoted: boolean
  readonly prefix: boolean
}

/** Reads a phrase. Throws SyntaxMistake. */
export function parsePhrase(text: string): Phrase {
  const { phraseCharsMax } = SEARCH_LIMITS
  if (text.length > phraseCharsMax) {
    throw new SyntaxMistake(phraseCharsMax, `a phrase has at most ${phraseCharsMax} characters`)
  }
  const seen = visible(text)
  try {
    return parsed(seen)
  } catch (error) {
    if (seen === text || !(error instanceof SyntaxMistake)) throw error
    throw new SyntaxMistake(placeIn(text, error.position), error.message)
  }
}

/** Where a place among what is seen of a text is in it. */
function placeIn(text: string, place: number): number {
  let at = 0
  while (at < text.length && visible(text.slice(0, at + 1)).length <= place) at++
  return at
}

function parsed(text: string): Phrase {
  const { phraseWordsMax, phrasePartsMax } = SEARCH_LIMITS
  const terms: Term[] = []
  let parts = 0
  for (const written of writtenIn(text)) {
    if (terms.length === phraseWordsMax) {
      throw new SyntaxMistake(written.position, `a phrase has at most ${phraseWordsMax} words`)
    }
    const term = termOf(written)
    terms.push(term)
    parts += term.words.length
    if (parts <= phrasePartsMax) continue
    throw new SyntaxMistake(
      written.position,
      `a phrase is cut into at most ${phrasePartsMax} words and characters`,
    )
  }
  if (terms.length === 0)
    throw new SyntaxMistake(0, 'the phrase is empty; write a word, or leave it out')
  return phraseOf(terms)
}

interface Term extends PhraseTerm {
  /** False: texts are not looked into for it. */
  readonly counts: boolean
}

function termOf({ text, position, isQuoted, prefix }: Written): Term {
  const words = wordsOf(text)
  const keyword = keywordOf(text)
  if (keyword === null) {
    const right = prefix
      ? 'a * stands behind the beginning of a word'
      : 'there is nothing in quotes'
    throw new SyntaxMistake(position, right)
  }
  return { words, keyword, prefix, counts: words.length > 0 && (isQuoted || areLong(words)) }
}

/** Where a word counts, those that don't may be missing; where none does, all are keywords. */
function phraseOf(all: readonly Term[]): Phrase {
  const bare = ({ words, keyword, prefix }: Term): PhraseTerm => ({ words, keyword, prefix })
  const [only] = all
  const whole = all.length > 1 || only!.prefix ? null : only!.keyword
  const counted = all.filter(({ counts }) => counts)
  if (counted.length === 0) {
    const terms = all.map((term) => ({ ...bare(term), words: [] }))
    return { terms, sequence: null, whole }
  }
  return { terms: counted.map(bare), sequence: sequenceOf(all), whole }
}

function sequenceOf(all: readonly Term[]): PhraseTerm | null {
  const standing = all.filter(({ words }) => words.length > 0)
  if (standing.length < 2 || standing.some(({ prefix }) => prefix)) return null
  return { words: standing.flatMap(({ words }) => words), keyword: null, prefix: false }
}

/** Also the space of no width. */
const SPACES = /[\s\u200b]*/y
const UNQUOTED = /\S+/y
const STARS = /\*+$/
const LETTER = /^[\p{L}\p{M}\p{N}]/u

function* writtenIn(text: string): Generator<Written> {
  for (let at = 0; ;) {
    SPACES.lastIndex = at
    at += SPACES.exec(text)![0].length
    if (at >= text.length) return
    const sign = text[at]
    const quoted = sign === '"' || sign === "'" ? quotedAt(text, at) : null
    const written = quoted ?? wordAt(text, at)
    yield written.term
    at = written.end
  }
}

interface Read {
  readonly term: Written
  readonly end: number
}

function wordAt(text: string, position: number): Read {
  UNQUOTED.lastIndex = position
  const found = UNQUOTED.exec(text)![0]
  const bare = found.replace(STARS, '')
  const term = { text: bare, position, isQuoted: false, prefix: bare.length < found.length }
  return { term, end: position + found.length }
}

/** Null: an apostrophe, which begins a word (`'t Hof`), for no other closes it. */
function quotedAt(text: string, position: number): Read | null {
  const quote = text[position]!
  for (let end = position + 1; end < text.length; end++) {
    if (text[end] !== quote) continue
    // An apostrophe inside a word belongs to it.
    if (quote === "'" && LETTER.test(text.slice(end + 1, end + 3))) continue
    const prefix = text[end + 1] === '*'
    const term = { text: text.slice(position + 1, end), position, isQuoted: true, prefix }
    return { term, end: prefix ? end + 2 : end + 1 }
  }
  if (quote === "'") return null
  throw new SyntaxMistake(position, `the quote that opens here has no closing ${quote}`)
}

/** A phrase as it was understood: the words that are looked for. */
export function phraseText({ terms }: Phrase): string {
  return terms.map(termText).join(' ')
}

function termText({ words, keyword, prefix }: PhraseTerm): string {
  const text = words.length > 0 ? words.join(' ') : valueOfKeyword(keyword!)
  const shown = words.length === 1 ? text : `"${text}"`
  return `${shown}${prefix ? '*' : ''}${words.length > 0 ? '' : ' (as a keyword)'}`
}
