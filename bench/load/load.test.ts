// The generator against small servers: answers cut anywhere, chunked answers, broken connections;
// that the closed loop counts every answer, and the open loop charges a stall to the server.

import { createServer as createHttpServer } from 'node:http'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { bulkLoad } from './bulk-load.ts'
import { closedLoop } from './closed-loop.ts'
import { HttpSocket } from './http-socket.ts'
import { unsure } from './load.ts'
import { openLoop } from './open-loop.ts'
import { Recorder } from './recorder.ts'
import { inTurn, newUuid, post, type Destination, type PreparedRequest } from './requests.ts'
import { AnswerSample } from './sample.ts'

const readings = { started: () => {}, ended: () => {} }

async function listen(t: Test, server: Server): Promise<Destination> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return { host: '127.0.0.1', port: (server.address() as AddressInfo).port, token: 'x' }
}

const request = (to: Destination, kind: PreparedRequest['kind'] = 'read'): PreparedRequest => ({
  kind,
  bytes: post(to, '/x', { a: 1 }),
})

/** A server that answers any request with `pieces`, each in a write of its own. */
function answering(pieces: () => readonly Buffer[]): Server {
  return createServer({ noDelay: true }, (socket) => {
    socket.on('data', () => {
      const write = (left: readonly Buffer[]): void => {
        const [piece, ...rest] = left
        if (piece !== undefined) socket.write(piece, () => setImmediate(write, rest))
      }
      write(pieces())
    })
  })
}

/** Status and body of one answer, or why there is none. */
function ask(to: Destination): Promise<{ status: number; body: string } | string> {
  return new Promise((resolve) => {
    let body = ''
    const socket = new HttpSocket(to.host, to.port, {
      answered: (_, status) => {
        resolve({ status, body })
        socket.close()
      },
      gone: (_, why) => resolve(why),
      body: (_, piece) => (body += piece.toString()),
    })
    socket.send('GET / HTTP/1.1\r\n\r\n')
  })
}

t.test('an answer cut anywhere reads the same', async (t) => {
  let pieces: readonly Buffer[] = []
  const to = await listen(
    t,
    answering(() => pieces),
  )
  const chunked =
    'HTTP/1.1 200 OK\r\nX: y\r\nTransfer-Encoding: chunked\r\n\r\n' +
    '5\r\nhello\r\nA\r\n, the cold\r\n0\r\nT: r\r\n\r\n'
  const fixed = 'HTTP/1.1 422 No\r\ncontent-length: 15\r\n\r\nhello, the cold'
  await fc.assert(
    fc.asyncProperty(
      fc.boolean(),
      fc.array(fc.nat(chunked.length), { maxLength: 5 }),
      async (isFixed, places) => {
        const text = isFixed ? fixed : chunked
        const cuts = [
          0,
          ...places.filter((p) => p < text.length).sort((a, b) => a - b),
          text.length,
        ]
        pieces = cuts
          .slice(1)
          .map((to, i) => Buffer.from(text.slice(cuts[i], to)))
          .filter((piece) => piece.length > 0)
        t.same(await ask(to), { status: isFixed ? 422 : 200, body: 'hello, the cold' })
      },
    ),
    { numRuns: 60 },
  )
})

t.test('answers that are none are told', async (t) => {
  let piece = ''
  const to = await listen(
    t,
    answering(() => [Buffer.from(piece)]),
  )
  piece = 'SMTP 220 hello\r\n\r\n'
  t.match(await ask(to), /not an HTTP/)
  piece = 'HTTP/1.1 200 OK\r\n\r\n'
  t.match(await ask(to), /unknown length/)
  piece = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n'
  t.match(await ask(to), /chunk size/)
  piece = 'HTTP/1.1 204 No Content\r\n\r\n'
  t.same(await ask(to), { status: 204, body: '' })
})

t.test('closed loop: every answer counts once, by kind', async (t) => {
  const seen = { create: 0, read: 0 }
  const server = createHttpServer((req, res) => {
    let body = ''
    req.on('data', (piece) => (body += String(piece)))
    req.on('end', () => {
      const kind = (JSON.parse(body) as { kind: 'create' | 'read' }).kind
      seen[kind]++
      const isRefused = seen.create % 10 === 9 && kind === 'create'
      const text = isRefused ? '{"errors":[{"code":"TOO_BUSY","message":"no"}]}' : '{}'
      res.writeHead(isRefused ? 503 : 200).end(text)
    })
  })
  const to = await listen(t, server)
  const prepared = (['create', 'create', 'read'] as const).map((kind) => ({
    kind,
    bytes: post(to, '/x', { kind }),
  }))
  const result = await closedLoop({
    to,
    connections: 4,
    warmUpSeconds: 0.05,
    seconds: 0.3,
    next: inTurn(prepared),
    readings,
  })
  const refused = result.failures.get('503 TOO_BUSY')!
  t.equal(result.acknowledged.create + refused, seen.create)
  t.equal(result.acknowledged.read, seen.read)
  t.ok(result.latencies.count > 50)
  t.ok(result.latencies.count < seen.create + seen.read, 'the warm-up is not in the latencies')
  t.ok(result.latencies.p50Us <= result.latencies.p99Us)
  t.ok(result.latencies.p99Us <= result.latencies.maxUs)
  t.ok(result.slices.length >= 1)
})

t.test('closed loop: broken connections are opened again', async (t) => {
  let requests = 0
  const server = createServer((socket) => {
    socket.on('data', () => {
      if (++requests % 20 === 0) socket.destroy()
      else socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}')
    })
  })
  const to = await listen(t, server)
  const result = await closedLoop({
    to,
    connections: 2,
    warmUpSeconds: 0,
    seconds: 0.4,
    next: inTurn([request(to)]),
    readings,
  })
  const failures = [...result.failures.values()].reduce((a, b) => a + b, 0)
  t.ok(failures >= 2)
  t.equal(result.acknowledged.read + failures, requests)
})

