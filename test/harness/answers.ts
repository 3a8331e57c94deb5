// What tests look at in an answer. A refusal is right when its status, its code and its words are.
// Source: CONTRACT 1.13.

import type { Test } from 'tap'
import { ERRORS } from '../../protocol/errors.ts'
import type { ErrorCode, ErrorItem } from '../../protocol/errors.ts'
import type { Answer } from './node-process.ts'

/** The answer of an actor. */
export interface ActorAnswer {
  readonly paths: readonly string[]
  readonly data: unknown
  readonly preview: boolean
  readonly results: readonly {
    readonly type: string
    readonly success: boolean
    readonly data?: unknown
    readonly errors?: readonly ErrorItem[]
  }[]
  readonly errors: readonly ErrorItem[]
}

/** The part of a test that checks need. */
export interface Asserting {
  equal: Test['equal']
  match: Test['match']
  fail: Test['fail']
}

/** Checks that an answer is this refusal, told in such words; returns its first error. */
export function refused(t: Asserting, answer: Answer, code: ErrorCode, words: RegExp): ErrorItem {
  const { errors, requestId } = bodyOf(answer)
  const [first] = errors ?? []
  const what = `${answer.status} ${answer.text.slice(0, 300)}`
  if (first === undefined) throw new Error(`no refusal: ${what}`)
  t.equal(first.code, code, what)
  t.equal(answer.status, ERRORS[code].status, what)
  t.match(first.message, words, what)
  t.equal(requestId, answer.headers['x-request-id'], 'the id of the request is in the body too')
  return first
}

/** Checks that an answer is good; returns its body as an actor's. */
export function done(t: Asserting, answer: Answer): ActorAnswer {
  if (answer.status !== 200) t.fail(`${answer.status} ${answer.text.slice(0, 500)}`)
  const body = answer.json<ActorAnswer>()
  if (body.errors.length > 0) t.fail(answer.text.slice(0, 500))
  return body
}

function bodyOf(answer: Answer): { errors?: ErrorItem[]; requestId?: string } {
  try {
    return answer.json()
  } catch {
    throw new Error(`no JSON: ${answer.status} ${answer.text.slice(0, 300)}`)
  }
}
