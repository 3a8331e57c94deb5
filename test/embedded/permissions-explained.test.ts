// `?explain` tells apart only what answers do: two questions with the same answer have the same
// explanation, whoever asks. Source: CONTRACT 1.4 "Explain".

import { randomUUID } from 'node:crypto'
import t from 'tap'
import type { InnerNode } from '../harness/node-in-process.ts'
import { BESIDE, DELIVERIES, ENTRIES, NORTH, only, SOUTH, started } from './permissions/stage.ts'

const CUSTOMER = 'graph/order:field:customerNumber'
const MILLISECONDS = /"\w*ms":[\d.]+/gi
const REQUEST = /"requestId":"[^"]+"/

/** Of the north, of the south, of nobody. */
const DELIVERY_OF = new Map([...DELIVERIES, [randomUUID(), randomUUID()]])
const deliveryOf = (id: string): string => DELIVERY_OF.get(id)!

/** Never a part of what is told; ids that were asked for are taken out of it. */
const SECRETS = new RegExp(`${NORTH}|${SOUTH}|north|south|"n"|"xx"`)
const IDS = new RegExp(`${NORTH}|${SOUTH}`)

/** Questions about an order, and about its delivery. */
const QUESTIONS: readonly ((id: string) => object)[] = [
  (id) => ({ edge: 'orders', filter: only(id) }),
  (id) => ({ edge: 'orders', filter: only(id), count: true }),
  (id) => ({ edge: 'orders', filter: `${only(id)} and customerNumber == 'north'` }),
  (id) => ({ edge: 'orders', filter: only(id), orderBy: 'customerNumber' }),
  ...['any', 'some', 'none'].map((require) => (id: string) => ({
    edge: 'deliveries',
    filter: `deliveryId == '${deliveryOf(id)}'`,
    node: { navigate: [{ edge: 'order', require }] },
  })),
  (id) => ({
    edge: 'deliveries',
    filter: `deliveryId == '${deliveryOf(id)}'`,
    count: true,
    node: { navigate: [{ edge: 'order', filter: "customerNumber == 'north'", require: 'some' }] },
  }),
  (id) => ({ edge: 'orderJournalEntries', filter: only(id), count: true }),
]

interface Told {
  readonly answer: string
  readonly explained: string
}

/** The answer and the explanation of a question about each order, without what names it. */
async function askOfEach(
  node: InnerNode,
  token: string,
  question: (id: string) => object,
): Promise<readonly Told[]> {
  const told = async (path: string, id: string): Promise<string> => {
    const { text } = await node.ask(path, token, [question(id)])
    const bare = text.replaceAll(id, 'ID').replaceAll(deliveryOf(id), 'DELIVERY')
    return bare.replace(MILLISECONDS, '').replace(REQUEST, '')
  }
  const all: Told[] = []
  for (const id of DELIVERY_OF.keys()) {
    const answer = await told('/resources/graph', id)
    all.push({ answer, explained: await told('/resources/graph?explain', id) })
  }
  return all
}

t.test('the engine tells its queries to who sees all, and to nobody else', async (t) => {
  const node = await started(t, 'any')
  const told = async (entry: string): Promise<string> => {
    const token = await node.token(`${BESIDE} ${CUSTOMER} graph:explain ${entry}`)
    const { text } = await node.ask('/resources/graph?explain', token, [
      { edge: 'orders', orderBy: 'customerNumber', node: { fields: ['orderId'] } },
    ])
    return text
  }
  t.match(await told('graph/order:query'), /"queries":\[\{.*SELECT.*"runs":1/s)
  const narrowed = await told('customerNumber@graph/order:query')
  t.match(narrowed, /"queries":"hidden"/)
  t.notMatch(narrowed, /SELECT|SEARCH|"runs"/)
})

for (const setting of ['any', 'granted']) {
  t.test(`explanations, filters looking at ${setting} fields`, async (t) => {
    const node = await started(t, setting)
    let alike = 0
    for (const entries of ENTRIES.flatMap(([one]) => [one, `${one} ${CUSTOMER}`])) {
      const token = await node.token(`${BESIDE} graph:explain ${entries}`)
      for (const question of QUESTIONS) {
        const all = await askOfEach(node, token, question)
        // What entries go by is the caller's own, but its values may be those of others.
        const isAsked = JSON.stringify(question(NORTH)).includes("'north'")
        for (const { explained } of all) {
          t.notMatch(explained, isAsked ? IDS : SECRETS, `${entries}: ${explained}`)
        }
        const same = all.slice(1).filter(({ answer }) => answer === all[0]!.answer)
        alike += same.length
        for (const { explained, answer } of same) {
          t.equal(explained, all[0]!.explained, `${entries}: ${answer}`)
        }
      }
    }
    t.ok(alike > 100, `${alike} pairs of answers were alike`)
  })
}
