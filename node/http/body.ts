// Request bodies: gathered within their bounds, unpacked, and read as what the operation takes.
// Source: CONTRACT 0 "Bodies".

import { isUtf8 } from 'node:buffer'
import { RequestError } from '../../protocol/errors.ts'
import { parseJson } from '../../protocol/json/json.ts'
import { arrive, release } from './arriving.ts'
import type { Exchange } from './exchange.ts'
import type { Operation } from './operation.ts'

/** What the headers say about a body. A chunked one has no announced length. */
export interface BodyHeaders {
  /** Announced bytes; null: chunked. */
  readonly length: number | null
  readonly present: boolean
}

const NO_BODY: BodyHeaders = { length: 0, present: false }
const CHUNKED: BodyHeaders = { length: null, present: true }
/** Digits of the largest length that a double holds exactly. */
const LENGTH_DIGITS_MAX = 15

/**
 * The framing of a request. A refusal here must close the connection: where the body ends, and so
 * where the next request starts, is in doubt (RFC 9112 6.3, request smuggling).
 */
export function framingOf(x: Exchange): BodyHeaders | RequestError {
  // RFC 9112 3.2: which of two a proxy went by can't be told.
  if (x.headerCount('host') !== 1) return malformed('exactly one Host header must be sent')
  const coding = x.header('transfer-encoding')
  const length = x.header('content-length')
  if (coding !== '') {
    // RFC 9112 6.3: where the body ends is said twice, and may be said differently.
    if (length !== '') return malformed('both Transfer-Encoding and Content-Length were sent')
    if (coding.toLowerCase() === 'chunked') return CHUNKED
    return malformed(`Transfer-Encoding ${shown(coding)} is not known here; send 'chunked'`)
  }
  if (length === '') {
    return x.headerCount('content-length') === 0 ? NO_BODY : malformed('Content-Length is empty')
  }
  if (length.length > LENGTH_DIGITS_MAX || !/^[0-9]+$/.test(length)) {
    return malformed(`Content-Length ${shown(length)} is not one number of bytes`)
  }
  const bytes = Number(length)
  return bytes === 0 ? NO_BODY : { length: bytes, present: true }
}

function malformed(message: string, details?: Record<string, unknown>): RequestError {
  return new RequestError('MALFORMED_REQUEST', message, details)
}

function shown(text: string): string {
  return `'${text.length > 60 ? `${text.slice(0, 60)}...` : text}'`
}

/** Encoding of a body: as it is, or gzip where the operation takes it; others are refused. */
export function isPacked(x: Exchange): boolean | RequestError {
  const coding = x.header('content-encoding').toLowerCase()
  if (coding === '' || coding === 'identity') return false
  if (coding === 'gzip' || coding === 'x-gzip') {
    if (x.route!.door.packed) return true
    return new RequestError('UNSUPPORTED_MEDIA_TYPE', 'this operation takes the body as it is')
  }
  return new RequestError(
    'UNSUPPORTED_MEDIA_TYPE',
    `Content-Encoding ${shown(coding)} is not known here; send gzip, or the body as it is`,
  )
}

const MEDIA: Readonly<Record<'json' | 'form' | 'ndjson', string>> = {
  json: 'application/json',
  form: 'application/x-www-form-urlencoded',
  ndjson: 'application/x-ndjson',
}

/** True for a Content-Type that says newline-delimited JSON. */
export function isNdjson(contentType: string): boolean {
  return mediaOf(contentType).type === MEDIA.ndjson
}

/** Refuses a Content-Type that the operation doesn't take; one that wasn't sent is taken. */
export function mediaFault(
  contentType: string,
  type: 'json' | 'form' | 'ndjson',
): RequestError | null {
  if (contentType === MEDIA[type] || contentType === '') return null
  const media = mediaOf(contentType)
  const fits =
    media.type === MEDIA[type] ||
    (type === 'json' && media.type.startsWith('application/') && media.type.endsWith('+json'))
  if (!fits) {
    return new RequestError(
      'UNSUPPORTED_MEDIA_TYPE',
      `the body is ${shown(contentType)}; this operation takes ${MEDIA[type]}`,
    )
  }
  if (media.charset === '' || media.charset === 'utf-8' || media.charset === 'utf8') return null
  return new RequestError(
    'UNSUPPORTED_MEDIA_TYPE',
    `the charset ${shown(media.charset)} is not known here; send UTF-8`,
  )
}