t.test(
  'open loop: holds its rate, and a stall is in the latencies of all that were due',
  async (t) => {
    let stalled: (() => void)[] | null = null
    let requests = 0
    const server = createHttpServer((req, res) => {
      req.resume()
      req.on('end', () => {
        // For 200 ms in the middle nothing is answered.
        if (++requests === 100) {
          stalled = []
          setTimeout(() => {
            for (const answer of stalled!) answer()
            stalled = null
          }, 200)
        }
        if (stalled === null) res.end('{}')
        else stalled.push(() => res.end('{}'))
      })
    })
    const to = await listen(t, server)
    const result = await openLoop({
      to,
      connections: 2,
      warmUpSeconds: 0,
      seconds: 0.5,
      rate: 500,
      next: inTurn([request(to)]),
      readings,
    })
    t.equal(result.acknowledged.read, 250)
    t.equal(requests, 250)
    t.equal(result.failures.size, 0)
    t.ok(result.rate <= 500, `never more than asked for: ${result.rate}`)
    // Only two connections were stuck; a closed loop would have seen two slow answers of 250.
    t.ok(result.latencies.p99Us > 150_000, `p99 ${result.latencies.p99Us}`)
  },
)

t.test('open loop: a rate that is lost for good is given up, each request told once', async (t) => {
  let requests = 0
  const server = createHttpServer((req, res) => {
    requests++
    req.resume()
    req.on('end', () => setTimeout(() => res.end('{}'), 20))
  })
  const to = await listen(t, server)
  const result = await openLoop({
    to,
    connections: 2,
    warmUpSeconds: 0,
    seconds: 0.2,
    behindSecondsMax: 0.2,
    rate: 1_000,
    next: inTurn([request(to)]),
    readings,
  })
  t.equal(result.acknowledged.read, requests)
  t.same([...result.failures], [['never sent', 200 - requests]])
})

t.test('bulk: lines go out in windows, answers are counted, errors are failures', async (t) => {
  let lines = 0
  const server = createHttpServer((req, res) => {
    res.writeHead(200)
    let rest = ''
    req.on('data', (piece: Buffer) => {
      const all = (rest + piece.toString()).split('\n')
      rest = all.pop()!
      for (const line of all) {
        const { n } = JSON.parse(line) as { n: number }
        lines++
        res.write(n === 3 ? '{"id":"x","errors":[{"code":"INVALID"}]}\n' : '{"id":"x"}\n')
      }
    })
    req.on('end', () => res.end())
  })
  const to = await listen(t, server)
  let n = 0
  const result = await bulkLoad({
    to,
    connections: 2,
    warmUpSeconds: 0.05,
    seconds: 0.3,
    line: () => Buffer.from(`{"n":${n++ % 7}}\n`),
    readings,
  })
  const failed = result.failures.get('INVALID')!
  t.ok(failed > 5)
  t.equal(result.acknowledged.create + failed, lines)
  t.ok(result.latencies.count > 100)
  const limited = await bulkLoad({
    to,
    connections: 2,
    warmUpSeconds: 0,
    seconds: 30,
    lines: 1000,
    line: () => Buffer.from('{"n":1}\n'),
    readings,
  })
  t.equal(limited.acknowledged.create, 1000, 'so many lines and no more')
})

t.test('ids that callers choose are UUIDv7-shaped', (t) => {
  t.match(newUuid(), /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  t.not(newUuid(), newUuid())
  t.end()
})

t.test('a sample has answers of all of a load, in a bounded number', async (t) => {
  const sample = new AnswerSample(8)
  for (let n = 0; n < 1_000; n++) if (sample.wantsNext()) sample.add(String(n))
  const kept = sample.answers.map(Number)
  t.ok(kept.length >= 4 && kept.length < 8, kept.join())
  t.equal(kept[0], 0)
  const gaps = kept.slice(1).map((n, i) => n - kept[i]!)
  t.ok(Math.max(...gaps, 1_000 - kept.at(-1)!) <= 256, kept.join())
})

t.test(
  'a closed loop ends when there is enough, and gives its sample bodies of success',
  async (t) => {
    let n = 0
    const server = createHttpServer((req, res) => {
      req.resume()
      req.on('end', () => {
        n++
        res.statusCode = n % 3 === 0 ? 503 : 200
        res.end(JSON.stringify({ n }))
      })
    })
    const to = await listen(t, server)
    const recorder = new Recorder()
    const sample = new AnswerSample(1_000)
    const began = performance.now()
    const result = await closedLoop({
      to,
      connections: 4,
      warmUpSeconds: 0,
      seconds: 60,
      next: inTurn([request(to)]),
      readings,
      recorder,
      sample,
      enough: () => recorder.answered >= 50,
    })
    t.ok(performance.now() - began < 30_000)
    t.ok(result.answered >= 50 && result.answered <= 54, String(result.answered))
    const numbers = sample.answers.map((answer) => (JSON.parse(answer) as { n: number }).n)
    t.ok(numbers.length > 40, String(numbers.length))
    t.notOk(
      numbers.some((number) => number % 3 === 0),
      'a refusal is no sample',
    )
  },
)

t.test('which failures may have had their effect', async (t) => {
  const failures = { closed: 1, 'never sent': 20, '503 OVERLOADED': 300, '504 TIMEOUT': 4_000 }
  t.equal(unsure(new Map(Object.entries(failures))), 4_001)
})
