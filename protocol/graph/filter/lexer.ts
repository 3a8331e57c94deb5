// Words of the filter language: cuts an expression into tokens with their positions. Source:
// CONTRACT Appendix A.

export type TokenKind =
  | 'name'
  | 'text'
  | 'number'
  | 'uuid'
  | 'date'
  | 'timestamp'
  | 'symbol'
  | 'end'

export interface Token {
  readonly kind: TokenKind
  /** The value: a quoted string without quotes and escapes; else as it was written. */
  readonly text: string
  /** Where it starts, in UTF-16 units from 0. */
  readonly position: number
}

/** What is wrong with an expression, and where. The planner makes the caller's error of it. */
export class SyntaxMistake extends Error {
  readonly position: number
  constructor(position: number, message: string) {
    super(message)
    this.position = position
  }
}

const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?![\w-])/iy
const TIMESTAMP =
  /\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:?\d{2})(?!\w)/iy
const DATE = /\d{4}-\d{2}-\d{2}(?!\w)/y
const NUMBER = /\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const NAME = /[A-Za-z_]\w*/y
const SYMBOL = /==|!=|<=|>=|->|[<>+\-()[\],.%]/y
const SPACE = /\s*/y

const LITERALS: readonly (readonly [TokenKind, RegExp])[] = [
  ['uuid', UUID],
  ['timestamp', TIMESTAMP],
  ['date', DATE],
  ['number', NUMBER],
  ['name', NAME],
  ['symbol', SYMBOL],
]

/** All tokens of an expression, an `end` last. Throws SyntaxMistake. */
export function tokens(text: string): Token[] {
  const found: Token[] = []
  let at = 0
  for (;;) {
    SPACE.lastIndex = at
    at += SPACE.exec(text)![0].length
    if (at >= text.length) break
    const quote = text[at]
    if (quote === "'" || quote === '"') {
      const end = endOfText(text, at)
      found.push({ kind: 'text', text: unescaped(text.slice(at + 1, end)), position: at })
      at = end + 1
      continue
    }
    const token = literalAt(text, at)
    found.push(token)
    at += token.text.length
  }
  found.push({ kind: 'end', text: '', position: text.length })
  return found
}

function literalAt(text: string, at: number): Token {
  for (const [kind, pattern] of LITERALS) {
    pattern.lastIndex = at
    const match = pattern.exec(text)
    if (match) return { kind, text: match[0], position: at }
  }
  const found = String.fromCodePoint(text.codePointAt(at)!)
  throw new SyntaxMistake(at, `${JSON.stringify(found)} has no meaning in a filter${hint(found)}`)
}

function hint(found: string): string {
  if (found === '=') return '; equality is =='
  if (found === '!') return '; use != or not'
  if (found === '&') return '; use and'
  if (found === '|') return '; use or'
  return ''
}

/** Position of the quote that ends the string opened at `start`. */
function endOfText(text: string, start: number): number {
  const quote = text[start]
  for (let i = start + 1; i < text.length; i++) {
    if (text[i] === '\\') i++
    else if (text[i] === quote) return i
  }
  throw new SyntaxMistake(start, `the string that starts here has no closing ${quote}`)
}

/** `\\`, `\'` and `\"` stand for the second character; any other backslash is itself. */
function unescaped(raw: string): string {
  return raw.includes('\\') ? raw.replace(/\\([\\'"])/g, '$1') : raw
}

/** A token as a message shows it. */
export function shown(token: Token): string {
  if (token.kind === 'end') return 'the end'
  if (token.kind === 'text') return `the string ${JSON.stringify(token.text.slice(0, 40))}`
  return JSON.stringify(token.text.slice(0, 40))
}
