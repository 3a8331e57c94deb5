// Grammar of the filter language: turns tokens into a syntax tree, names not yet resolved. Also
// reads the field expressions of `fields` and `orderBy`, which are paths of the same grammar.
// Source: CONTRACT Appendix A.

import { shown, SyntaxMistake, tokens, type Token } from './lexer.ts'
import type { CompareOperator, TextOperator } from '../plan.ts'

export interface PathExpr {
  readonly kind: 'path'
  /** Names joined by dots: a field and members of an object. */
  readonly names: readonly string[]
  /** Names behind arrows: members of a `dynamic`. */
  readonly members: readonly string[]
  readonly position: number
}

export interface LiteralExpr {
  readonly kind: 'literal'
  readonly type: 'text' | 'number' | 'boolean' | 'nothing' | 'uuid' | 'date' | 'timestamp'
  readonly value: string | number | boolean | null
  readonly position: number
}

export type Expr =
  | PathExpr
  | LiteralExpr
  | { readonly kind: 'now'; readonly position: number }
  | { readonly kind: 'duration'; readonly ms: number; readonly position: number }
  | { readonly kind: 'and' | 'or'; readonly of: readonly Expr[]; readonly position: number }
  | { readonly kind: 'not'; readonly of: Expr; readonly position: number }
  | {
      readonly kind: 'sum'
      readonly operator: '+' | '-'
      readonly left: Expr
      readonly right: Expr
      readonly position: number
    }
  | {
      readonly kind: 'compare'
      readonly operator: CompareOperator
      readonly left: Expr
      readonly right: Expr
      readonly position: number
    }
  | {
      readonly kind: 'list'
      readonly operator: 'anyof' | 'allof' | 'in'
      readonly left: Expr
      readonly values: readonly LiteralExpr[]
      readonly position: number
    }
  | {
      readonly kind: 'text'
      readonly operator: TextOperator
      readonly left: Expr
      readonly right: Expr
      readonly position: number
    }

/** Bounds of field expressions and orders; part of LIMITS. */
export const PATH_LIMITS = {
  fieldCharsMax: 1_024,
  /** Names and members of one path. */
  fieldPartsMax: 16,
  orderByCharsMax: 4 * 1_024,
  sortKeysMax: 16,
} as const

const SECOND = 1_000
const UNIT_MS: Readonly<Record<string, number>> = {
  second: SECOND,
  minute: 60 * SECOND,
  hour: 3_600 * SECOND,
  day: 86_400 * SECOND,
  week: 604_800 * SECOND,
}

const RESERVED = new Set(
  'and or not anyof allof in contains startsWith endsWith now true false nothing null'.split(' '),
)
const COMPARE = new Set(['==', '!=', '<', '<=', '>', '>='])
const LIST = new Set(['anyof', 'allof', 'in'])
const TEXT = new Set(['contains', 'startsWith', 'endsWith'])
const VALUE = 'a field or a value'

/** The syntax tree of a filter. Throws SyntaxMistake; `depthMax` bounds nesting and sums. */
export function parseFilter(text: string, depthMax: number): Expr {
  const parser = new Parser(tokens(text), depthMax)
  const expr = parser.or()
  parser.end('and, or, or the end')
  return expr
}

/** One field expression: `orderNumber`, `invoiceAddress.name`, `dynamic->'x'`. */
export function parsePath(text: string): PathExpr {
  checkLength(text, PATH_LIMITS.fieldCharsMax)
  const parser = new Parser(tokens(text), 1)
  const path = parser.path()
  parser.end('the end')
  return path
}

export interface SortExpr {
  readonly path: PathExpr
  readonly direction: 'asc' | 'desc'
}

/** A comma list of `field [asc|desc]`. */
export function parseOrderBy(text: string): SortExpr[] {
  checkLength(text, PATH_LIMITS.orderByCharsMax)
  const parser = new Parser(tokens(text), 1)
  const keys = [parser.sortKey()]
  while (parser.takeSymbol(',')) {
    const key = parser.sortKey()
    if (keys.push(key) > PATH_LIMITS.sortKeysMax) {
      throw new SyntaxMistake(key.path.position, `more than ${PATH_LIMITS.sortKeysMax} sort keys`)
    }
  }
  parser.end('asc, desc, a comma or the end')
  return keys
}

