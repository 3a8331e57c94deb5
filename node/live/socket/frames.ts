// The frames that clients send, as a table: their type, their shape, who takes them. A frame is a
// JSON object with a `type`; a `requestId` comes back with what answers it. Source: CONTRACT 1.10.

import { Type } from '@sinclair/typebox'
import type { Static, TObject, TProperties } from '@sinclair/typebox'
import { LIMITS } from '../../../config/limits.ts'
import { RequestError } from '../../../protocol/errors.ts'
import { compileShape } from '../../../protocol/json/validation.ts'
import type { ShapeCheck } from '../../../protocol/json/validation.ts'
import type { CallerAccess } from './caller-access.ts'

const REQUEST_ID = Type.Optional(Type.String({ maxLength: LIMITS.live.requestIdCharsMax }))

/** A connection whose caller is known, as handlers of frames see it. */
export interface Connection {
  /** Number of the connection in this process. */
  readonly id: number
  readonly access: CallerAccess
  /** Bytes that the client has not taken yet. */
  readonly bufferedBytes: number
  /** False: it is closed, or was just closed because the client doesn't read. */
  send(frame: object): boolean
  /** A frame that is JSON already: one text for many connections. */
  sendText(text: string): boolean
  /** Answers a frame, or tells of subscriptions (`ids`), that it can't be. */
  sendError(
    error: unknown,
    about?: { readonly requestId?: string; readonly [member: string]: unknown },
  ): void
  /** Runs once, when it is closed, for whatever reason. */
  onClose(run: () => void): void
  /** Runs each time the client has taken all that was sent. */
  onDrained(run: () => void): void
}

/** One row: a type of frame and what is done with it. */
export interface FrameType {
  readonly type: string
  readonly check: ShapeCheck
  /**
   * Takes a frame of the right shape from a caller who is known. A RequestError that it throws, or
   * rejects with, is answered as an `error` frame with the frame's `requestId`.
   */
  readonly handle: (connection: Connection, frame: never) => void | Promise<void>
}

/** A row from the members of its frame, beside `type` and `requestId`. */
export function frameType<T extends TProperties>(
  type: string,
  members: T,
  handle: (
    connection: Connection,
    frame: Static<TObject<T>> & { readonly requestId?: string },
  ) => void | Promise<void>,
): FrameType {
  const schema = Type.Object(
    { type: Type.Literal(type), requestId: REQUEST_ID, ...members },
    { additionalProperties: false },
  )
  return { type, check: compileShape(schema), handle }
}

export interface Frame {
  readonly type: string
  readonly requestId?: string
  readonly [member: string]: unknown
}

/** The frame in a text, its shape still unknown; a RequestError is returned. */
export function readFrame(text: string): Frame | RequestError {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return malformed('a frame is JSON text')
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return malformed('a frame is a JSON object with a `type`')
  }
  const { type } = value as Frame
  return typeof type === 'string' ? (value as Frame) : malformed('a frame has a text as its `type`')
}

/** The id to answer with, if the frame has one. */
export function requestIdOf({ requestId }: Frame): string | undefined {
  const isOne = typeof requestId === 'string' && requestId.length <= LIMITS.live.requestIdCharsMax
  return isOne ? requestId : undefined
}

export function malformed(message: string): RequestError {
  return new RequestError('MALFORMED_REQUEST', message)
}
