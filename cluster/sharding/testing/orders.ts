// Orders on the shards of one member, asked as callers ask, for tests of natural keys.

import { orderBehaviour } from '../../../commerce/order/order.ts'
import type { OrderState } from '../../../commerce/order/state/state.ts'
import { LIMITS } from '../../../config/limits.ts'
import type { Behaviour, NaturalKey } from '../../../protocol/behaviour.ts'
import type { Reply } from '../../../protocol/message.ts'
import { startMember } from '../../testing/harness.ts'
import type { StartOptions, World } from '../../testing/harness.ts'

export type Kind = 'number' | 'reference'
export type Step = readonly [Kind, string | null]

export const KEY_TYPES = { number: 'order', reference: 'order!externalReference' } as const

/** Orders, and what callers do with their keys. */
export class Orders {
  world: World
  readonly #behaviour = orderBehaviour()
  #passing: Promise<void> | null = null

  private constructor(world: World) {
    this.world = world
  }

  static async start(options: StartOptions): Promise<Orders> {
    const behaviours = [orderBehaviour() as Behaviour]
    return new Orders(await startMember({ behaviours, ...options }))
  }

  /** Asks and waits until all that follows from it has been done. */
  async #ask(id: string, type: string, body: object, preview = false): Promise<Reply> {
    const asked = this.world.member.ask({
      type: 'order',
      id,
      messages: [{ type, body }],
      ...{ idempotencyKey: null, bodyHash: '', by: 'tester', preview, trace: 'test' },
      budgetMs: LIMITS.sharding.requestBudgetMs,
    })
    const said: Reply[] = []
    void asked.then((reply) => said.push(reply))
    while (said.length === 0) await this.#pass()
    return said[0]!
  }

  /** Lets time pass, once for all who wait. */
  #pass(): Promise<void> {
    this.#passing ??= this.world.clock.advance(50).finally(() => (this.#passing = null))
    return this.#passing
  }

  create(number: string | undefined, steps: readonly Step[] = []): Promise<Reply> {
    const chosen = number === undefined ? null : { orderNumber: number }
    const body = { currencyCode: 'EUR', taxIncluded: true, ...chosen, commands: commandsOf(steps) }
    return this.#ask('new', 'create', body)
  }

  change(id: string, steps: readonly Step[], failing = false): Promise<Reply> {
    const commands = commandsOf(steps)
    if (failing) commands.push({ type: 'deleteOrderLine', orderLineId: id })
    return this.#ask(id, 'applyCommands', { commands })
  }

  preview(id: string, steps: readonly Step[]): Promise<Reply> {
    return this.#ask(id, 'applyCommands', { commands: commandsOf(steps) }, true)
  }

  delete(id: string): Promise<Reply> {
    return this.#ask(id, 'delete', {})
  }

  /** The keys that an order has by its own state. */
  async keysOf(id: string): Promise<readonly NaturalKey[]> {
    await this.#ask(id, 'query', { fields: ['orderNumber'] })
    for (const { activations } of this.world.member.shards.values()) {
      const state = activations.get(id)?.state as OrderState | null | undefined
      if (state) return this.#behaviour.naturalKeys(state)
    }
    return []
  }

  /** The order that a number leads to. */
  async at(number: string): Promise<string | null> {
    const reply = await this.#ask(number, 'query', { fields: ['orderId'] })
    return reply.outcome === 'answered' ? reply.actorId : null
  }

  /** Who has the key by its row; null: it is free. */
  async holder(kind: Kind, key: string): Promise<string | null> {
    const row = await this.world.journal.derived.alias(KEY_TYPES[kind], key)
    return row?.claims[0]?.actorId ?? null
  }

  async restart(): Promise<void> {
    this.world = await this.world.restart()
    await this.flushed()
  }

  async flushed(): Promise<void> {
    await this.world.clock.advance(LIMITS.sharding.flushStoredMs * 3)
  }
}

function commandsOf(steps: readonly Step[]): object[] {
  return steps.map(([kind, value]) => {
    if (kind === 'reference') return { type: 'setExternalReference', value }
    if (value === null) return { type: 'generateOrderNumberByPrefix', prefix: 'P' }
    return { type: 'setOrderNumber', value }
  })
}

export function codeOf(reply: Reply): string {
  if (reply.outcome !== 'answered') return reply.outcome
  const result = reply.results.at(-1)!
  return result.success ? 'success' : result.errors[0]!.code
}

export function made(reply: Reply): { readonly id: string; readonly number: string } {
  if (reply.outcome !== 'answered' || !reply.results[0]?.success) {
    throw new Error(JSON.stringify(reply))
  }
  const { orderId, orderNumber } = reply.results[0].data as Record<string, string>
  return { id: orderId!, number: orderNumber! }
}
