// How text is folded and cut into words, the same for what is indexed and what is asked, whatever
// the engine: engines get words that are ready, and do nothing but cut at spaces. Source: CONTRACT
// 1.4.2.

import { SEARCH_LIMITS } from './search-index.ts'

const ASCII = /^[\0-\x7f]*$/
/** Accents, points of Hebrew and Arabic; not what makes another Kana or Thai. */
const ACCENTS = /[[\p{M}&&[\p{sc=Inherited}\p{sc=Hebrew}\p{sc=Arabic}]]--\p{scx=Hira}]+/gv
/** Letters that are no letter with an accent, but that people write as others. */
const LETTERS: Readonly<Record<string, string>> = {
  ß: 'ss',
  æ: 'ae',
  œ: 'oe',
  ø: 'o',
  ł: 'l',
  đ: 'd',
  ð: 'd',
  þ: 'th',
  ħ: 'h',
  ŧ: 't',
  ı: 'i',
  ς: 'σ',
}
const OTHER_LETTERS = new RegExp(`[${Object.keys(LETTERS).join('')}]`, 'g')

/** Text without case and accents. */
export function folded(text: string): string {
  if (ASCII.test(text)) return text.toLowerCase()
  return text
    .normalize('NFKD')
    .replaceAll(ACCENTS, '')
    .toLowerCase()
    .replaceAll(ACCENTS, '')
    .replaceAll(OTHER_LETTERS, (letter) => LETTERS[letter]!)
    .normalize('NFC')
}

/** Between two letters it belongs to the word; accents that stand alone are written for it. */
const APOSTROPHES =
  /(?<=[\p{L}\p{M}\p{N}])['`\u00b4\u2018\u2019\u02bc\u201b\uff07]+(?=[\p{L}\p{M}\p{N}])/gu
/** Nobody sees them: hyphens of no line's end, joiners, marks of order and direction. */
const INVISIBLE = /\p{Default_Ignorable_Code_Point}+/gu
/** The same without the space of no width, which ends words (UAX #29 4.1). */
const INVISIBLE_IN_WORDS = /[\p{Default_Ignorable_Code_Point}--\u200b]+/gv
/** Writings that put no space between words: each character is a word. */
const ALONE = /^[[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Hang}\p{sc=Thai}]&&[\p{L}\p{M}\p{N}]]$/v
const WORDS =
  /[[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Hang}\p{sc=Thai}]&&[\p{L}\p{M}\p{N}]]|[[\p{L}\p{M}\p{N}]--[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Hang}\p{sc=Thai}]]+/gv
const ASCII_WORDS = /[a-z0-9]+/g

/** Text without what nobody sees and what ends no word. */
export function visible(text: string): string {
  return ASCII.test(text) ? text : text.replaceAll(INVISIBLE_IN_WORDS, '')
}

/** Words of a text in their order, folded; no more of it than is indexed. */
export function wordsOf(text: string): string[] {
  const { searchTextCharsMax, searchWordsMax } = SEARCH_LIMITS
  const some = text.length > searchTextCharsMax ? text.slice(0, searchTextCharsMax) : text
  const joined = visible(some).replaceAll(APOSTROPHES, '')
  const plain = folded(joined)
  const words = plain.match(ASCII.test(plain) ? ASCII_WORDS : WORDS) ?? []
  if (words.length > searchWordsMax) words.length = searchWordsMax
  return words.map(asIndexed)
}

/** Long words are told by their beginning. */
function asIndexed(word: string): string {
  const { searchWordCharsMax } = SEARCH_LIMITS
  return word.length > searchWordCharsMax ? cut(word, searchWordCharsMax) : word
}

function cut(text: string, chars: number): string {
  const end = text.charCodeAt(chars - 1)
  return text.slice(0, end >= 0xd800 && end < 0xdc00 ? chars - 1 : chars)
}

/** True: as many characters as a word must have to be looked for. */
export function areLong(words: readonly string[]): boolean {
  let chars = 0
  for (const word of words) {
    if (ALONE.test(word)) return true
    for (const _ of word) chars++
  }
  return chars >= WORD_CHARS_MIN
}

const WORD_CHARS_MIN = 3

/** Begins each keyword, so that none is ever a word. */
const KEYWORD = '\u0080'
/** Added to what would be no part of a word for an engine: spaces, signs. */
const PRIVATE = 0xe000
const SIGNS_IN_KEYWORD = /[\ue000-\ue07f]/g
const SIGNS = /[\0-\x2f\x3a-\x60\x7b-\x7f]/g

/** A whole value as one word of the index, without case; null: it is empty. */
export function keywordOf(text: string): string | null {
  const { searchTextCharsMax, searchKeywordCharsMax } = SEARCH_LIMITS
  const seen = text.slice(0, searchTextCharsMax).toWellFormed().replaceAll(INVISIBLE, '')
  const some = seen.trim().replaceAll(/\s+/g, ' ')
  if (some === '') return null
  const value = cut(withoutCase(some), searchKeywordCharsMax)
  return (
    KEYWORD + value.replaceAll(SIGNS, (sign) => String.fromCharCode(PRIVATE + sign.charCodeAt(0)))
  )
}

/** The value that a word of `keywordOf` stands for, without its case. */
export function valueOfKeyword(word: string): string {
  return word
    .slice(KEYWORD.length)
    .replaceAll(SIGNS_IN_KEYWORD, (sign) => String.fromCharCode(sign.charCodeAt(0) - PRIVATE))
}

function withoutCase(text: string): string {
  if (ASCII.test(text)) return text.toLowerCase()
  return text
    .normalize('NFC')
    .replaceAll(/[İı]/g, 'i')
    .toLowerCase()
    .replaceAll('ς', 'σ')
    .normalize('NFC')
}
