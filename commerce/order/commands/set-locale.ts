// setLocale: the language in which the customer is spoken to, as a BCP 47 tag; null clears.
// Source: commerce/README.md "Commands".

import { Type } from '@sinclair/typebox'
import { LIMITS } from '../../../config/limits.ts'
import { command } from '../command.ts'
import { difference } from '../difference.ts'
import { invalid } from '../refuse.ts'
import { commandMembers, nullable } from '../shapes.ts'

const schema = commandMembers({
  locale: nullable(Type.String({ minLength: 1, maxLength: LIMITS.tagCharsMax })),
})

export const setLocale = command('setLocale', schema, (draft, { locale }) => {
  if (locale !== null && !/^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$/.test(locale)) {
    invalid(`${JSON.stringify(locale)} is not a language tag such as en or sv-SE`, 'locale')
  }
  const changed = difference({ locale: draft.state.locale }, { locale })
  if (changed !== null) draft.commit({ t: 'orderChanged', ...changed })
})
