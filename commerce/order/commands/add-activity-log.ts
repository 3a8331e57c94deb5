// addActivityLog: a line of human text in the order's activity log; {placeholders} of the template
// are filled from `dynamic`. Source: commerce/README.md "Commands", "Journal".

import { Type } from '@sinclair/typebox'
import { LIMITS } from '../../../config/limits.ts'
import { command } from '../command.ts'
import { invalid } from '../refuse.ts'
import { commandMembers, JsonMembers } from '../shapes.ts'
import type { Json, JsonObject } from '../state.ts'

export const addActivityLog = command(
  'addActivityLog',
  commandMembers({
    messageTemplate: Type.String({ minLength: 1, maxLength: LIMITS.textCharsMax }),
    dynamic: Type.Optional(JsonMembers),
  }),
  (draft, { messageTemplate, dynamic }) => {
    const message = fill(messageTemplate, dynamic ?? {})
    if (message.length > LIMITS.dynamicCharsMax) {
      invalid(`the filled message is longer than ${LIMITS.dynamicCharsMax} characters`, 'dynamic')
    }
    draft.copies(message.length)
    draft.commit({
      t: 'activityLogged',
      messageTemplate,
      message,
      ...(dynamic !== undefined && { dynamic }),
    })
  },
)

/** `{a.b}` becomes the text of dynamic.a.b; one that names nothing stays as it is. */
function fill(template: string, dynamic: JsonObject): string {
  let length = 0
  return template.replace(/\{([^{}]+)\}/g, (placeholder, path: string) => {
    if (length > LIMITS.dynamicCharsMax) return placeholder
    let value: Json | undefined = dynamic
    for (const key of path.trim().split('.')) {
      if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) {
        return placeholder
      }
      value = (value as JsonObject)[key]
    }
    const text = typeof value === 'string' ? value : JSON.stringify(value)
    length += text.length
    return text
  })
}
