// What the long loads share: new orders for as long as it takes, and a sample of those that were
// acknowledged, read back at the end.

import type { AnswerSample } from '../load/sample.ts'
import { inTurn, type PreparedRequest } from '../load/requests.ts'
import type { Installation } from '../target/installation.ts'
import { readWhole, type OrderKeys } from './reads.ts'
import { creates } from './writes.ts'

/** Orders are sent over so many connections. */
export const LONG_CONNECTIONS = 64
/** Of all acknowledged orders so many at most are kept. */
export const SAMPLED_MAX = 400
/** A token lasts an hour; requests hold one that an installation has renewed in half of it. */
const RENEW_MS = 31 * 60_000

export interface NewOrders {
  readonly next: () => PreparedRequest
  /** No more are needed. */
  end(): void
}

/** Requests for new orders, whose token is renewed in time. */
export async function newOrders(installation: Installation): Promise<NewOrders> {
  let next = inTurn(creates(await installation.destination()))
  const timer = setInterval(() => {
    installation.destination().then(
      (to) => (next = inTurn(creates(to))),
      // The token at hand is good for as long again.
      () => {},
    )
  }, RENEW_MS)
  return { next: () => next(), end: () => clearInterval(timer) }
}

/** Each order of the sample must have its first entry in the journal, and be whole in the graph. */
export async function readBack(
  installation: Installation,
  sample: AnswerSample,
): Promise<readonly string[]> {
  if (sample.answers.length === 0) return ['no acknowledged order was kept to be read back']
  const problems: string[] = []
  for (const answer of sample.answers) {
    const { data: order } = JSON.parse(answer) as { data: OrderKeys }
    try {
      const { data } = await installation.post<{ data: readonly unknown[] }>(
        `/resources/actors/order/${order.orderId}`,
        [{ type: 'getCheckpoints' }],
      )
      if (data.length === 0) problems.push(`order ${order.orderNumber} has no checkpoint`)
      problems.push(...(await readWhole(installation, order)))
    } catch (error) {
      problems.push(`order ${order.orderNumber}: ${(error as Error).message}`)
    }
  }
  return problems
}
