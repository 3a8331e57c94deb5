// A number by which is told whether what phrases find a node by has changed, so that a change of
// anything else (a state, a total) costs its search document nothing. Source: CONTRACT 1.4.2.

import { type Doc, readPath } from '../../protocol/graph/evaluate.ts'
import type { FieldPath } from '../../protocol/graph/plan.ts'

/** 47 bits: two changes in so many would be taken for none. SQLite keeps them in six bytes. */
export function digestOf(doc: Doc, paths: readonly FieldPath[]): number {
  let high = 0x12345678
  let low = 0x2545f491
  for (const path of paths) {
    const value = path.length === 1 ? doc[path[0]!] : readPath(doc, path)
    const text =
      typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value)
    for (let i = 0; i < text.length; i++) {
      const unit = text.charCodeAt(i)
      high = Math.imul(high ^ unit, 0x9e3779b1)
      low = Math.imul(low ^ unit, 0x5f356495)
    }
    // `true` and "true" are found by other words.
    if (value !== undefined && typeof value !== 'string')
      high = Math.imul(high ^ 0x20000, 0x27d4eb2f)
    // Between two values, so that none goes on in the next.
    high = Math.imul(high ^ (high >>> 15) ^ 0x10000, 0x85ebca6b)
    low = Math.imul(low ^ (low >>> 13) ^ 0x10000, 0xc2b2ae35)
  }
  high ^= high >>> 16
  low ^= low >>> 15
  return (high & 0x7fff) * 2 ** 32 + (low >>> 0)
}
