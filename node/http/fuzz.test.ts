// Noise in place of requests: whatever comes, the process stays up, and what is answered is
// answered with a code of the error table. Seeds are printed by fast-check when a property fails.

import fc from 'fast-check'
import t from 'tap'
import { ERRORS } from '../../protocol/errors.ts'
import type { RawClient, RawResponse } from './testing/raw-client.ts'
import { errorOf, operation, request, startServer } from './testing/test-server.ts'

const echo = operation('POST', '/echo', (r) => ({ status: 200, body: r.body ?? null }), {
  body: { type: 'json', required: true },
})
const operations = [
  echo,
  operation('GET', '/things/{id}', (r) => ({ status: 200, body: r.params['id'] ?? '' })),
  operation('POST', '/lines', () => ({ status: 200 }), {
    body: { type: 'ndjson', required: true },
    stream: async (_, { lines, write }) => {
      for await (const line of lines) await write(String(line.number))
    },
  }),
]

/** Statuses that uWebSockets.js gives itself, to what never becomes a request. */
const ITS_OWN = [400, 431, 505]

function checkAnswer(response: RawResponse): void {
  if (response.status === 200 || response.status === 204) return
  const ours = response.headers['x-request-id'] !== undefined
  if (!ours) {
    if (!ITS_OWN.includes(response.status)) throw new Error(`status ${response.status}`)
    return
  }
  const { code } = errorOf(response)
  const row = ERRORS[code as keyof typeof ERRORS] as { status: number } | undefined
  if (row === undefined || row.status !== response.status || row.status >= 500) {
    throw new Error(`${response.status} ${code}`)
  }
}

t.test('bodies of any kind', async (t) => {
  const http = await startServer(operations)
  t.teardown(http.stop)
  const c = http.client()
  const piece = fc.constantFrom(
    '{',
    '}',
    '[',
    ']',
    '"a"',
    ':',
    ',',
    '1',
    'e9',
    '\\ud800',
    '"',
    'nul',
  )
  const text = fc.oneof(
    fc.json(),
    fc.array(piece).map((parts) => parts.join('')),
  )
  const body = fc.oneof(
    text.map((json) => Buffer.from(json)),
    fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
  )
  const headers = fc.record(
    {
      'Content-Type': fc.constantFrom(
        'application/json',
        'application/x-ndjson',
        'a/b',
        ';;=',
        '"',
      ),
      'Content-Encoding': fc.constantFrom('gzip', 'identity', 'x', ''),
      'Accept-Encoding': fc.constantFrom('gzip', '*;q=0', 'q', ',,'),
      'X-Request-Id': fc.string({ unit: 'grapheme-ascii', maxLength: 200 }),
    },
    { requiredKeys: [] },
  )
  const path = fc.constantFrom('/echo', '/lines')
  let taken = 0
  await fc.assert(
    fc.asyncProperty(path, headers, body, async (to, sent, bytes) => {
      const head = request(`POST ${to}`, { ...sent, 'Content-Length': String(bytes.length) })
      const response = await c.send(head).send(bytes).response()
      checkAnswer(response)
      if (response.status === 200) taken++
    }),
    { numRuns: 1500 },
  )
  t.ok(taken > 50)
  t.same(http.log, [])
})

t.test('requests of any kind', async (t) => {
  const http = await startServer(operations)
  t.teardown(http.stop)
  const token = fc.constantFrom(
    'GET',
    'POST',
    'HEAD',
    'get',
    ' ',
    '/',
    '/things/%41',
    '/things/%',
    '/echo',
    '?',
    '?a=%',
    '#',
    ' HTTP/1.1',
    ' HTTP/1.0',
    '\r\n',
    '\n',
    '\r',
    ':',
    'Host: a\r\n',
    'Content-Length: 4\r\n',
    'Content-Length: x\r\n',
    'Transfer-Encoding: chunked\r\n',
    'Transfer-Encoding: x\r\n',
    '4\r\nnull\r\n',
    '0\r\n\r\n',
    'null',
    'Connection: close\r\n',
    'X-Request-Id: \u00ff\r\n',
    '\0',
    '\u00ff',
    'a'.repeat(5000),
  )
  const ordered = fc.tuple(
    fc.constantFrom('GET', 'POST', 'HEAD', 'PUT', 'OPTIONS', 'BREW'),
    fc.constantFrom('/things/%41', '/things/%', '/echo', '/lines', '/', '//', '/../x', '/echo?%'),
    fc.array(token, { maxLength: 4 }),
    fc.array(token, { maxLength: 4 }),
  )
  const noise = fc.oneof(
    fc.array(token, { maxLength: 12 }).map((parts) => parts.join('')),
    ordered.map(
      ([method, path, headers, rest]) =>
        `${method} ${path} HTTP/1.1\r\nHost: a\r\n${headers.join('')}\r\n${rest.join('')}`,
    ),
  )
  let answers = 0
  await fc.assert(
    fc.asyncProperty(noise, async (text) => {
      const c = http.client()
      c.send(Buffer.from(text, 'latin1'))
      // Half of a request is never answered: a good one follows on a connection of its own.
      const good = http.client().send(request('GET /things/ok'))
      const response = await good.response()
      if (response.status !== 200) throw new Error(`the next request got ${response.status}`)
      answers += await readAnswers(c)
      good.destroy()
      c.destroy()
    }),
    { numRuns: 600 },
  )
  t.ok(answers > 100, `${answers} answers`)
  t.same(
    http.log.filter((logged) => logged.level === 'error'),
    [],
  )
})

/** Takes the answers that have come; those to HEAD have no body, so only heads are looked at. */
async function readAnswers(c: RawClient): Promise<number> {
  await new Promise(setImmediate)
  const heads = [...c.rest.toString('latin1').matchAll(/HTTP\/1\.1 ([0-9]{3}) /g)]
  for (const [, status] of heads) {
    const known = Object.values(ERRORS).some((row) => String(row.status) === status)
    const own = ITS_OWN.includes(Number(status)) || status === '200' || status === '204'
    if (!known && !own) throw new Error(`status ${status}`)
    if (status === '500') throw new Error('a mistake of ours')
  }
  return heads.length
}
