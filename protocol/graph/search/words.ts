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
const ASCII_APOSTROPHE = /['`]/
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
  const { searchTextCharsMax, searchWordsMax, searchWordCharsMax } = SEARCH_LIMITS
  const some = text.length > searchTextCharsMax ? text.slice(0, searchTextCharsMax) : text
  const words: string[] = (ASCII.test(some) ? wordsOfAscii(some) : wordsOfOthers(some)) ?? []
  if (words.length > searchWordsMax) words.length = searchWordsMax
  return words.some((word) => word.length > searchWordCharsMax) ? words.map(asIndexed) : words
}

/** Most texts: nothing to fold, and to look behind each letter takes longer than to cut them. */
function wordsOfAscii(text: string): string[] | null {
  const joined = ASCII_APOSTROPHE.test(text) ? text.replaceAll(APOSTROPHES, '') : text
  return joined.toLowerCase().match(ASCII_WORDS)
}

function wordsOfOthers(text: string): string[] | null {
  const plain = folded(visible(text).replaceAll(APOSTROPHES, ''))
  return plain.match(ASCII.test(plain) ? ASCII_WORDS : WORDS)
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
/** Spaces that have to become one of the usual. */
const OTHER_SPACES = /[^\S ]| {2}/

/** A whole value as one word of the index, without case; null: it is empty. */
export function keywordOf(text: string): string | null {
  const { searchTextCharsMax, searchKeywordCharsMax } = SEARCH_LIMITS
  const part = text.slice(0, searchTextCharsMax)
  const seen = ASCII.test(part) ? part : part.toWellFormed().replaceAll(INVISIBLE, '')
  const trimmed = seen.trim()
  const some = OTHER_SPACES.test(trimmed) ? trimmed.replaceAll(/\s+/g, ' ') : trimmed
  if (some === '') return null
  const value = cut(withoutCase(some), searchKeywordCharsMax)
  return KEYWORD + withoutSigns(value)
}

function withoutSigns(text: string): string {
  let plain = ''
  let from = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (!isSign(code)) continue
    plain += text.slice(from, at) + String.fromCharCode(PRIVATE + code)
    from = at + 1
  }
  return from === 0 ? text : plain + text.slice(from)
}

/** Of ASCII, neither a digit nor a small letter; there are no capitals any more. */
function isSign(code: number): boolean {
  return code < 0x30 || (code > 0x39 && code < 0x61) || (code > 0x7a && code < 0x80)
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
