// Bodies that are refused by their bytes, size, coding or type, before any JSON is read.

import { gzipSync } from 'node:zlib'
import type { ErrorCode } from '../../protocol/errors.ts'
import type { RuntimeCall } from '../harness/node-process.ts'
import { create } from '../harness/orders.ts'

/** What is asked, the refusal's code and words of its message. */
export type Case = [what: string, path: string, ask: RuntimeCall, code: ErrorCode, words: RegExp]

export const raw = (text: string | Buffer, headers: Record<string, string> = {}): RuntimeCall => ({
  method: 'POST',
  raw: text,
  headers,
})
export const text = (value: unknown): string => JSON.stringify(value)

/** Bodies that are refused wherever they are sent. */
export const UNREAD_BODIES: [what: string, ask: RuntimeCall, code: ErrorCode, words: RegExp][] = [
  [
    'invalid UTF-8',
    raw(Buffer.from([0x5b, 0x22, 0xff, 0xfe, 0x22, 0x5d])),
    'MALFORMED_REQUEST',
    /UTF-8.*2|position 2/,
  ],
  [
    'an overlong slash',
    raw(Buffer.from([0x5b, 0x22, 0xc0, 0xaf, 0x22, 0x5d])),
    'MALFORMED_REQUEST',
    /UTF-8/,
  ],
  [
    'a surrogate in UTF-8',
    raw(Buffer.from([0x5b, 0x22, 0xed, 0xa0, 0x80, 0x22, 0x5d])),
    'MALFORMED_REQUEST',
    /UTF-8/,
  ],
  ['UTF-16', raw(Buffer.from('[]', 'utf16le')), 'MALFORMED_REQUEST', /U\+0000|column 2/],
  ['no gzip', raw('[]', { 'Content-Encoding': 'gzip' }), 'MALFORMED_REQUEST', /not valid gzip/],
  [
    'gzip cut short',
    raw(gzipSync(text([create()])).subarray(0, 30), { 'Content-Encoding': 'gzip' }),
    'MALFORMED_REQUEST',
    /not valid gzip/,
  ],
  [
    'a gzip bomb',
    raw(gzipSync(Buffer.alloc(200 * 1024 * 1024)), { 'Content-Encoding': 'gzip' }),
    'TOO_LARGE',
    /unpacked body is larger than 10485760/,
  ],
  [
    'an unknown coding',
    raw('[]', { 'Content-Encoding': 'br' }),
    'UNSUPPORTED_MEDIA_TYPE',
    /'br' is not known here; send gzip/,
  ],
  ['11 MiB', raw(text([{ type: 'x'.repeat(11 * 2 ** 20) }])), 'TOO_LARGE', /10485760/],
  [
    'text',
    raw('[]', { 'Content-Type': 'text/plain' }),
    'UNSUPPORTED_MEDIA_TYPE',
    /takes application\/json/,
  ],
  [
    'another charset',
    raw('[]', { 'Content-Type': 'application/json; charset=latin1' }),
    'UNSUPPORTED_MEDIA_TYPE',
    /'latin1' is not known here; send UTF-8/,
  ],
  [
    'a form',
    raw('a=1', { 'Content-Type': 'application/x-www-form-urlencoded' }),
    'UNSUPPORTED_MEDIA_TYPE',
    /application\/json/,
  ],
]
