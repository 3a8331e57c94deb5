// Mutants of members: joining, beats, leases, who owns what. Source: PROTOCOL 3.3, 3.5.

import type { Mutant } from '../mutants.ts'

export const MEMBER_MUTANTS: readonly Mutant[] = []
