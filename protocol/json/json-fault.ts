// Where a broken JSON text breaks. parseJson only knows that the parser refused. This runs on
// refused texts only, so it may take its time.

/** The first place where a text stops being JSON. */
export interface SyntaxFault {
  /** Index in UTF-16 code units, from 0. */
  readonly position: number
  /** Both from 1. */
  readonly line: number
  readonly column: number
  /** What is there: a quoted character, or `the end of the text`. */
  readonly found: string
  readonly expected: string
}

/** No person looks further in a text of megabytes. */
const EXPLAINED_CHARS_MAX = 256 * 1024

/**
 * The fault of a text that JSON.parse refused; of a long text, one that lies near its beginning.
 */
export function syntaxFaultOf(whole: string): SyntaxFault {
  const fault = faultIn(whole.slice(0, EXPLAINED_CHARS_MAX))
  if (whole.length <= EXPLAINED_CHARS_MAX || fault.position < EXPLAINED_CHARS_MAX) return fault
  return { ...fault, found: 'something further on', expected: 'JSON' }
}

function faultIn(text: string): SyntaxFault {
  const walk = new Walk(text)
  try {
    walk.document()
  } catch (error) {
    if (!(error instanceof Stop)) throw error
    return placed(text, error.position, error.expected)
  }
  // The parser refused what this grammar takes: say where the text ends rather than nothing.
  return placed(text, text.length, 'a JSON value')
}

function placed(text: string, position: number, expected: string): SyntaxFault {
  let line = 1
  let lineStart = 0
  for (let i = 0; i < position; i++) {
    if (text.charCodeAt(i) !== 0x0a) continue
    line++
    lineStart = i + 1
  }
  const column = position - lineStart + 1
  return { position, line, column, found: foundAt(text, position), expected }
}

function foundAt(text: string, position: number): string {
  const code = text.codePointAt(position)
  if (code === undefined) return 'the end of the text'
  if (code === 0xfeff) return 'a byte order mark'
  const printable = code > 0x20 && code !== 0x7f
  return printable
    ? `'${String.fromCodePoint(code)}'`
    : `the character U+${code.toString(16).toUpperCase().padStart(4, '0')}`
}

class Stop extends Error {
  readonly position: number
  readonly expected: string
  constructor(position: number, expected: string) {
    super(expected)
    this.position = position
    this.expected = expected
  }
}

/** A plain recursive reading of RFC 8259; nesting was bounded before. */
class Walk {
  private readonly text: string
  private at = 0

  constructor(text: string) {
    this.text = text
  }

  document(): void {
    this.space()
    this.value()
    this.space()
    if (this.at < this.text.length) throw new Stop(this.at, 'the end of the text')
  }

  private value(): void {
    const c = this.text[this.at]
    if (c === '{') this.object()
    else if (c === '[') this.array()
    else if (c === '"') this.string()
    else if (c === '-' || (c !== undefined && c >= '0' && c <= '9')) this.number()
    else if (c === 't') this.word('true')
    else if (c === 'f') this.word('false')
    else if (c === 'n') this.word('null')
    else throw new Stop(this.at, 'a JSON value')
  }

  private object(): void {
    this.at++
    this.space()
    if (this.take('}')) return
    for (;;) {
      if (this.text[this.at] !== '"') throw new Stop(this.at, 'a key in double quotes')
      this.string()
      this.space()
      if (!this.take(':')) throw new Stop(this.at, "':'")
      this.space()
      this.value()
      this.space()
      if (this.take('}')) return
      if (!this.take(',')) throw new Stop(this.at, "',' or '}'")
      this.space()
    }
  }

  private array(): void {
    this.at++
    this.space()
    if (this.take(']')) return
    for (;;) {
      this.value()
      this.space()
      if (this.take(']')) return
      if (!this.take(',')) throw new Stop(this.at, "',' or ']'")
      this.space()
    }
  }

  private string(): void {
    this.at++
    for (;;) {
      const c = this.text[this.at]
      if (c === undefined) throw new Stop(this.at, "'\"' at the end of the string")
      if (c < ' ') throw new Stop(this.at, 'an escape such as \\n for a control character')
      this.at++
      if (c === '"') return
      if (c === '\\') this.escape()
    }
  }

  private escape(): void {
    const c = this.text[this.at]
    if (c === undefined || !'"\\/bfnrtu'.includes(c)) throw new Stop(this.at, 'a JSON escape')
    this.at++
    if (c !== 'u') return
    for (let i = 0; i < 4; i++) {
      if (!/[0-9a-fA-F]/.test(this.text[this.at] ?? '')) throw new Stop(this.at, 'a hex digit')
      this.at++
    }
  }

  private number(): void {
    this.take('-')
    if (!this.take('0')) this.digits()
    if (this.take('.')) this.digits()
    if (this.take('e') || this.take('E')) {
      if (!this.take('+')) this.take('-')
      this.digits()
    }
  }

  private digits(): void {
    const start = this.at
    while (isDigit(this.text.charCodeAt(this.at))) this.at++
    if (this.at === start) throw new Stop(this.at, 'a digit')
  }

  private word(word: string): void {
    for (const c of word) if (!this.take(c)) throw new Stop(this.at, word)
  }

  private take(c: string): boolean {
    if (this.text[this.at] !== c) return false
    this.at++
    return true
  }

  private space(): void {
    while (isSpace(this.text.charCodeAt(this.at))) this.at++
  }
}

const isDigit = (c: number): boolean => c >= 0x30 && c <= 0x39
const isSpace = (c: number): boolean => c === 0x20 || c === 0x0a || c === 0x0d || c === 0x09

/** Index of the first byte that is not part of a valid UTF-8 sequence (RFC 3629). */
export function invalidUtf8At(bytes: Uint8Array): number {
  let i = 0
  while (i < bytes.length) {
    const length = sequenceLength(bytes, i)
    if (length === 0) return i
    i += length
  }
  return bytes.length
}

function sequenceLength(bytes: Uint8Array, i: number): number {
  const first = bytes[i]!
  if (first < 0x80) return 1
  const length =
    first >= 0xc2 && first <= 0xdf
      ? 2
      : first >= 0xe0 && first <= 0xef
        ? 3
        : first >= 0xf0 && first <= 0xf4
          ? 4
          : 0
  // The second byte's range keeps out overlong forms, surrogates and points past U+10FFFF.
  const low = first === 0xe0 ? 0xa0 : first === 0xf0 ? 0x90 : 0x80
  const high = first === 0xed ? 0x9f : first === 0xf4 ? 0x8f : 0xbf
  for (let k = 1; k < length; k++) {
    const c = bytes[i + k]
    if (c === undefined || c < (k === 1 ? low : 0x80) || c > (k === 1 ? high : 0xbf)) return 0
  }
  return length
}
