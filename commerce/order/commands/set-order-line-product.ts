// setOrderLineProduct: what a line sells; null clears description and image.
// Source: commerce/README.md "Commands".

import { Type } from '@sinclair/typebox'
import { command } from '../command.ts'
import { commandMembers, Id, Key, nullable, Text } from '../shapes.ts'
import { changeLine } from './change-line.ts'

const schema = commandMembers({
  orderLineId: Id,
  productNumber: Type.Optional(Key),
  description: Type.Optional(nullable(Text)),
  image: Type.Optional(nullable(Text)),
})

export const setOrderLineProduct = command('setOrderLineProduct', schema, (draft, wanted) => {
  const { productNumber, description, image } = wanted
  changeLine(draft, draft.undeliveredLine(wanted.orderLineId), {
    productNumber,
    description,
    image,
  })
})
