// Answers of actors as JSON text, for single requests and for lines of bulk. Put together by hand:
// the parts are few and known, and `data`, which may be anything, is written once and used twice.
// Source: CONTRACT 1.3.

import type { ErrorItem } from '../../protocol/errors.ts'
import { statusOf } from '../../protocol/errors.ts'
import type { MessageResult } from '../../protocol/message.ts'
import type { ActorType } from './actor-type.ts'

/** What became of a request, in request order. */
export interface ActorAnswer {
  readonly actorId: string | null
  /** Natural keys, first the one shown in `paths`. */
  readonly keys: readonly string[]
  readonly results: readonly MessageResult[]
}

/** 200 when anything succeeded, else the status of the first error (CONTRACT 1.3). */
export function statusOfResults(results: readonly MessageResult[]): number {
  let first: string | null = null
  for (const result of results) {
    if (result.success) return 200
    first ??= result.errors[0]!.code
  }
  return first === null ? 200 : statusOf(first)
}

/** `"paths":…,"data":…,"results":…` without braces, and the joined errors, if any, as JSON. */
export interface AnswerParts {
  readonly members: string
  readonly errors: string | null
}

/** `between` stands between `data` and `results`: the member `preview`, or nothing. */
export function answerParts(type: ActorType, answer: ActorAnswer, between: string): AnswerParts {
  let results = ''
  let data = 'null'
  let errors: ErrorItem[] | null = null
  for (const result of answer.results) {
    if (results !== '') results += ','
    results += `{"type":${JSON.stringify(result.type)},"success":`
    if (result.success) {
      data = result.data === undefined ? 'null' : JSON.stringify(result.data)
      results += result.data === undefined ? 'true}' : `true,"data":${data}}`
    } else {
      data = 'null'
      results += `false,"errors":${JSON.stringify(result.errors)}}`
      errors ??= []
      errors.push(...result.errors)
    }
  }
  return {
    members: `"paths":${pathsJson(type, answer)},"data":${data},${between}"results":[${results}]`,
    errors: errors === null ? null : JSON.stringify(errors),
  }
}

/** UUIDs need no escaping, and percent-encoded keys none in JSON either. */
function pathsJson(type: ActorType, { actorId, keys }: ActorAnswer): string {
  if (actorId === null) return '[]'
  const shown = keys.length > 0 ? `,"${type.path}${encodeURIComponent(keys[0]!)}"` : ''
  return `["${type.path}${actorId}"${shown}]`
}

/** Body of the answer to a single request; failures of all messages carry the request's id too. */
export function answerJson(
  type: ActorType,
  answer: ActorAnswer,
  request: { readonly preview: boolean; readonly failedId: string | null },
): string {
  const { members, errors } = answerParts(type, answer, `"preview":${request.preview},`)
  const id = request.failedId === null ? '' : `,"requestId":${JSON.stringify(request.failedId)}`
  return `{${members},"errors":${errors ?? '[]'}${id}}`
}
