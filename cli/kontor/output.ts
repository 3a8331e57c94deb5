// Results: a table for people, JSON and YAML for programs. What comes from a node is somebody's
// text: in a table it moves no cursor and has no colours of its own.

import { stringify } from 'yaml'
import type { World } from './world.ts'

export const FORMATS = ['table', 'json', 'yaml'] as const
export type Format = (typeof FORMATS)[number]

type Row = Readonly<Record<string, unknown>>

const BOLD = '\x1b[1m'
const PLAIN = '\x1b[0m'
const GAP = '  '

export class Output {
  readonly #world: World
  readonly #format: Format

  constructor(world: World, format: Format) {
    this.#world = world
    this.#format = format
  }

  /** `whole` is what a program gets. */
  list<T>(
    rows: readonly T[],
    columns: readonly (readonly [string, (row: T) => unknown])[],
    whole: unknown,
  ): void {
    if (this.#format !== 'table') this.#data(whole)
    else if (rows.length === 0) this.#world.say('None.\n')
    else this.#world.out(this.#table(columns, rows))
  }

  /** One thing: a line for each of its members. */
  one(value: unknown): void {
    if (this.#format !== 'table') return this.#data(value)
    const lines = [...flat(value as Row, '')]
    const width = Math.max(0, ...lines.map(([name]) => name.length))
    for (const [name, text] of lines) {
      this.#world.out(`${this.#bold(name.padEnd(width))}${GAP}${text}\n`)
    }
  }

  /** Nothing but a remark for people. */
  done(text: string): void {
    this.#world.say(`${text}\n`)
  }

  #data(value: unknown): void {
    const text = this.#format === 'json' ? `${JSON.stringify(value, null, 2)}\n` : stringify(value)
    this.#world.out(text)
  }

  #table<T>(
    columns: readonly (readonly [string, (row: T) => unknown])[],
    rows: readonly T[],
  ): string {
    const cells = rows.map((row) => columns.map(([, shown]) => cell(shown(row))))
    const widths = columns.map(([heading], i) => {
      return Math.max(heading.length, ...cells.map((line) => line[i]!.length))
    })
    const line = (texts: readonly string[]): string =>
      texts.map((text, i) => (i === texts.length - 1 ? text : text.padEnd(widths[i]!))).join(GAP)
    const heading = this.#bold(line(columns.map(([name]) => name)))
    return [heading, ...cells.map(line)].map((text) => `${text.trimEnd()}\n`).join('')
  }

  #bold(text: string): string {
    const { outIsTerminal, env } = this.#world
    return outIsTerminal && !env['NO_COLOR'] ? `${BOLD}${text}${PLAIN}` : text
  }
}

/** One line of text that is text and nothing else. */
export function cell(value: unknown): string {
  if (value === null || value === undefined) return '-'
  const text = Array.isArray(value) ? value.map(cell).join(', ') : stringOf(value)
  return text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, '?')
}

function stringOf(value: unknown): string {
  if (typeof value === 'string') return value
  // An entry of a role, as it is written in scopes.
  const { resource, permission } = Object(value) as { resource?: unknown; permission?: unknown }
  const isEntry = typeof resource === 'string' && typeof permission === 'string'
  return isEntry ? `${resource}:${permission}` : JSON.stringify(value)
}

function* flat(value: Row, prefix: string): Generator<readonly [string, string]> {
  for (const [name, member] of Object.entries(value)) {
    const path = cell(`${prefix}${name}`)
    const isPlain = typeof member === 'object' && member !== null && !Array.isArray(member)
    if (isPlain) yield* flat(member as Row, `${path}.`)
    else yield [path, cell(member)]
  }
}
