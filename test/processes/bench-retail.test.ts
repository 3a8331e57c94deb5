// The bench's questions to a whole shop, asked of a node: each is answered right, and a wrong
// answer is found out. The shop is a small stand-in for the real file.

import t from 'tap'
import {
  COUNT_KINDS,
  countQuestions,
  PAGE_KINDS,
  pageQuestions,
} from '../../bench/retail/questions.ts'
import { phraseQuestions } from '../../bench/retail/phrases.ts'
import type { Question } from '../../bench/retail/questions.ts'
import { wholePageQuestions } from '../../bench/retail/questions.ts'
import type { Shop, ShopLine, ShopOrder } from '../../bench/retail/shop.ts'
import { standIn } from '../../bench/retail/stand-in.ts'
import { Rounds } from '../../bench/rounds.ts'
import { RETAIL_SCENARIO_NAMES } from '../../bench/scenarios/names.ts'
import { chosenScenarios } from '../../bench/scenarios/scenarios.ts'
import { Installation } from '../../bench/target/installation.ts'

const ROWS = 1_500

t.test('every question is answered right by a node', async (t) => {
  const settings = {
    ...{ scenarios: RETAIL_SCENARIO_NAMES, concurrencies: [1], seconds: 0.05, warmUpSeconds: 0 },
    ...{ runs: 1, rate: null, steadyRate: 1, steadySeconds: 1, soakRate: 1, soakMinutes: 1 },
    ...{ restartAtMinutes: null, growthOrders: 1, growthMinutes: 1, windowSeconds: 1, preload: 1 },
    ...{ watchers: 1, standing: 1, liveRate: 1, seenWithinMs: 1 },
    ...{ retailFile: null, retailRows: ROWS, floors: false, driver: 'embedded' as const },
  }
  const cases = await new Rounds({
    settings,
    scenarios: chosenScenarios(settings),
    install: (name) => Installation.start(name),
    tell: () => {},
  }).run()
  t.same(new Set(cases.map(({ name }) => name)), new Set(RETAIL_SCENARIO_NAMES))
  for (const { name, connections, runs } of cases) {
    t.same(runs[0]!.problems, [], `${name} @${connections}`)
  }
})

function order(n: number): ShopOrder {
  const orderId = `00000000-0000-7000-8000-00000000000${n}`
  const createdAt = new Date(Date.UTC(2011, 0, n)).toISOString()
  return { orderId, customerNumber: '1', orderState: 'confirmed', orderTotal: n, createdAt }
}

const line = (n: number): ShopLine => ({
  ...{ orderLineId: `0${n}`, productNumber: 'P', description: 'A HEART', quantity: 100 },
  orderLineTotal: n,
})

const SHOP: Shop = { orders: [1, 2, 3].map(order), lines: [1, 2, 3].map(line) }

/** Questions to the shop, and what it doesn't answer. */
const WRONG: readonly (readonly [Question, object])[] = [
  ...PAGE_KINDS.flatMap((kind): (readonly [Question, object])[] => {
    const [question] = pageQuestions(kind, SHOP)
    const isEmptyRight = kind === 'total' || kind === 'country'
    return isEmptyRight ? [] : [[question!, { orders: [], orderLines: [] }]]
  }),
  [pageQuestions('total', SHOP)[1]!, { orders: [order(2)] }],
  [
    pageQuestions('country', SHOP)[1]!,
    { orders: [{ ...order(1), deliveries: [{ deliveryAddress: { countryCode: 'GB' } }] }] },
  ],
  ...COUNT_KINDS.map(
    (kind) => [countQuestions(kind, SHOP)[0]!, { orders: 1, orderLines: 2 }] as const,
  ),
  ...phraseQuestions(SHOP).flatMap((question) => [
    [question, { orderLines: [] }] as const,
    [question, { orderLines: [{ productNumber: 'Q', description: null }] }] as const,
  ]),
  [wholePageQuestions(SHOP, 'navigation')[0]!, { orders: [{ ...order(1), deliveries: [] }] }],
  [wholePageQuestions(SHOP, 'graphql')[0]!, { data: { orders: [] } }],
]

t.test('a wrong answer is found out', async (t) => {
  for (const [question, answer] of WRONG) {
    t.type(
      question.fault(answer as Record<string, unknown>),
      'string',
      JSON.stringify(question.body),
    )
  }
})

t.test('a stand-in is the same each time, as many rows as asked for', async (t) => {
  const text = standIn(ROWS)
  t.equal(text, standIn(ROWS))
  const rows = text.trimEnd().split('\n').slice(1)
  t.equal(rows.length, ROWS)
  const column = (n: number): number => new Set(rows.map((row) => row.split(',')[n])).size
  t.ok(column(0) > 30 && column(1) > 15 && column(2) > 10 && column(6) > 10 && column(7) > 3)
})
