// Members of `dynamic` fields as terms: a key for the path, a text for the value that sorts like
// the value itself, so that one flattened field finds and sorts whatever callers put there.
// Documents (document.ts) and queries (query.ts) must say the same.
//
// Keys: a letter for what is there (S a scalar, A a list, O an object), then the path. Values:
// `b0`, `b1`, `n` and sixteen hex digits that rise with the number, `t` and the text; so booleans
// come before numbers and numbers before text. A list has the value `[`, and `e` before each
// element's.

import { createHash } from 'node:crypto'
import type { FieldPath, Scalar } from '../../protocol/graph/plan.ts'
import { TERM_CHARS_MAX } from './layout.ts'

export type Shape = 'S' | 'A' | 'O'

/** Longer keys are told by their hash. */
const KEY_CHARS_MAX = 512

/** What a list has to be one, whatever it holds. */
export const LIST = '['

/** Goes before the value of a list's element. */
export const ELEMENT = 'e'

export function keyOf(shape: Shape, path: FieldPath): string {
  // Dots would be read as levels, stars as patterns.
  const text = path
    .map((name) => encodeURIComponent(name).replaceAll('.', '%2E').replaceAll('*', '%2A'))
    .join('/')
  if (text.length <= KEY_CHARS_MAX) return shape + text
  return `${shape}#${createHash('sha256').update(text).digest('hex')}`
}

/** As much of a text as a term may hold. */
export function cut(text: string): string {
  if (text.length <= TERM_CHARS_MAX) return text
  const last = text.charCodeAt(TERM_CHARS_MAX - 1)
  // Never half a character.
  return text.slice(0, last >= 0xd800 && last < 0xdc00 ? TERM_CHARS_MAX - 1 : TERM_CHARS_MAX)
}

export function valueOf(value: Scalar): string {
  if (typeof value === 'boolean') return value ? 'b1' : 'b0'
  return typeof value === 'number' ? `n${sortableNumber(value)}` : `t${cut(value)}`
}

const bytes = new DataView(new ArrayBuffer(8))

/** Hex digits that sort as numbers do. */
function sortableNumber(value: number): string {
  // -0 is the same number as 0.
  bytes.setFloat64(0, value + 0)
  const high = bytes.getUint32(0)
  const low = bytes.getUint32(4)
  const isNegative = high >>> 31 === 1
  const flipped = isNegative ? [~high >>> 0, ~low >>> 0] : [(high | 0x8000_0000) >>> 0, low]
  return flipped.map((half) => half.toString(16).padStart(8, '0')).join('')
}

/** Adds the terms of a value and of all that is below it. */
export function addMembers(
  into: Record<string, string | string[]>,
  path: FieldPath,
  value: unknown,
): void {
  switch (typeof value) {
    case 'string':
    case 'number':
    case 'boolean':
      into[keyOf('S', path)] = valueOf(value)
      return
    case 'object':
      break
    default:
      return
  }
  if (value === null) return
  if (Array.isArray(value)) {
    const terms = new Set([LIST])
    for (const element of value as unknown[]) {
      if (isScalar(element)) terms.add(ELEMENT + valueOf(element))
    }
    into[keyOf('A', path)] = [...terms]
    return
  }
  into[keyOf('O', path)] = 'o'
  for (const [name, member] of Object.entries(value)) addMembers(into, [...path, name], member)
}

function isScalar(value: unknown): value is Scalar {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
}
