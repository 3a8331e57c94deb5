// Members by position: which ones a kind of record has, declared beside it, instead of their names
// in every entry. Types declare them, entries are written by them. A shape is stored for good:
// members are only added at its end, never moved, renamed or taken away. A record that has not all
// of them says by a mask which ones are there, so an older record is read as it was; one with more
// than this version knows is refused. What has no position (an unknown member) goes along by its
// name. A kind that must change otherwise gets another number: the one that is declared last is
// written, all are read. Source: PROTOCOL 3.0.

import { assert } from '../errors.ts'
import type { ReadShape, ValueReader } from './value-reader.ts'
import { isThere, type ValueWriter, type WriteShape } from './value-writer.ts'
import { REST } from './values.ts'

/** Writes and reads the members of one kind of object by position. */
export type Shape = ReadShape & WriteShape

/** A record by the names of its members. */
interface NamedRecord {
  readonly t: string
  readonly [member: string]: unknown
}

/** A member by its name, or one whose value has a shape itself (or is a list of such). */
export type Member<Name extends string = string> = Name | readonly [name: Name, shape: Shape]

/** Bits of a mask, without the one for the rest. */
const MEMBERS_MAX = 30

type MembersOf<Record, Kind> = Record extends { readonly t: infer T }
  ? Kind extends T
    ? Exclude<keyof Record, 't'> & string
    : never
  : never

/** One kind of record by position. */
export interface KindShape<Kind extends string, Name extends string> {
  /** From 1, of this version of this kind alone, for ever. */
  readonly id: number
  readonly t: Kind
  readonly members: readonly Member<Name>[]
}

/** The kinds of a type; any record's first may name the commands of its message. */
export type KindShapes<R extends { readonly t: string }> = readonly {
  [Kind in R['t']]: KindShape<Kind, MembersOf<R, Kind> | 'commands'>
}[R['t']][]

/** The shapes of an actor type's records. */
export class RecordShapes {
  readonly #byKind = new Map<string, { readonly id: number; readonly shape: Shape }>()
  readonly #byId = new Map<number, Shape>()

  constructor(kinds: readonly KindShape<string, string>[]) {
    for (const { id, t, members } of kinds) {
      assert(id > 0 && !this.#byId.has(id), `the shape ${id} of "${t}" has a number of its own`)
      const shape = compile(members, { name: 't', value: t })
      this.#byId.set(id, shape)
      this.#byKind.set(t, { id, shape })
    }
  }

  write(to: ValueWriter, record: NamedRecord): void {
    const kind = this.#byKind.get(record.t)
    if (kind === undefined) return writeNamed(to, record)
    to.count(kind.id)
    to.shaped(kind.shape, record)
  }

  /** Throws for a record of a shape that this version doesn't know. */
  read(from: ValueReader): NamedRecord {
    const id = from.count()
    if (id === NAMED) return from.named() as NamedRecord
    const shape = this.#byId.get(id)
    if (shape === undefined) throw newer(`a record of the shape ${id}`)
    return from.object(shape) as NamedRecord
  }
}

/** For types that declare no shapes: all their records go by names. */
export const NO_SHAPES = new RecordShapes([])

/** In place of a shape's number: the record is a map of its members by name. */
const NAMED = 0

function writeNamed(to: ValueWriter, record: NamedRecord): void {
  to.count(NAMED)
  to.value(record)
}

/** The shapes of the records R, each member checked against their types. */
export function recordShapes<R extends { readonly t: string }>(kinds: KindShapes<R>): RecordShapes {
  return new RecordShapes(kinds)
}

/** The shape of an object inside a record. `apart`: a member that is written otherwise. */
export function shapeOf<T>(members: readonly Member<MemberOf<T>>[], apart?: MemberOf<T>): Shape {
  return compile(members, apart === undefined ? null : { name: apart })
}

/** A member of any of the types of a union. */
type MemberOf<T> = (T extends unknown ? keyof T : never) & string

/** A member that has no position: it is written otherwise, or the same in all. */
interface Apart {
  readonly name: string
  readonly value?: string
}

const PLAIN_NAME = /^[a-z][a-zA-Z0-9]*$/

type Write = (
  shapes: readonly (Shape | null)[],
  rest: (value: object) => object | null,
) => Shape['write']
type Read = (shapes: readonly (Shape | null)[], newer: (what: string) => Error) => Shape['read']

/**
 * Code for exactly these members: V8 then knows each object's layout, where a loop over names looks
 * every member up.
 */
function compile(members: readonly Member[], apart: Apart | null): Shape {
  assert(members.length <= MEMBERS_MAX, `a shape has at most ${MEMBERS_MAX} members`)
  const names = members.map((member) => (typeof member === 'string' ? member : member[0]))
  const shapes = members.map((member) => (typeof member === 'string' ? null : member[1]))
  for (const name of names) {
    // One that every object has would be taken for a member of each.
    assert(PLAIN_NAME.test(name) && !(name in Object.prototype), `"${name}" is a plain name`)
  }
  const known = new Set(apart === null ? names : [...names, apart.name])
  const all = names.length + (apart === null ? 0 : 1)
  assert(known.size === all, 'a member has one position')
  const restOf = (value: object): object | null => {
    const more = Object.entries(value).filter(([name, it]) => !known.has(name) && isThere(it))
    return more.length === 0 ? null : Object.fromEntries(more)
  }
  // oxlint-disable-next-line typescript/no-implied-eval -- made of names that were looked at above
  const write = new Function('shapes', 'rest', writeSource(names, shapes, apart)) as Write
  // oxlint-disable-next-line typescript/no-implied-eval -- made of names that were looked at above
  const read = new Function('shapes', 'newer', readSource(names, shapes, apart)) as Read
  return { write: write(shapes, restOf), read: read(shapes, newer) }
}

/** Members beyond an object's shape are rare: they are counted first. */
function writeSource(
  names: readonly string[],
  shapes: readonly (Shape | null)[],
  apart: Apart | null,
): string {
  const all = names.map((name, i) => `${name}: v${i}`).join(', ')
  const look = names.map((_, i) => `if (v${i} !== undefined) { mask |= ${bit(i)}; count++ }`)
  const put = names.map((_, i) => {
    const call = shapes[i] === null ? `to.value(v${i})` : `to.shaped(shapes[${i}], v${i})`
    return `if (v${i} !== undefined) ${call}`
  })
  return `return (to, value) => {
    const { ${all} } = value
    let mask = 0, count = ${apart === null ? 0 : 1}, more = null
    ${look.join('\n')}
    for (const _ in value) count--
    if (count !== 0 && (more = rest(value)) !== null) mask |= ${REST}
    to.members(mask)
    ${put.join('\n')}
    if (more !== null) to.value(more)
  }`
}

function readSource(
  names: readonly string[],
  shapes: readonly (Shape | null)[],
  apart: Apart | null,
): string {
  const take = names.map((name, i) => {
    const call = shapes[i] === null ? 'from.value()' : `from.shaped(shapes[${i}])`
    return `if ((mask & ${bit(i)}) !== 0) value.${name} = ${call}`
  })
  const fixed = apart?.value === undefined ? '' : `${apart.name}: ${JSON.stringify(apart.value)}`
  return `return (from) => {
    const mask = from.members()
    if (mask >= ${bit(names.length)}) throw newer('members')
    const value = {${fixed}}
    ${take.join('\n')}
    if ((mask & ${REST}) !== 0) from.rest(value)
    return value
  }`
}

const bit = (i: number): number => 2 ** (i + 1)

function newer(what: string): Error {
  return new Error(`${what} that this version doesn't know: written by a newer Kontor`)
}
