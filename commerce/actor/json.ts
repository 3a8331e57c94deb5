// Arbitrary JSON inside commands (`dynamic`, `fields`), and its bounds: depth, size, and keys that
// would reach an object's prototype. Source: CONTRACT 0 (bodies), commerce/README.md "Values".

import { LIMITS } from '../../config/limits.ts'

export type Json = string | number | boolean | null | readonly Json[] | JsonObject
export interface JsonObject {
  readonly [key: string]: Json
}

/** What is wrong with a JSON value, or null. */
export function jsonProblem(value: unknown): string | null {
  const budget = { chars: LIMITS.commerce.dynamicCharsMax }
  return problemIn(value, LIMITS.protocol.jsonDepthMax, budget)
}

function problemIn(value: unknown, depth: number, budget: { chars: number }): string | null {
  switch (typeof value) {
    case 'string':
      budget.chars -= value.length + 2
      break
    case 'number':
      if (!Number.isFinite(value)) return 'holds a number out of range'
      budget.chars -= 8
      break
    case 'boolean':
      budget.chars -= 5
      break
    case 'object':
      return value === null ? null : problemInside(value, depth, budget)
    default:
      return `holds a ${typeof value}, which JSON has not`
  }
  return budget.chars < 0 ? `is longer than ${LIMITS.commerce.dynamicCharsMax} characters` : null
}

function problemInside(value: object, depth: number, budget: { chars: number }): string | null {
  if (depth === 0) return `is nested deeper than ${LIMITS.protocol.jsonDepthMax} levels`
  budget.chars -= 2
  if (Array.isArray(value)) {
    for (const item of value) {
      budget.chars -= 1
      const problem = problemIn(item, depth - 1, budget)
      if (problem !== null) return problem
    }
    return budget.chars < 0 ? `is longer than ${LIMITS.commerce.dynamicCharsMax} characters` : null
  }
  for (const key of Object.keys(value)) {
    if (key === '__proto__' || key === 'constructor' || key === 'prototype') {
      return `has a member ${key}, which is not allowed`
    }
    budget.chars -= key.length + 4
    const problem = problemIn((value as Record<string, unknown>)[key], depth - 1, budget)
    if (problem !== null) return problem
  }
  return budget.chars < 0 ? `is longer than ${LIMITS.commerce.dynamicCharsMax} characters` : null
}