function checkLength(text: string, charsMax: number): void {
  if (text.length > charsMax)
    throw new SyntaxMistake(charsMax, `longer than ${charsMax} characters`)
}

class Parser {
  readonly #tokens: readonly Token[]
  readonly #depthMax: number
  #at = 0
  #depth = 0

  constructor(all: readonly Token[], depthMax: number) {
    this.#tokens = all
    this.#depthMax = depthMax
  }

  or(): Expr {
    return this.#chain('or', () => this.#chain('and', () => this.#unary()))
  }

  end(expected: string): void {
    if (this.#token().kind !== 'end') this.#fail(expected)
  }

  path(): PathExpr {
    const first = this.#token()
    const names = [this.#name()]
    while (this.takeSymbol('.')) {
      const member = this.#token()
      if (member.kind !== 'name') this.#fail('a member name')
      this.#at++
      names.push(member.text)
    }
    const members: string[] = []
    while (this.takeSymbol('->')) {
      const member = this.#token()
      if (member.kind !== 'text') this.#fail("a quoted member name, as in dynamic->'name'")
      this.#at++
      members.push(member.text)
      if (names.length + members.length > PATH_LIMITS.fieldPartsMax) {
        const most = PATH_LIMITS.fieldPartsMax
        throw new SyntaxMistake(member.position, `a field has at most ${most} parts`)
      }
    }
    return { kind: 'path', names, members, position: first.position }
  }

  sortKey(): SortExpr {
    const path = this.path()
    const token = this.#token()
    if (token.kind !== 'name') return { path, direction: 'asc' }
    if (token.text !== 'asc' && token.text !== 'desc') this.#fail('asc, desc, a comma or the end')
    this.#at++
    return { path, direction: token.text }
  }

  takeSymbol(symbol: string): boolean {
    const token = this.#token()
    if (token.kind !== 'symbol' || token.text !== symbol) return false
    this.#at++
    return true
  }

  #chain(word: 'and' | 'or', part: () => Expr): Expr {
    const first = part()
    if (!this.#isWord(word)) return first
    const of = [first]
    while (this.#takeWord(word)) of.push(part())
    return { kind: word, of, position: first.position }
  }

  #unary(): Expr {
    const { position } = this.#token()
    if (!this.#takeWord('not')) return this.#comparison()
    return this.#nested(() => ({ kind: 'not', of: this.#unary(), position }))
  }

  #comparison(): Expr {
    const left = this.#sum()
    const token = this.#token()
    const { position } = token
    const word = token.text
    if (token.kind === 'symbol' && COMPARE.has(word)) {
      this.#at++
      const operator = word as CompareOperator
      return { kind: 'compare', operator, left, right: this.#sum(), position }
    }
    if (token.kind !== 'name') return left
    if (LIST.has(word)) {
      this.#at++
      const operator = word as 'anyof' | 'allof' | 'in'
      return { kind: 'list', operator, left, values: this.#list(), position }
    }
    if (TEXT.has(word)) {
      this.#at++
      return { kind: 'text', operator: word as TextOperator, left, right: this.#sum(), position }
    }
    return left
  }

  #sum(): Expr {
    let left = this.#prim()
    for (let terms = 1; ; terms++) {
      const { position } = this.#token()
      const operator = this.takeSymbol('+') ? '+' : this.takeSymbol('-') ? '-' : null
      if (operator === null) return left
      if (terms >= this.#depthMax) this.#tooDeep(position)
      left = { kind: 'sum', operator, left, right: this.#prim(), position }
    }
  }

  #prim(): Expr {
    const token = this.#token()
    if (token.kind === 'symbol' && token.text === '(') {
      this.#at++
      return this.#nested(() => {
        const inner = this.or()
        if (!this.takeSymbol(')')) this.#fail('and, or, or )')
        return inner
      })
    }
    if (token.kind === 'name' && token.text === 'now') {
      this.#at++
      return { kind: 'now', position: token.position }
    }
    if (token.kind === 'number' && UNIT_MS[this.#unit()] !== undefined) return this.#duration()
    return this.#literal() ?? (this.#isField() ? this.path() : this.#fail(VALUE))
  }

  #literal(): LiteralExpr | null {
    const token = this.#token()
    const { position, text } = token
    const literal = (type: LiteralExpr['type'], value: LiteralExpr['value']): LiteralExpr => {
      this.#at++
      return { kind: 'literal', type, value, position }
    }
    switch (token.kind) {
      case 'text':
      case 'date':
      case 'timestamp':
        return literal(token.kind, text)
      case 'uuid':
        return literal('uuid', text.toLowerCase())
      case 'number':
        return this.#number('')
      case 'symbol':
        if (text !== '-' || this.#tokens[this.#at + 1]!.kind !== 'number') return null
        this.#at++
        return this.#number('-')
      case 'name':
        if (text === 'true' || text === 'false') return literal('boolean', text === 'true')
        if (text === 'nothing' || text === 'null') return literal('nothing', null)
        return null
      default:
        return null
    }
  }

  /** The number here; a percent sign behind it divides by 100, exactly as written. */
  #number(sign: '' | '-'): LiteralExpr {
    const { text, position } = this.#token()
    this.#at++
    const percent = this.takeSymbol('%')
    const [digits, exponent] = text.toLowerCase().split('e')
    const power = Number(exponent ?? 0) - (percent ? 2 : 0)
    const value = Number(`${sign}${digits}e${power}`)
    if (!Number.isFinite(value))
      throw new SyntaxMistake(position, `the number ${text} is too large`)
    return { kind: 'literal', type: 'number', value, position }
  }

  #duration(): Expr {
    const { text, position } = this.#token()
    if (!/^\d+$/.test(text)) {
      throw new SyntaxMistake(position, `a duration needs a whole number, found ${text}`)
    }
    const ms = Number(text) * UNIT_MS[this.#unit()]!
    if (!Number.isSafeInteger(ms)) throw new SyntaxMistake(position, 'the duration is too long')
    this.#at += 2
    return { kind: 'duration', ms, position }
  }

  /** Unit word behind the number here, without its plural s; '' when there is none. */
  #unit(): string {
    const next = this.#tokens[this.#at + 1]!
    if (next.kind !== 'name') return ''
    const word = next.text.endsWith('s') ? next.text.slice(0, -1) : next.text
    return Object.hasOwn(UNIT_MS, word) ? word : ''
  }

  #list(): LiteralExpr[] {
    if (!this.takeSymbol('[')) this.#fail("a list, as in ['a', 'b']")
    const values: LiteralExpr[] = []
    if (this.takeSymbol(']')) return values
    do {
      values.push(this.#literal() ?? this.#fail('a value'))
    } while (this.takeSymbol(','))
    if (!this.takeSymbol(']')) this.#fail('a comma or ]')
    return values
  }

  #name(): string {
    const token = this.#token()
    if (token.kind !== 'name' || RESERVED.has(token.text)) this.#fail('a field')
    this.#at++
    return token.text
  }

  #isField(): boolean {
    const token = this.#token()
    return token.kind === 'name' && !RESERVED.has(token.text)
  }

  #isWord(word: string): boolean {
    const token = this.#token()
    return token.kind === 'name' && token.text === word
  }

  #takeWord(word: string): boolean {
    if (!this.#isWord(word)) return false
    this.#at++
    return true
  }

  #token(): Token {
    return this.#tokens[this.#at]!
  }

  #nested<T>(inner: () => T): T {
    if (++this.#depth > this.#depthMax) this.#tooDeep(this.#token().position)
    const result = inner()
    this.#depth--
    return result
  }

  #tooDeep(position: number): never {
    throw new SyntaxMistake(position, `nested deeper, or a longer sum, than ${this.#depthMax}`)
  }

  #fail(expected: string): never {
    const token = this.#token()
    throw new SyntaxMistake(token.position, `found ${shown(token)}, expected ${expected}`)
  }
}
