// The ingest run against a fake node over real HTTP: the sample file whole, broken connections,
// refusals, repeats, and counts that add up in every case.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { FakeNode } from './fake-node.ts'
import { parseIngestOptions, type IngestOptions } from './options.ts'
import { progressLine, summaryJson, summaryText } from './report.ts'
import { runIngest, type RunResult, type World } from './run.ts'
import { findCredentials, Session, timeOfUuid7 } from '../session.ts'
import { formatPennies } from './online-retail/amount.ts'
import { sampleCsv } from '../../tools/generate/sample.ts'

const SAMPLE = Buffer.from(sampleCsv())
const ROWS = 2282
const REJECTED = 8
const TOTAL = '667368.97'
const RIGHT = { clientId: 'bootstrap', clientSecret: 'right' }

interface Case {
  readonly node: FakeNode
  readonly dir: string
  readonly told: string[]
  readonly run: (more?: Partial<IngestOptions>, world?: Partial<World>) => Promise<RunResult>
}

async function start(t: Test): Promise<Case> {
  const node = await new FakeNode().start()
  t.teardown(() => node.stop())
  const dir = t.testdir()
  const file = join(dir, 'orders.csv.gz')
  writeFileSync(file, gzipSync(SAMPLE))
  const told: string[] = []
  return {
    node,
    dir,
    told,
    run: (more, world) =>
      runIngest(
        {
          file,
          encoding: 'utf-8',
          url: node.url,
          connections: 2,
          rejectsFile: join(dir, 'x.rejects.csv'),
          dryRun: false,
          wait: false,
          json: false,
          retryMs: 60_000,
          credentials: null,
          ...more,
        },
        RIGHT,
        {
          now: () => Date.now(),
          // Backoff is told, not waited for; the turn lets sockets speak.
          delay: () => new Promise((resolve) => setImmediate(resolve)),
          progress: () => {},
          tell: (line) => told.push(line),
          interrupted: new Promise(() => {}),
          ...world,
        },
      ),
  }
}

/** A clock that only waiting moves. */
function clock(): Pick<World, 'now' | 'delay'> {
  let now = 0
  return {
    now: () => now,
    delay: (ms) => {
      now += ms
      return new Promise((resolve) => setImmediate(resolve))
    },
  }
}

function addsUp(t: Test, result: RunResult): void {
  t.equal(result.tally.rowsSettled, result.rowsRead, 'every row is accepted, rejected or failed')
}

t.test('the whole sample: every order once, counts, rejects and the exact total', async (t) => {
  const { node, dir, run } = await start(t)
  const result = await run({ wait: true, connections: 3 })
  addsUp(t, result)
  t.equal(result.rowsRead, ROWS)
  t.equal(result.stopped, null)
  t.match(result.tally, { ordersCreated: 300, ordersRepeated: 0, ordersFailed: 0 })
  t.equal(result.tally.rowsRejected, REJECTED)
  t.equal(formatPennies(result.tally.penniesAccepted), TOTAL)
  t.equal(node.orders.size, 300)
  t.match(result.graph, { found: 300, differing: [] })
  const rejects = readFileSync(join(dir, 'x.rejects.csv'), 'utf8').trim().split('\n')
  t.equal(rejects.length, REJECTED + 1)
  t.match(rejects[0], /^Row,Reason,InvoiceNo,StockCode/)
  t.match(rejects[1], /^\d+,credit-note,C700\d+,/)
  const text = summaryText(result, false)
  t.match(text, /accepted {7}2,274 {2}in 300 orders \(300 created, 0 there before\)/)
  t.match(text, /credit-note 5, quantity-not-positive 3/)
  t.match(text, /667368\.97/)
  t.match(JSON.parse(summaryJson(result)), { total: TOTAL, rowsRead: ROWS, stopped: null })
})

t.test('run again, nothing is made twice', async (t) => {
  const { node, run } = await start(t)
  await run()
  const firstMade = Math.max(...[...node.orders.values()].map((order) => timeOfUuid7(order.id)!))
  // Ids tell old from new by the millisecond.
  while (Date.now() <= firstMade) await new Promise((resolve) => setImmediate(resolve))
  const result = await run()
  addsUp(t, result)
  t.match(result.tally, { ordersCreated: 0, ordersRepeated: 300, ordersFailed: 0 })
  t.equal(node.orders.size, 300)
})

