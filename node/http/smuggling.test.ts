// Requests in odd bytes, each with a second one hidden in what follows: no reading of it may serve
// that one, whatever a proxy before the node made of it. What uWebSockets.js takes apart by itself
// is held to it too. Framing by headers: body.test.ts. Source: RFC 9112 2.2, 3.2, 5, 6.3, 7.1.

import t from 'tap'
import { stalls } from './testing/raw-client.ts'
import { operation, startServer } from './testing/test-server.ts'

let hidden = 0
let shown: string[] = []
const operations = [
  operation(
    'POST',
    '/shown',
    (r) => {
      shown.push(r.header('x-odd'))
      return { status: 200, body: 1 }
    },
    { body: { type: 'form', required: false } },
  ),
  operation('GET', '/shown', (r) => {
    shown.push(r.header('x-odd'))
    return { status: 200, body: 1 }
  }),
  operation('GET', '/hidden', () => {
    hidden++
    return { status: 200, body: 'hidden' }
  }),
]

const HIDDEN = 'GET /hidden HTTP/1.1\r\nHost: x\r\n\r\n'
const POST = 'POST /shown HTTP/1.1\r\nHost: x\r\n'
const GET = 'GET /shown HTTP/1.1\r\nHost: x\r\n'
const CHUNKED = 'Transfer-Encoding: chunked\r\n'
const length = `Content-Length: ${HIDDEN.length}\r\n`

const ODD: Readonly<Record<string, string>> = {
  'RFC 9112 5.1: a space before the colon of a length': `${POST}Content-Length : ${HIDDEN.length}\r\n\r\n${HIDDEN}`,
  'RFC 9112 5.1: a space before the colon of an encoding': `${POST}Transfer-Encoding : chunked\r\n${length}\r\n${HIDDEN}`,
  'RFC 9112 5.2: a folded line (obs-fold)': `${POST}X-Odd: a\r\n Content-Length: 0\r\n${length}\r\n${HIDDEN}`,
  'RFC 9112 5.2: a folded encoding': `${POST}Transfer-Encoding:\r\n chunked\r\n${length}\r\n${HIDDEN}`,
  'RFC 9112 2.2: lines that end with LF alone': `POST /shown HTTP/1.1\nHost: x\nContent-Length: ${HIDDEN.length}\n\n${HIDDEN}`,
  'RFC 9112 2.2: a CR amid a value': `${POST}X-Odd: a\rContent-Length: 0\r\n${length}\r\n${HIDDEN}`,
  'RFC 9112 2.2: an LF amid a value': `${POST}X-Odd: a\nContent-Length: 0\r\n${length}\r\n${HIDDEN}`,
  'RFC 9110 5.5: a NUL amid a value': `${POST}X-Odd: a\0b\r\n${length}\r\n${HIDDEN}`,
  'RFC 9112 2.2: a space before the first header': `POST /shown HTTP/1.1\r\n Host: x\r\n${length}\r\n${HIDDEN}`,
  'a header without a colon': `${POST}X-Odd\r\n${length}\r\n${HIDDEN}`,
  'a header without a name': `${POST}: a\r\n${length}\r\n${HIDDEN}`,
  'RFC 9112 6.3: two encodings': `${POST}${CHUNKED}Transfer-Encoding: identity\r\n\r\n${HIDDEN}`,
  'RFC 9112 6.3: an encoding of another spelling': `${POST}Transfer-Encoding: xchunked\r\n${length}\r\n${HIDDEN}`,
  'RFC 9112 6.3: an encoding with a tab': `${POST}Transfer-Encoding:\tchunked\r\n${length}\r\n${HIDDEN}`,
  'RFC 9112 6.3: an encoding in capitals, and a length': `${POST}TRANSFER-ENCODING: CHUNKED\r\n${length}\r\n${HIDDEN}`,
  'RFC 9112 6.3: an encoding and no length': `${POST}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n${HIDDEN}`,
  'RFC 9112 6.3: lengths that agree': `${POST}${length}${length}\r\n${HIDDEN}`,
  'RFC 9112 6.3: a length with a sign': `${POST}Content-Length: +${HIDDEN.length}\r\n\r\n${HIDDEN}`,
  'RFC 9112 7.1: a chunk of 2^64 + 1': `${POST}${CHUNKED}\r\n10000000000000001\r\na\r\n0\r\n\r\n${HIDDEN}`,
  'RFC 9112 7.1: a chunk of minus one': `${POST}${CHUNKED}\r\n-1\r\na\r\n0\r\n\r\n${HIDDEN}`,
  'RFC 9112 7.1: a chunk that says 0x': `${POST}${CHUNKED}\r\n0x1\r\na\r\n0\r\n\r\n${HIDDEN}`,
  'RFC 9112 7.1.1: an extension with an LF': `${POST}${CHUNKED}\r\n1;a\nb\r\nc\r\n0\r\n\r\n${HIDDEN}`,
  'RFC 9112 7.1: no line end behind a chunk': `${POST}${CHUNKED}\r\n1\r\naXX0\r\n\r\n${HIDDEN}`,
  'RFC 9112 7.1.2: a trailer that is a length': `${POST}${CHUNKED}\r\n1\r\na\r\n0\r\nContent-Length: 5\r\n\r\n${HIDDEN}`,
  'RFC 9112 3: a version that there is not': `POST /shown HTTP/9.9\r\nHost: x\r\n${length}\r\n${HIDDEN}`,
  'RFC 9112 3: no version': `GET /shown\r\n\r\n${HIDDEN}`,
  'RFC 9112 3: a tab in the request line': `GET\t/shown\tHTTP/1.1\r\nHost: x\r\n\r\n${HIDDEN}`,
  'RFC 9112 3: two spaces in the request line': `GET  /shown HTTP/1.1\r\nHost: x\r\n\r\n${HIDDEN}`,
  'RFC 9112 3.2: no Host': `GET /shown HTTP/1.1\r\n\r\n${HIDDEN}`,
  'RFC 9112 3.2: two Hosts': `${GET}Host: y\r\n\r\n${HIDDEN}`,
  'the preface of HTTP/2': `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${HIDDEN}`,
}

