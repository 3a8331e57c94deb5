// What is asked of a whole shop: filtered and sorted pages, counts, phrases, and pages of orders
// with all that belongs to them, by GraphQL and by navigation. Source: ARCHITECTURE 8.

import type { BenchSettings } from '../options.ts'
import { post } from '../load/requests.ts'
import { phraseQuestions } from '../retail/phrases.ts'
import {
  COUNT_KINDS,
  countQuestions,
  PAGE_KINDS,
  pageQuestions,
  wholePageQuestions,
  type Question,
} from '../retail/questions.ts'
import { openShop, type Shop } from '../retail/shop.ts'
import { QUERIES } from '../target/metrics.ts'
import type { Installation } from '../target/installation.ts'
import { loadInTurn, requestScenario, type Scenario } from './scenario.ts'

const CONNECTIONS = [1, 4]
/** Of its questions so many are asked once more after a run, and their answers looked at. */
const VERIFIED = 12

/** The shop of a node, loaded once by the first scenario that needs it. */
class SharedShop {
  #shop: Promise<Shop> | null = null
  readonly #settings: BenchSettings

  constructor(settings: BenchSettings) {
    this.#settings = settings
  }

  open(installation: Installation): Promise<Shop> {
    this.#shop ??= openShop(installation, this.#settings)
    return this.#shop
  }
}

export function retailScenarios(settings: BenchSettings): readonly Scenario[] {
  const shared = new SharedShop(settings)
  const asking = (name: string, questionsOf: (shop: Shop) => readonly Question[]): Scenario => {
    let questions: readonly Question[] = []
    return requestScenario(settings, {
      name,
      node: 'retail',
      connections: CONNECTIONS,
      floors: ['http'],
      async prepare(installation) {
        questions = questionsOf(await shared.open(installation))
      },
      load: (run) =>
        loadInTurn(run, (to) =>
          questions.map(({ path, body }) => ({ kind: 'read', bytes: post(to, path, body) })),
        ),
      verify: (installation) => verify(installation, questions),
    })
  }
  return [
    ...PAGE_KINDS.map((kind) =>
      asking(`graph-filter-${kind}`, (shop) => pageQuestions(kind, shop)),
    ),
    ...COUNT_KINDS.map((kind) =>
      asking(`graph-count-${kind}`, (shop) => countQuestions(kind, shop)),
    ),
    asking('graph-phrase', phraseQuestions),
    asking('graphql-page', (shop) => wholePageQuestions(shop, 'graphql')),
    asking('graphql-page-navigation', (shop) => wholePageQuestions(shop, 'navigation')),
  ]
}

/** Asks some again: each must be answered right, by one query of the graph. */
async function verify(
  installation: Installation,
  questions: readonly Question[],
): Promise<readonly string[]> {
  const problems: string[] = []
  const step = Math.ceil(questions.length / VERIFIED)
  const asked = questions.filter((_, n) => n % step === 0)
  const before = (await installation.metrics())?.get(QUERIES)
  for (const { path, body, fault } of asked) {
    const found = fault(await installation.post<Record<string, unknown>>(path, body))
    if (found !== null) problems.push(found)
  }
  const after = (await installation.metrics())?.get(QUERIES)
  if (before === undefined || after === undefined || after - before === asked.length)
    return problems
  return [...problems, `${asked.length} questions were ${after - before} queries`]
}
