// The sample orders of a first start: creates the orders of the bundled file through the actor
// system. A load that was cut off by a crash goes on at the next start: a marker says that it had
// begun, and each order's idempotency key and number make repeats harmless. Source: CONTRACT 0
// (KONTOR_SAMPLE).

import { hash } from 'node:crypto'
import { LIMITS } from '../../config/limits.ts'
import type { ActorSystem } from '../../cluster/actor-system.ts'
import type { ErrorItem } from '../../protocol/errors.ts'
import { isRetryable } from '../../protocol/errors.ts'
import { SYSTEM_SHARD } from '../../protocol/ids.ts'
import type { Reply } from '../../protocol/message.ts'

/** Where it is kept that a load has begun or is done: survives a crash. */
export interface SampleMarker {
  read(): 'begun' | 'done' | null
  write(state: 'begun' | 'done'): void
}

export interface SampleOptions {
  readonly actorSystem: ActorSystem
  /** Text of the sample file, asked for only when it is to be loaded. */
  readonly readText: () => string
  readonly marker: SampleMarker
  /** Identity in whose name the orders are made. */
  readonly by: string
  /** Resolves after so many milliseconds; injected so that tests need not wait. */
  readonly delay: (ms: number) => Promise<void>
}

/** `skipped`: the store is in use already, or its sample was loaded before. */
export type SampleOutcome =
  | { readonly outcome: 'loaded'; readonly orders: number }
  | { readonly outcome: 'skipped' }
  | { readonly outcome: 'failed'; readonly reason: string }

export interface SampleOrder {
  /** Of its `create` message. */
  readonly body: unknown
  readonly idempotencyKey: string
  /** Hash-like text of the whole request, for the comparison of repeats. */
  readonly bodyHash: string
}

/**
 * The orders of a text with a `create` body a line. The key is made of the line: another content is
 * another order. Throws a SyntaxError for a line that is no JSON.
 */
export function sampleOrders(text: string): readonly SampleOrder[] {
  const lines = text.split('\n').filter((line) => line !== '')
  return lines.map((line) => {
    const key = `sample-${hash('sha256', line, 'hex').slice(0, 40)}`
    return { body: JSON.parse(line) as unknown, idempotencyKey: key, bodyHash: key }
  })
}

/**
 * Loads the sample into an empty store. Never throws; the node is ready once this is not failed.
 */
export async function loadSample(options: SampleOptions): Promise<SampleOutcome> {
  const { marker } = options
  try {
    const state = marker.read()
    if (state === 'done' || (state === null && !isEmpty(options.actorSystem))) {
      return { outcome: 'skipped' }
    }
    marker.write('begun')
    const orders = sampleOrders(options.readText())
    const failure = await createAll(orders, options)
    if (failure !== null) {
      return { outcome: 'failed', reason: `${failure.code}: ${failure.message}` }
    }
    marker.write('done')
    return { outcome: 'loaded', orders: orders.length }
  } catch (error) {
    return { outcome: 'failed', reason: error instanceof Error ? error.message : String(error) }
  }
}

/** No shard has an entry; the system shard has some from the first moment (its first client). */
function isEmpty(actorSystem: ActorSystem): boolean {
  return actorSystem.heads().every((head) => head.shard === SYSTEM_SHARD || head.offset === 0)
}

/** Creates the orders, some at a time; the first failure that stays one ends it. */
async function createAll(
  orders: readonly SampleOrder[],
  options: SampleOptions,
): Promise<ErrorItem | null> {
  let next = 0
  let failure: ErrorItem | null = null
  const work = async (): Promise<void> => {
    while (next < orders.length && failure === null) {
      const error = await create(orders[next++]!, options)
      failure ??= error
    }
  }
  await Promise.all(Array.from({ length: LIMITS.sample.inFlightMax }, work))
  return failure
}

async function create(order: SampleOrder, options: SampleOptions): Promise<ErrorItem | null> {
  for (let attempt = 1; ; attempt++) {
    const reply = await options.actorSystem.ask({
      type: 'order',
      id: 'new',
      messages: [{ type: 'create', body: order.body }],
      idempotencyKey: order.idempotencyKey,
      bodyHash: order.bodyHash,
      by: options.by,
      preview: false,
      budgetMs: LIMITS.sharding.requestBudgetMs,
      trace: 'sample',
    })
    const error = failureOf(reply)
    if (error === null) return null
    const again = reply.outcome === 'unknown' || isRetryable(error.code)
    if (!again || attempt === LIMITS.sample.attemptsMax) return error
    await options.delay(Math.min(100 * 2 ** attempt, 5_000))
  }
}

function failureOf(reply: Reply): ErrorItem | null {
  if (reply.outcome !== 'answered') return reply.error
  const result = reply.results[0]!
  if (result.success) return null
  const error = result.errors[0]!
  // Its key is older than the journal remembers keys, but the order is in: a load that went on.
  return error.code === 'ALREADY_EXISTS' ? null : error
}
