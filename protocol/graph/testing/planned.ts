// Plans and refusals of navigations, for tests of the planner.

import { LIMITS } from '../../../config/limits.ts'
import { SCHEMA } from '../../../storage/conformance/search-nodes.ts'
import { RequestError } from '../../errors.ts'
import { FULL_ACCESS, type GraphAccess } from '../planning.ts'
import { planNavigations } from '../navigation.ts'
import type { Step } from '../plan.ts'

export const OPTIONS = { nowMs: Date.parse('2026-01-31T00:00:00.000Z'), limits: LIMITS.graph }

export const plan = (body: unknown, access = FULL_ACCESS): readonly Step[] =>
  planNavigations(body, SCHEMA, access, OPTIONS).steps

export interface Refusal {
  readonly code: string
  readonly message: string
  readonly details?: Readonly<Record<string, unknown>>
}

export function refused(run: () => unknown): Refusal {
  try {
    run()
  } catch (error) {
    if (error instanceof RequestError) return error.errors[0]!
    throw error
  }
  return { code: 'none', message: 'was planned' }
}

export const refusal = (body: unknown, access?: GraphAccess): Refusal =>
  refused(() => plan(body, access))
export const filtered = (filter: string): unknown => [{ edge: 'libraries', filter }]