function mediaOf(contentType: string): { readonly type: string; readonly charset: string } {
  const [type, ...parameters] = contentType.toLowerCase().split(';')
  let charset = ''
  for (const parameter of parameters) {
    const [name, value = ''] = parameter.split('=')
    if (name!.trim() === 'charset') charset = value.trim().replace(/^"(.*)"$/, '$1')
  }
  return { type: type!.trim(), charset }
}

function tooLarge(bytesMax: number): RequestError {
  return new RequestError('TOO_LARGE', `the body is larger than ${bytesMax} bytes`, { bytesMax })
}

/** Refuses a body that is too large. Its client may still be sending, so it is told to close. */
function failTooLarge(x: Exchange): void {
  const headers = x.closesAfter ? undefined : { Connection: 'close' }
  x.fail(tooLarge(x.route!.door.bytesMax), headers)
}

/**
 * Gathers the body and hands it over, in one piece, once. Never after a refusal or an abort.
 * `length` is what was announced, null when chunked.
 */
export function gatherBody(
  x: Exchange,
  length: number | null,
  take: (x: Exchange, bytes: Buffer) => void,
): void {
  const { core } = x
  const { bytesMax } = x.route!.door
  if (length !== null && length > bytesMax) {
    failTooLarge(x)
    return
  }
  let chunks: Buffer[] | null = null
  x.hold()
  x.res.onData((chunk, last) => {
    if (last) x.bodyPending = false
    if (x.done) return
    x.received += chunk.byteLength
    core.corked = true
    try {
      if (x.received > bytesMax) {
        release(x)
        failTooLarge(x)
        return
      }
      // The bytes are the socket's own and end with this call.
      const bytes = Buffer.from(new Uint8Array(chunk))
      if (last && chunks === null) {
        hand(x, length, () => take(x, bytes))
        return
      }
      chunks ??= []
      chunks.push(bytes)
      if (last) {
        const whole = Buffer.concat(chunks)
        // A packed one may wait for its turn: it is counted until it is unpacked.
        if (isPacked(x) !== true) release(x)
        hand(x, length, () => take(x, whole))
      } else {
        x.lastByteMs = core.clock.monotonicMs()
        if (!arrive(x, bytes.length)) refuseForSpace(x)
      }
    } catch (error) {
      x.fail(error)
    } finally {
      core.corked = false
    }
  })
}

/**
 * Hands a whole body on. Behind a chunked one uWebSockets.js goes on to read what it takes for the
 * next request, and ends the connection when it finds one before this is answered: so it is let.
 */
function hand(x: Exchange, length: number | null, take: () => void): void {
  if (length !== null) take()
  else setImmediate(() => x.attempt(take))
}

function refuseForSpace(x: Exchange): void {
  release(x)
  x.fail(
    new RequestError('TOO_BUSY', 'too many large bodies are arriving at once; nothing was done'),
  )
}

/** Reads the bytes as the operation's kind of body; null when it goes to the operation. */
export function readBody(
  x: Exchange,
  bytes: Buffer,
  declared: NonNullable<Operation['body']>,
): RequestError | null {
  const fault = faultOf(x, bytes, declared)
  if (!declared.handlesFaults) return fault
  x.bodyFault = fault
  return null
}

function faultOf(
  x: Exchange,
  bytes: Buffer,
  declared: NonNullable<Operation['body']>,
): RequestError | null {
  if (bytes.length === 0) {
    if (!declared.required) return null
    return malformed(`the body is missing; this operation takes ${MEDIA[declared.type]}`)
  }
  x.bodyBytes = bytes
  if (declared.type === 'form') return readForm(x, bytes)
  const value = parseJson(bytes, x.core.limits.jsonDepthMax)
  if (value instanceof RequestError) return value
  x.body = value
  const fault = x.route!.check?.(value) ?? null
  if (fault === null) return null
  const where = fault.member === '' ? 'the body' : fault.member
  const details = fault.member === '' ? undefined : { member: fault.member }
  return new RequestError(
    declared.code ?? 'MALFORMED_REQUEST',
    `${where} ${fault.message}`,
    details,
  )
}

function readForm(x: Exchange, bytes: Buffer): RequestError | null {
  if (!isUtf8(bytes)) return malformed('the form is not valid UTF-8')
  const form = new URLSearchParams(bytes.toString('utf8'))
  x.body = form
  const fault = x.route!.check?.(Object.fromEntries(form)) ?? null
  return fault === null ? null : malformed(`${fault.member} ${fault.message}`)
}