t.test('orders whose keys are forgotten are told by their totals in the graph', async (t) => {
  const { node, run } = await start(t)
  await run()
  node.keys.clear()
  const other = [...node.orders.values()][7]!
  node.orders.set(other.body.orderNumber, { ...other, total: other.total + 0.01 })
  const result = await run()
  addsUp(t, result)
  t.match(result.tally, { ordersCreated: 0, ordersRepeated: 299, ordersFailed: 1 })
  t.same([...result.tally.failedBy], [['ALREADY_EXISTS', 1]])
})

t.test('connections that break again and again lose and repeat nothing', async (t) => {
  const { node, run } = await start(t)
  node.fault = (_, n) => (n % 41 === 0 ? 'cut' : null)
  const result = await run()
  addsUp(t, result)
  t.match(result.tally, { ordersCreated: 300, ordersFailed: 0 })
  t.equal(node.orders.size, 300)
  t.ok(node.bulkRequests > 5, `${node.bulkRequests} requests`)
})

t.test('a busy node gets the same orders again', async (t) => {
  const { node, run } = await start(t)
  const keys = new Map<string, number>()
  node.fault = (line) => {
    const tries = (keys.get(line.idempotencyKey) ?? 0) + 1
    keys.set(line.idempotencyKey, tries)
    if (tries === 1) return { code: 'TOO_BUSY', message: 'later' }
    return tries === 2 ? { code: 'OUTCOME_UNKNOWN', message: 'who knows' } : null
  }
  node.refusals = [{ status: 503, retryAfter: '1' }, { status: 429 }]
  const result = await run()
  addsUp(t, result)
  t.match(result.tally, { ordersCreated: 300, ordersFailed: 0 })
  t.equal(keys.size, 300)
})

t.test('an order that is always busy fails in the end', async (t) => {
  const { node, run } = await start(t)
  node.fault = (line) =>
    line.messages[0]!.body.orderNumber === '700110' ? { code: 'TOO_BUSY', message: 'x' } : null
  const result = await run({}, clock())
  addsUp(t, result)
  t.equal(result.tally.ordersFailed, 1)
})

t.test('a token that has run out is renewed', async (t) => {
  const { node, run } = await start(t)
  node.refusals = [{ status: 401 }]
  const result = await run({ connections: 1 })
  t.equal(result.tally.ordersCreated, 300)
  t.equal(node.tokensGiven, 2)
})

t.test('refused orders fail with their reason, the rest goes on', async (t) => {
  const { node, dir, told, run } = await start(t)
  node.fault = (line) =>
    line.messages[0]!.body.orderNumber.endsWith('7')
      ? { code: 'INVALID_COMMAND', message: 'no' }
      : null
  const result = await run()
  addsUp(t, result)
  t.equal(result.tally.ordersFailed, node.linesSeen - node.orders.size)
  t.ok(result.tally.ordersFailed > 25)
  t.equal(told.length, 21)
  t.match(told[0], /order 700107 failed: INVALID_COMMAND: no/)
  const rejects = readFileSync(join(dir, 'x.rejects.csv'), 'utf8')
  t.match(rejects, /,INVALID_COMMAND: no,700107,/)
  t.equal(rejects.trim().split('\n').length, 1 + REJECTED + result.tally.rowsFailed)
  t.match(summaryText(result, false), /INVALID_COMMAND \d+/)
})

t.test('a rejects file can be read again', async (t) => {
  const { node, dir, run } = await start(t)
  node.fault = () => ({ code: 'INVALID_COMMAND', message: 'no, "really"' })
  const first = await run()
  node.fault = () => null
  const file = join(dir, 'again.csv')
  writeFileSync(file, readFileSync(join(dir, 'x.rejects.csv')))
  const result = await run({ file, wait: true })
  addsUp(t, result)
  t.equal(result.rowsRead, first.rowsRead)
  t.equal(result.tally.ordersCreated, 300)
  t.equal(formatPennies(result.tally.penniesAccepted), TOTAL)
})

t.test('a node that refuses us ends the run, and the counts still add up', async (t) => {
  const { node, run } = await start(t)
  node.refusals = [{ status: 403 }, { status: 403 }]
  const refused = await run({ connections: 1 })
  addsUp(t, refused)
  t.match(refused.stopped, /403/)
  t.equal(refused.tally.orders, 0)

  await t.rejects(
    new Session(node.url, { clientId: 'bootstrap', clientSecret: 'wrong' }, 0).token(),
    /no token to client bootstrap: 401/,
  )
})

t.test('a node that is away is waited for, then given up', async (t) => {
  const { node, run } = await start(t)
  node.stop()
  let now = 0
  const result = await run({ retryMs: 1000 }, { now: () => (now += 20) })
  addsUp(t, result)
  t.match(result.stopped, /no order was taken for 1 s: fetch failed: connect ECONNREFUSED/)
  t.match([...result.tally.failedBy.keys()], ['NOT_SENT'])
})

