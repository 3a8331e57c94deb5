// Why an operation was not run. Apart from who refuses it, so that it is known without the library.

import type { GraphQLError } from 'graphql'

export class Refused extends Error {
  /** Of all the errors, and of protocol/errors.ts. */
  readonly code: string
  readonly errors: readonly GraphQLError[]

  constructor(code: string, errors: readonly GraphQLError[]) {
    super(errors[0]!.message)
    this.code = code
    this.errors = errors
  }
}
