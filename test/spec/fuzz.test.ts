// Random and mutated requests on a real node, from a printed seed: each is answered, with a code of
// the table; none is our mistake or ends a connection; a batch that is refused has changed nothing;
// the process and the graph go on. Source: CONTRACT 0, 1.13; ARCHITECTURE 3 (promise 7).

import t from 'tap'
import fc from 'fast-check'
import { ERRORS, statusOf } from '../../protocol/errors.ts'
import type { ErrorItem } from '../../protocol/errors.ts'
import { startNode } from '../harness/node-process.ts'
import type { Answer } from '../harness/node-process.ts'
import { smallOrder, wholeOrder } from '../harness/orders.ts'
import type { SmallOrder } from '../harness/orders.ts'
import { ANYTHING, BATCH, BYTES, MUTATED, aimedAt } from './fuzz-requests.ts'
import type { FuzzRequest } from './fuzz-requests.ts'

const SEED = Number(process.env['KONTOR_FUZZ_SEED'] ?? Date.now() % 1e9)
/** For a longer search: so many times the runs. */
const TIMES = Number(process.env['KONTOR_FUZZ_TIMES'] ?? 1)
/** An order is left after so many batches, before it gets long. */
const BATCHES_AN_ORDER = 50

const node = await startNode(t)
const { pid } = node
t.comment(`KONTOR_FUZZ_SEED=${SEED}`)

function send(request: FuzzRequest, order: SmallOrder): Promise<Answer> {
  const { method, headers, body } = request
  const path = aimedAt(request.path, order)
  const raw = typeof body === 'string' ? aimedAt(body, order) : body
  return node.ask(path, { method, headers, ...(raw.length > 0 && { raw }) })
}

/** Throws unless the answer is one that the contract knows. */
function check(answer: Answer): void {
  const shown = `${answer.status} ${answer.text.slice(0, 500)}`
  if (answer.status < 400) return
  // Answered by the driver, before there is a request: no body.
  if (answer.text === '') return
  const body = answer.json<{ errors?: ErrorItem[]; error?: string; requestId?: string }>()
  if (body.error !== undefined) {
    if (answer.status >= 500) throw new Error(shown)
    return
  }
  const { errors = [], requestId } = body
  const [first] = errors
  if (first === undefined || statusOf(first.code) !== answer.status) throw new Error(shown)
  if (answer.status >= 500) throw new Error(shown)
  if (requestId !== answer.headers['x-request-id']) throw new Error(`no request id: ${shown}`)
  for (const { code, message } of errors) {
    if (!(code in ERRORS) && !/^UNDEFINED_[A-Z]+_TYPE$/.test(code)) throw new Error(shown)
    if (message.length < 10 || /undefined|\[object|TypeError/.test(message)) throw new Error(shown)
  }
}

let order = await smallOrder(node)

async function run(requests: fc.Arbitrary<FuzzRequest>, numRuns: number): Promise<void> {
  const property = fc.asyncProperty(requests, async (request) => {
    check(await send(request, order))
    if (!node.isUp || node.pid !== pid) throw new Error('the process is gone')
  })
  await fc.assert(property, { numRuns: numRuns * TIMES, seed: SEED })
}

t.test('a batch is done or not, never half', async (t) => {
  let batches = 0
  let accepted = 0
  const property = fc.asyncProperty(BATCH, async (request) => {
    if (batches++ % BATCHES_AN_ORDER === 0) order = await smallOrder(node)
    const before = await wholeOrder(node, order.orderId)
    const answer = await send(request, order)
    check(answer)
    if (answer.status === 200) {
      accepted++
      return
    }
    const after = await wholeOrder(node, order.orderId)
    if (JSON.stringify(after) !== JSON.stringify(before)) throw new Error('it was done by half')
  })
  await fc.assert(property, { numRuns: 500 * TIMES, seed: SEED })
  t.ok(
    accepted > batches / 10 && accepted < batches * 0.9,
    `${accepted} of ${batches} were accepted`,
  )
})

t.test('right requests with wrong values', () => run(MUTATED, 400))
t.test('right requests with wrong bytes', () => run(BYTES, 300))
t.test('anything anywhere', () => run(ANYTHING, 300))

t.test('and it goes on as before', async (t) => {
  const last = await smallOrder(node)
  const tagged = await node.order(last.orderId, [
    { type: 'applyCommands', body: { commands: [{ type: 'addTag', key: 'last' }] } },
  ])
  t.strictSame(
    await node.graph(
      [{ edge: 'orders', filter: `orderId == '${last.orderId}'`, node: { fields: ['tags'] } }],
      tagged,
    ),
    { orders: [{ tags: ['last'] }] },
  )
  t.equal(node.pid, pid)
  const { text } = await node.ask('/metrics')
  t.notMatch(text, /^kontor_http_requests_total\{[^\n]*status="500"/m)
  t.equal(await node.metric('kontor_index_parked_actors'), 0, 'all of it can be shown')
  t.notMatch(node.output, /"level":(50|60)/)
})