t.test('the user stops it in the middle', async (t) => {
  const { node, run } = await start(t)
  let stop: (signal: string) => void = () => {}
  node.fault = (_, n) => {
    if (n === 100) stop('SIGINT')
    return null
  }
  const interrupted = new Promise<string>((resolve) => (stop = resolve))
  const result = await run({ connections: 1 }, { interrupted })
  addsUp(t, result)
  t.equal(result.stopped, 'stopped by SIGINT')
  const rest = await run()
  t.equal(rest.tally.ordersFailed, 0)
  t.equal(node.orders.size, 300)
})

t.test('waiting for the graph: late orders, lost orders, other totals', async (t) => {
  const { node, run } = await start(t)
  let asked = 0
  node.graph = () => [...node.orders.values()].slice(0, 50 * ++asked)
  const late = await run({ wait: true })
  t.match(late.graph, { found: 300, differing: [] })
  t.ok(asked >= 6)

  const orders = [...node.orders.values()]
  node.graph = () => [...orders.slice(1, -1), { ...orders[0]!, total: 1 }]
  let now = 0
  const wrong = await run({ wait: true }, { now: () => (now += 5_000) })
  t.equal(wrong.graph!.found, 298)
  t.match(wrong.graph!.differing.map(({ problem }) => problem).sort(), [
    /has orderTotal 1, \d+ pennies/,
    'is not in the graph',
  ])
  t.match(summaryText(wrong, false), /298 of 300/)
})

t.test('a dry run posts nothing and counts the same', async (t) => {
  const { node, run } = await start(t)
  const result = await run({ dryRun: true })
  addsUp(t, result)
  t.equal(node.linesSeen, 0)
  t.equal(formatPennies(result.tally.penniesAccepted), TOTAL)
  t.match(summaryText(result, true), /readable/)
  t.match(
    progressLine({ share: 0.5, rowsRead: 10, tally: result.tally, elapsedMs: 1000 }),
    / 50 % read, 10 rows, 300 orders in, 8 rows rejected/,
  )
})

t.test('files that can not be read to their end', async (t) => {
  const { dir, run } = await start(t)
  const cut = join(dir, 'cut.csv.gz')
  writeFileSync(cut, gzipSync(SAMPLE).subarray(0, 20_000))
  const torn = await run({ file: cut })
  addsUp(t, torn)
  t.match(torn.stopped, /unexpected end of file/)

  const latin = join(dir, 'latin.csv')
  writeFileSync(
    latin,
    Buffer.concat([
      SAMPLE,
      Buffer.from('1,A,\xa35 voucher,1,2010-12-01 08:00:00,5,,EIRE\n', 'latin1'),
    ]),
  )
  const wrong = await run({ file: latin })
  addsUp(t, wrong)
  t.match(wrong.stopped, /not UTF-8: try --encoding windows-1252/)
  const right = await run({ file: latin, encoding: 'windows-1252' })
  t.equal(right.stopped, null)
  t.equal(right.tally.orders, 301)
})

t.test('arguments: all mistakes at once', (t) => {
  const wrong = parseIngestOptions(['--url', 'ftp://x', '--connections', '9', '--client-id', 'a'])
  t.match(wrong, {
    problems: [/--file/, /--url ftp:\/\/x/, /--connections 9/, /--client-secret both/],
  })
  t.match(parseIngestOptions(['--fiel', 'x']), { problems: [/--fiel/] })
  t.equal(parseIngestOptions(['--help']), 'help')
  t.match(parseIngestOptions(['--file', 'a/b.csv.gz', '--url', 'http://h:1/']), {
    options: { rejectsFile: 'b.rejects.csv', url: 'http://h:1', connections: 2, wait: false },
  })
  t.end()
})

t.test('credentials: environment, then the data directory', (t) => {
  const dir = t.testdir({ 'bootstrap.json': '{"clientId":"bootstrap","clientSecret":"s"}' })
  t.same(findCredentials({ KONTOR_BOOTSTRAP_SECRET: 'e' }), {
    clientId: 'bootstrap',
    clientSecret: 'e',
  })
  t.same(findCredentials({ KONTOR_DATA_DIR: dir }), { clientId: 'bootstrap', clientSecret: 's' })
  t.match(findCredentials({ KONTOR_DATA_DIR: `${dir}/no` }), {
    problem: /--client-id.*bootstrap\.json/,
  })
  t.end()
})
