// `?explain` tells apart only what answers do: two questions with the same answer have the same
// explanation, whoever asks. Source: CONTRACT 1.4 "Explain".

import { randomUUID } from 'node:crypto'
import t from 'tap'
import { BESIDE, DELIVERIES, ENTRIES, only, started } from './permissions/stage.ts'

const CUSTOMER = 'graph/order:field:customerNumber'
const MILLISECONDS = /"\w*ms":[\d.]+/gi
const REQUEST = /"requestId":"[^"]+"/

/** Of the north, of the south, of nobody. */
const DELIVERY_OF = new Map([...DELIVERIES, [randomUUID(), randomUUID()]])
const deliveryOf = (id: string): string => DELIVERY_OF.get(id)!

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

for (const setting of ['any', 'granted']) {
  t.test(`explanations, filters looking at ${setting} fields`, async (t) => {
    const node = await started(t, setting)
    let alike = 0
    for (const [entries] of ENTRIES) {
      for (const more of ['', ` ${CUSTOMER}`]) {
        const token = await node.token(`${BESIDE} graph:explain ${entries}${more}`)
        const told = async (path: string, body: object, id: string): Promise<string> => {
          const { text } = await node.ask(path, token, [body])
          const bare = text.replaceAll(id, 'ID').replaceAll(deliveryOf(id), 'DELIVERY')
          return bare.replace(MILLISECONDS, '').replace(REQUEST, '')
        }
        for (const question of QUESTIONS) {
          const all: { answer: string; explained: string }[] = []
          for (const id of DELIVERY_OF.keys()) {
            const body = question(id)
            const answer = await told('/resources/graph', body, id)
            all.push({ answer, explained: await told('/resources/graph?explain', body, id) })
          }
          for (const { answer, explained } of all.slice(1)) {
            if (answer !== all[0]!.answer) continue
            alike++
            t.equal(explained, all[0]!.explained, `${entries}: ${answer}`)
          }
        }
      }
    }
    t.ok(alike > 100, `${alike} pairs of answers were alike`)
  })
}
