// As much CQL as the driver's folder and its tests speak, read into parts. Pure. What it doesn't
// know is an error, so that a statement is never half understood.

export type Value = { readonly bind: number } | { readonly literal: unknown }
export type Operator = '=' | '<' | '>' | '<=' | '>='

export interface Condition {
  readonly column: string
  readonly operator: Operator
  readonly value: Value
}

/** A column, or its time to live or timestamp, under the name that the row has it by. */
export interface Selected {
  readonly column: string
  readonly of: 'value' | 'ttl' | 'writetime'
  readonly name: string
}

export interface Select {
  readonly kind: 'select'
  readonly table: string
  /** Empty: all. */
  readonly columns: readonly Selected[]
  readonly isDistinct: boolean
  readonly where: readonly Condition[]
  /** Partitions whose token is behind that of this one. */
  readonly behind: readonly Value[] | null
  readonly isDescending: boolean
  readonly limit: Value | null
}

export interface Write {
  readonly kind: 'insert' | 'update' | 'delete'
  readonly table: string
  readonly stamp: Value | null
  readonly ttl: Value | null
  readonly set: readonly { readonly column: string; readonly value: Value }[]
  readonly where: readonly Condition[]
  /** null: it is not conditional. */
  readonly given: readonly Condition[] | 'exists' | 'not exists' | null
}

const TOKEN = /\s*('(?:[^']|'')*'|-?\d+|[A-Za-z_][\w.]*|<=|>=|[(),=<>?*])/gy

class Reader {
  readonly #text: string
  readonly #tokens: readonly string[]
  #at = 0
  #binds = 0

  constructor(text: string) {
    this.#text = text.replaceAll(/\s+/g, ' ').trim()
    const found = [...this.#text.matchAll(TOKEN)]
    this.#tokens = found.map(([, token]) => token!)
    const read = found.reduce((sum, [all]) => sum + all.length, 0)
    if (read !== this.#text.length) this.#fail()
  }

  /** Goes over these words where they come next. */
  takes(...words: readonly string[]): boolean {
    const isNext = words.every((word, i) => {
      return this.#tokens[this.#at + i]?.toUpperCase() === word
    })
    if (isNext) this.#at += words.length
    return isNext
  }

  expect(...words: readonly string[]): void {
    if (!this.takes(...words)) this.#fail()
  }

  word(): string {
    const token = this.#tokens[this.#at++]
    return token !== undefined && /^[A-Za-z_]/.test(token) ? token : this.#fail()
  }

  value(): Value {
    if (this.takes('?')) return { bind: this.#binds++ }
    for (const [word, literal] of [
      ['TRUE', true],
      ['FALSE', false],
      ['NULL', null],
    ] as const) {
      if (this.takes(word)) return { literal }
    }
    const token = this.#tokens[this.#at++] ?? ''
    if (token.startsWith("'")) return { literal: token.slice(1, -1).replaceAll("''", "'") }
    return /^-?\d+$/.test(token) ? { literal: Number(token) } : this.#fail()
  }

  operator(): Operator {
    const token = this.#tokens[this.#at++] ?? ''
    return /^[<>]?=$|^[<>]$/.test(token) ? (token as Operator) : this.#fail()
  }

  /** Things that are read one behind the other, with this between them. */
  list<T>(between: string, read: () => T): T[] {
    const all = [read()]
    while (this.takes(between)) all.push(read())
    return all
  }

  end(): void {
    if (this.#at < this.#tokens.length) this.#fail()
  }

  #fail(): never {
    throw new Error(`the twin of Cassandra doesn't know: ${this.#text}`)
  }
}

export function parse(text: string): Select | Write {
  const from = new Reader(text)
  const parsed = from.takes('SELECT')
    ? select(from)
    : from.takes('UPDATE')
      ? update(from)
      : from.takes('INSERT', 'INTO')
        ? insert(from)
        : removal(from)
  from.end()
  return parsed
}

function select(from: Reader): Select {
  const isDistinct = from.takes('DISTINCT')
  const columns = from.takes('*') ? [] : from.list(',', () => selected(from))
  from.expect('FROM')
  const table = from.word()
  let where: Condition[] = []
  let behind: Value[] | null = null
  if (from.takes('WHERE', 'TOKEN', '(')) behind = tokens(from)
  else if (from.takes('WHERE')) where = conditions(from)
  let isDescending = false
  if (from.takes('ORDER', 'BY')) {
    from.word()
    isDescending = from.takes('DESC')
  }
  const limit = from.takes('LIMIT') ? from.value() : null
  return { kind: 'select', table, columns, isDistinct, where, behind, isDescending, limit }
}

function selected(from: Reader): Selected {
  const word = from.word()
  let column = word
  let of: Selected['of'] = 'value'
  if (from.takes('(')) {
    column = from.word()
    of = word.toLowerCase() as 'ttl' | 'writetime'
    from.expect(')')
  }
  const name = from.takes('AS') ? from.word() : column
  return { column, of, name }
}

/** `a, b) > token(?, ?)`: the values. */
function tokens(from: Reader): Value[] {
  from.list(',', () => from.word())
  from.expect(')', '>', 'TOKEN', '(')
  const values = from.list(',', () => from.value())
  from.expect(')')
  return values
}

function conditions(from: Reader): Condition[] {
  return from.list('AND', () => {
    return { column: from.word(), operator: from.operator(), value: from.value() }
  })
}

function using(from: Reader): Pick<Write, 'stamp' | 'ttl'> {
  const found: { stamp: Value | null; ttl: Value | null } = { stamp: null, ttl: null }
  if (!from.takes('USING')) return found
  from.list('AND', () => {
    if (from.takes('TIMESTAMP')) found.stamp = from.value()
    else if (from.takes('TTL')) found.ttl = from.value()
  })
  return found
}

function update(from: Reader): Write {
  const table = from.word()
  const written = using(from)
  from.expect('SET')
  const set = from.list(',', () => {
    const column = from.word()
    from.expect('=')
    return { column, value: from.value() }
  })
  from.expect('WHERE')
  const where = conditions(from)
  const given = from.takes('IF') ? conditions(from) : null
  return { kind: 'update', table, ...written, set, where, given }
}

function insert(from: Reader): Write {
  const table = from.word()
  from.expect('(')
  const columns = from.list(',', () => from.word())
  from.expect(')', 'VALUES', '(')
  const values = from.list(',', () => from.value())
  from.expect(')')
  const set = columns.map((column, i) => ({ column, value: values[i]! }))
  const given = from.takes('IF', 'NOT', 'EXISTS') ? 'not exists' : null
  return { kind: 'insert', table, stamp: null, ttl: null, set, where: [], given }
}

function removal(from: Reader): Write {
  from.expect('DELETE', 'FROM')
  const table = from.word()
  const written = using(from)
  from.expect('WHERE')
  const where = conditions(from)
  const given = from.takes('IF', 'EXISTS') ? 'exists' : null
  return { kind: 'delete', table, ...written, set: [], where, given }
}