for (const [what, bytes] of Object.entries(ODD)) {
  t.test(what, async (t) => {
    hidden = 0
    const http = await startServer(operations)
    t.teardown(http.stop)
    const c = http.client().send(bytes)
    await stalls(() => c.rest.length, 'it is answered, or not')
    t.equal(hidden, 0, JSON.stringify(c.rest.toString('latin1').slice(0, 300)))
    t.notMatch(c.rest.toString('latin1'), /hidden/)
    const answers = c.rest.toString('latin1').match(/HTTP\/1\.1 \d+/g) ?? []
    t.ok(answers.length <= 1, `one answer at most: ${answers.join(', ')}`)
  })
}

t.test('RFC 9112 3.2.2: a target with another host is that path here, or nothing', async (t) => {
  const http = await startServer(operations)
  t.teardown(http.stop)
  for (const target of ['http://elsewhere/shown', '//elsewhere/shown', 'elsewhere:443', '*']) {
    const c = http.client().send(`GET ${target} HTTP/1.1\r\nHost: x\r\n\r\n`)
    const { status } = await c.response()
    t.ok(status >= 400, `${target}: ${status}`)
  }
})

t.test('RFC 9110 5.4: headers past the bound are refused, and many small ones too', async (t) => {
  shown = []
  const http = await startServer(operations)
  t.teardown(http.stop)
  const many = Array.from({ length: 3_000 }, (_, i) => `X-${i}: aaaaaaaa\r\n`).join('')
  for (const odd of [
    `X-Odd: ${'a'.repeat(40 * 1024)}\r\n`,
    many,
    `${'X'.repeat(40 * 1024)}: a\r\n`,
  ]) {
    const c = http.client().send(`${GET}${odd}\r\n${HIDDEN}`)
    await c.closed()
    t.match(c.rest.toString('latin1'), /^HTTP\/1\.1 431 |^$/)
    t.notMatch(c.rest.toString('latin1'), / 200 /)
  }
  t.strictSame(shown, [], 'none of it came as far as an operation')
})
