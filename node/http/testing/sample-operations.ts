// Operations that answer in every way there is, for tests of the server; one waits for a latch.

import { Type } from '@sinclair/typebox'
import { RequestError, assert } from '../../../protocol/errors.ts'
import { operation } from './test-server.ts'

export const later = <T>(value: T): Promise<T> =>
  new Promise((resolve) => setImmediate(resolve, value))
const LONG = 'lorem ipsum '.repeat(2000)

export let latch: PromiseWithResolvers<void> = Promise.withResolvers()
export let finished = 0

/** Closes the latch for those that come from now on, and counts anew. */
export function closeLatch(): void {
  latch = Promise.withResolvers()
  finished = 0
}

export const operations = [
  operation('GET', '/things', () => ({ status: 200, body: { all: true } })),
  operation('GET', '/things/{id}', (r) => ({ status: 200, body: { id: r.params['id'] } })),
  operation('PUT', '/things/{id}', (r) => ({ status: 200, body: { id: r.params['id'] } })),
  operation('GET', '/files/{**path}', (r) => ({ status: 200, body: { path: r.params['path'] } })),
  operation('GET', '/echo', (r) => ({
    status: 200,
    body: {
      q: r.query.getAll('q'),
      header: r.header('x-one'),
      none: r.header('x-none'),
      requestId: r.requestId,
      budget: r.budgetMs > 0 && r.budgetMs <= 30_000,
    },
  })),
  operation('GET', '/who', (r) => ({ status: 200, body: { id: r.identity.id } }), {
    access: 'token',
  }),
  operation('GET', '/nobody', (r) => ({ status: 200, body: { id: r.identity.id } })),
  operation('GET', '/later', async () => later({ status: 200, body: 'later' })),
  operation('GET', '/nothing', () => ({ status: 204 })),
  operation('GET', '/empty', () => ({ status: 200 })),
  operation('GET', '/page', () => ({
    status: 200,
    headers: { 'Content-Type': 'text/html', 'Cache-Control': 'max-age=60', ETag: '"1"' },
    raw: '<p>é</p>',
  })),
  operation('GET', '/bytes', () => ({
    status: 201,
    headers: { 'Content-Type': 'image/png' },
    raw: Uint8Array.of(0, 255, 1),
  })),
  operation('GET', '/typed', () => ({ status: 200, body: { n: 1, secret: 'x' } }), {
    response: Type.Object({ n: Type.Integer() }),
  }),
  operation('GET', '/untyped', () => ({ status: 200, body: { m: 1 } }), {
    response: Type.Object({ n: Type.Integer() }),
  }),
  operation('GET', '/large', () => ({ status: 200, body: { text: LONG } })),
  operation('GET', '/medium', () => ({ status: 200, body: { text: LONG.slice(0, 2000) } })),
  operation('GET', '/small', () => ({ status: 200, body: { text: 'small' } })),
  operation('GET', '/busy', () => {
    throw new RequestError('TOO_BUSY', 'come back later', { shard: 1 })
  }),
  operation('GET', '/full', () => ({ status: 507, headers: { 'Retry-After': '9' }, body: {} })),
  operation('GET', '/broken', () => {
    throw new Error('private reasons')
  }),
  operation('GET', '/rejected', async () => {
    await later(0)
    assert(false, 'can not be')
  }),
  operation('GET', '/circular', () => {
    const body: Record<string, unknown> = {}
    body['self'] = body
    return { status: 500, body }
  }),
  operation('GET', '/split', () => ({ status: 200, headers: { 'X-A': 'a\r\nX-B: b' }, body: 1 })),
  operation('POST', '/latch', async () => {
    await latch.promise
    finished++
    return { status: 200, body: 'through' }
  }),
]
