// What the log says of an error. Drivers hang onto their errors what they were doing: whole
// commands, statements and requests with passwords and callers' data in them. So an error is told
// by what is known to be harmless, and nothing else.

import { LIMITS } from '../../config/limits.ts'

/** Members that name a failure and its place. */
const TOLD = [
  'code',
  'errno',
  'syscall',
  'address',
  'port',
  'path',
  'statusCode',
  'status',
] as const

export interface ErrorFields {
  readonly type: string
  readonly message: string
  readonly stack?: string
  readonly cause?: ErrorFields
  /** Of an error that stands for several. */
  readonly errors?: readonly ErrorFields[]
  readonly [member: string]: unknown
}

/** An error as a line of the log shows it; anything else that was thrown, as text. */
export function errorFields(error: unknown): ErrorFields {
  return fieldsOf(error, LIMITS.node.logCausesMax)
}

function fieldsOf(error: unknown, left: number): ErrorFields {
  if (!(error instanceof Error)) return { type: typeof error, message: harmless(plain(error)) }
  const fields: Record<string, unknown> = {
    type: error.constructor.name,
    message: harmless(error.message),
  }
  if (error.stack !== undefined) fields['stack'] = harmless(error.stack)
  const members = error as unknown as Record<string, unknown>
  for (const name of TOLD) {
    const value = members[name]
    if (typeof value === 'number') fields[name] = value
    else if (typeof value === 'string') fields[name] = harmless(value)
  }
  if (left > 0) {
    if (error.cause !== undefined) fields['cause'] = fieldsOf(error.cause, left - 1)
    const several = severalOf(members)
    if (several.length > 0) {
      fields['errors'] = several
        .slice(0, LIMITS.node.logCausesMax)
        .map((one) => fieldsOf(one, left - 1))
    }
  }
  return fields as ErrorFields
}

/** Of an AggregateError, and of Cassandra's error for all hosts: by host. */
function severalOf({ errors, innerErrors }: Record<string, unknown>): readonly unknown[] {
  if (Array.isArray(errors)) return errors.filter((one) => one instanceof Error)
  if (typeof innerErrors !== 'object' || innerErrors === null) return []
  return Object.values(innerErrors).filter((one) => one instanceof Error)
}

function plain(thrown: unknown): string {
  return typeof thrown === 'string' ? thrown : (JSON.stringify(thrown) ?? String(thrown))
}

/**
 * Text without the two secrets that messages are known to repeat, and of bounded length:
 * credentials in an address, and what Redis was sent with a command that it doesn't know.
 */
export function harmless(text: string): string {
  const cut = text.slice(0, LIMITS.node.logTextCharsMax)
  return cut
    .replaceAll(/\/\/[^/\s@]*@/g, '//***@')
    .replaceAll(/with args beginning with:.*/g, 'with args ***')
}
