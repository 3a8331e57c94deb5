// Cursors: where a page of a base set ended, as a text that its caller hands back for the next. It
// holds the last node's place in the order, not a number of nodes: whatever came or went between,
// what did not change is neither shown twice nor left out. It is sealed, for a caller need not be
// allowed to see all that makes the order, and of one query. Source: CONTRACT 1.4 "Cursors".

import { RequestError } from '../errors.ts'
import { compareDocs, compareIds, compareRanks, readSortValue, type Doc } from './evaluate.ts'
import type { CursorPlace, Scalar, SortKey, Step } from './plan.ts'

/** Bounds of cursors; part of LIMITS.graph. */
export const CURSOR_LIMITS = {
  /** A cursor as it is handed out. */
  cursorCharsMax: 8_192,
} as const

/** A node that was found. */
export interface Row {
  readonly actorId: string
  readonly id: string
  readonly doc: Doc
  readonly rank?: number
}

/** Makes cursors that nobody else can make or read. */
export interface CursorSeal {
  /** `of`: what the cursor is tied to. */
  seal(text: string, of: string): string
  /** Null: it was not made here, or is of something else. */
  open(cursor: string, of: string): string | null
}

/** For who hands out none. */
export const NO_CURSORS: CursorSeal = {
  seal: () => {
    throw new RequestError('INVALID_QUERY', 'there are no cursors here')
  },
  open: () => null,
}

/** The place that a sealed text stands for. */
export function placeOfText(text: string): CursorPlace {
  const [id, actorId, ...values] = JSON.parse(text) as [string, string, ...(Scalar | null)[]]
  return { id, actorId, values }
}

/** Adds the cursors that a step of a base set asks for to the answer. Throws INVALID_QUERY. */
export function addCursors(
  answer: Record<string, unknown>,
  step: Step,
  { rows, more }: { readonly rows: readonly Row[]; readonly more: boolean },
  seal: CursorSeal,
): void {
  const { cursor, name, returns } = step
  if (cursor === undefined || returns === 'count') return
  if (cursor.each) answer[`${name}Cursors`] = rows.map((row) => cursorOf(step, row, seal))
  else if (more) answer[`${name}Cursor`] = cursorOf(step, rows.at(-1)!, seal)
}

function cursorOf({ orderBy, cursor, name, phrase }: Step, row: Row, seal: CursorSeal): string {
  const values =
    phrase === null ? orderBy.map((key) => readSortValue(row.doc, key) ?? null) : [row.rank!]
  const sealed = seal.seal(JSON.stringify([row.id, row.actorId, ...values]), cursor!.of)
  if (sealed.length <= CURSOR_LIMITS.cursorCharsMax) return sealed
  throw new RequestError(
    'INVALID_QUERY',
    `A cursor of ${name} would have more than ${CURSOR_LIMITS.cursorCharsMax} characters: ` +
      'order by fields with shorter values, or ask for no cursor',
  )
}

/** True for nodes behind a place in a step's order, ties by id. */
export function behindTest({ orderBy, phrase }: Step, place: CursorPlace): (row: Row) => boolean {
  const at: Row = {
    ...place,
    doc: docAt(orderBy, place),
    ...(phrase !== null && { rank: rankAt(place) }),
  }
  return (row) =>
    (compareRanks(row, at) || compareDocs(orderBy, row.doc, at.doc) || compareIds(row, at)) > 0
}

/** The rank of the node that a place of hits of a phrase was made of. */
export function rankAt({ values }: CursorPlace): number {
  return Number(values[0])
}

/** A document that stands where the place is. */
export function docAt(keys: readonly SortKey[], { values }: CursorPlace): Doc {
  const doc: Record<string, unknown> = {}
  for (const [i, { path }] of keys.entries()) {
    const value = values[i]
    if (value === null || value === undefined) continue
    let into = doc
    for (const member of path.slice(0, -1)) {
      into = (into[member] ??= {}) as Record<string, unknown>
    }
    into[path.at(-1)!] = value
  }
  return doc
}
