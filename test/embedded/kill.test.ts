// kill -9 at random moments under load: no acknowledged order is lost, none is made twice, and
// every request, acknowledged or not, repeated with its key gets the same answer without a second
// effect. Single requests, commands and bulk lines. Source: ARCHITECTURE 3 (promises 1 and 2).

import t from 'tap'
import type { Test } from 'tap'
import { randomInt } from 'node:crypto'
import { atOnce } from '../harness/at-once.ts'
import { NodeProcess } from '../harness/node-process.ts'
import type { Answer } from '../harness/node-process.ts'

const ROUNDS = 8
const DELIVERY = '018f2b3c-4d5e-7abc-8def-0123456789ab'

interface Sent {
  readonly path: string
  readonly body: unknown
  readonly key: string
  /** Set once an answer has come. */
  answer: Answer | null
}

interface BulkLine {
  readonly key: string
  readonly number: string
  answer: string | null
}

const order = (number: string): unknown => [
  {
    type: 'create',
    body: {
      currencyCode: 'GBP',
      taxIncluded: true,
      orderNumber: number,
      commands: [
        { type: 'createDelivery', deliveryId: DELIVERY },
        {
          type: 'createOrderLine',
          deliveryId: DELIVERY,
          productNumber: 'P1',
          quantity: 2,
          unitPrice: 1.25,
        },
      ],
    },
  },
]

const addTag = (tag: string): unknown => [
  { type: 'applyCommands', body: { commands: [{ type: 'addTag', key: tag }] } },
]

class Load {
  readonly sent: Sent[] = []
  readonly lines: BulkLine[] = []
  readonly #node: NodeProcess
  #stopped = false

  constructor(node: NodeProcess) {
    this.#node = node
  }

  /** Creates orders and tags them until the node is gone. */
  async singles(round: number, worker: number): Promise<void> {
    for (let i = 0; !this.#stopped; i++) {
      const number = `S${round}-${worker}-${i}`
      const made = await this.#post({
        path: '/resources/actors/order/new',
        body: order(number),
        key: `create-${number}`,
        answer: null,
      })
      if (!made) return
      const tagged = await this.#post({
        path: `/resources/actors/order/${number}`,
        body: addTag(`t${i}`),
        key: `tag-${number}`,
        answer: null,
      })
      if (!tagged) return
    }
  }

  async #post(sent: Sent): Promise<boolean> {
    this.sent.push(sent)
    try {
      sent.answer = await repeat(this.#node, sent)
      return true
    } catch {
      return false
    }
  }

  /** Sends lines in one bulk request after the other until the node is gone. */
  async bulk(round: number): Promise<void> {
    for (let i = 0; !this.#stopped; i++) {
      const lines = Array.from({ length: 40 }, (_, j) => {
        const number = `B${round}-${i}-${j}`
        return { key: `bulk-${number}`, number, answer: null }
      })
      this.lines.push(...lines)
      try {
        await sendLines(this.#node, lines)
      } catch {
        return
      }
    }
  }

  stop(): void {
    this.#stopped = true
  }
}

function repeat(node: NodeProcess, { path, body, key }: Sent): Promise<Answer> {
  return node.ask(path, { body, headers: { 'Idempotency-Key': key } })
}

async function sendLines(node: NodeProcess, lines: readonly BulkLine[]): Promise<void> {
  const raw = lines
    .map(({ key, number }) =>
      JSON.stringify({ id: 'new', messages: order(number), idempotencyKey: key }),
    )
    .join('\n')
  const answer = await node.ask('/resources/actors/order', {
    raw,
    headers: { 'Content-Type': 'application/x-ndjson' },
  })
  const answers = answer.text.trimEnd().split('\n')
  lines.forEach((line, i) => {
    const text = answers[i]
    if (text === undefined) return
    const said = orderOf(text)
    if (line.answer !== null && line.answer !== said) throw new Error(`${line.answer} != ${said}`)
    line.answer = said
  })
}

/** What a bulk answer says of its order, without the token of the journal's position. */
function orderOf(line: string): string {
  const { id, paths, data, results, errors } = JSON.parse(line) as Record<string, unknown>
  return JSON.stringify({ id, paths, data, results, errors })
}

t.setTimeout(240_000)

t.test('kill -9 under load, many times', async (t) => {
  const node = new NodeProcess()
  t.teardown(() => node.clear())
  await node.start()
  const load = new Load(node)
  for (let round = 0; round < ROUNDS; round++) {
    const next = new Load(node)
    const running = [
      ...Array.from({ length: 12 }, (_, worker) => next.singles(round, worker)),
      next.bulk(round),
    ]
    await new Promise((resolve) => void setTimeout(resolve, randomInt(50, 900)))
    await node.kill()
    next.stop()
    await Promise.all(running)
    load.sent.push(...next.sent)
    load.lines.push(...next.lines)
    await node.start()
  }
  const acknowledged = load.sent.filter(({ answer }) => answer !== null)
  t.comment(
    `${load.sent.length} requests, ${acknowledged.length} acknowledged, ${load.lines.length} bulk lines`,
  )
  t.ok(acknowledged.length > ROUNDS * 20, 'enough was acknowledged for the test to mean something')
  t.ok(load.sent.length > acknowledged.length, 'some were cut off')

  let differing = 0
  let refused = 0
  await atOnce(load.sent, async (sent) => {
    const again = await repeat(node, sent)
    const first = sent.answer
    if (first && (first.text !== again.text || first.status !== again.status)) differing++
    if (again.status !== 200) refused++
  })
  t.equal(differing, 0, 'a repeat gets the first answer, byte for byte')
  t.equal(refused, 0, 'nothing is refused: what was cut off takes effect now, once')
  for (let i = 0; i < load.lines.length; i += 200) {
    await sendLines(node, load.lines.slice(i, i + 200))
  }
  t.notOk(
    load.lines.find(({ answer }) => answer === null),
    'every line has its answer',
  )
  await checkStore(t, node, load)
})

async function checkStore(t: Test, node: NodeProcess, load: Load): Promise<void> {
  const creates = load.sent.filter(({ key }) => key.startsWith('create-'))
  const last = await node.order('new', order('the-last-one'))
  const { orders } = await node.graph<{ orders: number }>([{ edge: 'orders', count: true }], last)
  t.equal(orders, creates.length + load.lines.length + 1, 'one order for each number')
  const tags = load.sent.filter(({ key }) => key.startsWith('tag-'))
  await atOnce(tags, async ({ key }) => {
    const number = key.slice('tag-'.length)
    const { orders: found } = await node.graph<{
      orders: { tags: string[]; orderTotal: number }[]
    }>([
      {
        edge: 'orders',
        filter: `orderNumber == '${number}'`,
        node: { fields: ['tags', 'orderTotal'] },
      },
    ])
    if (found.length !== 1 || found[0]!.tags.length !== 1 || found[0]!.orderTotal !== 2.5) {
      t.fail(`${number}: ${JSON.stringify(found)}`)
    }
  })
}
