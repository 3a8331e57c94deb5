// A steady load that remembers what it was told: orders made under numbers of their own, each with
// the answer it got. The check after it: nothing acknowledged is missing, and nothing is there
// twice.

import type { Test } from 'tap'
import { done } from './answers.ts'
import { atOnce } from './at-once.ts'
import type { Answer, NodeProcess } from './node-process.ts'
import { create, query } from './orders.ts'

export class Load {
  readonly #name: string
  readonly #workers: Promise<void>[]
  #stopped = false
  /** Numbers whose create was acknowledged. */
  readonly acknowledged: string[] = []
  /** Every answer, acknowledged or refused. */
  readonly answers: Answer[] = []
  /** Numbers whose request got no answer: they may be there or not. */
  readonly open: string[] = []

  constructor(node: NodeProcess, name: string, workers = 16) {
    this.#name = name
    this.#workers = Array.from({ length: workers }, (_, worker) => this.#work(node, worker))
  }

  async #work(node: NodeProcess, worker: number): Promise<void> {
    for (let i = 0; !this.#stopped; i++) {
      const number = `${this.#name}-${worker}-${i}`
      try {
        const answer = await node.order('new', [create({ orderNumber: number })])
        this.answers.push(answer)
        if (answer.status === 200) this.acknowledged.push(number)
      } catch {
        this.open.push(number)
        return
      }
    }
  }

  /** Resolves when every worker has ended: stopped, or cut off. */
  async ended(): Promise<void> {
    await Promise.all(this.#workers)
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await this.ended()
  }
}

/**
 * Checks that a node has every acknowledged order once, by its actor and in the graph, and beside
 * them at most those that got no answer.
 */
export async function checkKept(t: Test, node: NodeProcess, loads: readonly Load[]): Promise<void> {
  const kept = loads.flatMap(({ acknowledged }) => acknowledged)
  const open = new Set(loads.flatMap((load) => load.open))
  let missing = 0
  await atOnce(kept, async (number) => {
    const answer = await node.order(number, [query('orderNumber')])
    if (answer.status !== 200) missing++
  })
  t.equal(missing, 0, `${kept.length} were acknowledged, none is missing`)
  const last = await node.order('new', [create({ orderNumber: 'last' })])
  done(t, last)
  const { orders } = await node.graph<{ orders: number }>([{ edge: 'orders', count: true }], last)
  const [least, most] = [kept.length + 1, kept.length + 1 + open.size]
  t.ok(orders >= least && orders <= most, `${orders} in the graph, of ${least} to ${most}`)
}
