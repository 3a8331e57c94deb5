// createStaticOrderDiscount: a discount on everything in the order. Source: commerce/README.md
// "Arithmetic", "Commands".

import { command } from '../command.ts'
import { commandMembers } from '../shapes.ts'
import { createDiscount, discountProperties } from './create-discount.ts'

export const createStaticOrderDiscount = command(
  'createStaticOrderDiscount',
  commandMembers(discountProperties),
  (draft, given) => createDiscount(draft, { scope: 'order' }, given),
)
