// Shape checks with messages a person can act on: TypeBox schemas compiled by ajv. It stands
// between every place where JSON comes in and the code that trusts its shape.

import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
import formats from 'ajv-formats'
import type { TSchema } from '@sinclair/typebox'

const ajv = new Ajv({ allErrors: false, strict: true, allowUnionTypes: true, verbose: false })
// The package's default export is typed for CommonJS callers.
;(formats as unknown as (a: Ajv, names: string[]) => void)(ajv, ['email', 'date', 'uri'])

/** What is wrong with a value, or null. `member` is a dotted path from the checked value. */
export interface ShapeError {
  readonly member: string
  readonly message: string
}

export type ShapeCheck = (value: unknown) => ShapeError | null

export function compileShape(schema: TSchema): ShapeCheck {
  const validate: ValidateFunction = ajv.compile(schema)
  return (value) => (validate(value) ? null : explain(validate.errors![0]!))
}

function explain(error: ErrorObject): ShapeError {
  const path = error.instancePath.slice(1).replaceAll('/', '.').replaceAll('~1', '/')
  const params = error.params as Record<string, unknown>
  const at = (name: string): string => (path === '' ? name : `${path}.${name}`)
  switch (error.keyword) {
    case 'required':
      return { member: at(String(params['missingProperty'])), message: 'is missing' }
    case 'additionalProperties':
      return { member: at(String(params['additionalProperty'])), message: 'is not known here' }
    case 'enum':
      return {
        member: path,
        message: `must be one of ${(params['allowedValues'] as unknown[]).join(', ')}`,
      }
    case 'const':
      return { member: path, message: `must be ${JSON.stringify(params['allowedValue'])}` }
    default:
      return { member: path, message: error.message ?? 'is not valid' }
  }
}
