// createStaticOrderDiscount: a discount on everything in the order. Source: COMMERCE 1, 5 row 39.

import { command } from '../command.ts'
import { commandMembers } from '../shapes.ts'
import { createDiscount, discountProperties } from './create-discount.ts'

export const createStaticOrderDiscount = command(
  'createStaticOrderDiscount',
  commandMembers(discountProperties),
  (draft, given) => createDiscount(draft, { scope: 'order' }, given),
)
