// The same request twice, wherever and whenever: the first answer byte for byte, another body
// never. Two edges that take one number at a time, and a create that arrives when another has it.
// One order that everybody wants. Source: PROTOCOL 3.6, 3.10, 4.2 (F28, F30, F31, F34), CONTRACT 0
// "Idempotency".

import t from 'tap'
import type { Test } from 'tap'
import { randomUUID } from 'node:crypto'
import { ERRORS } from '../../protocol/errors.ts'
import { apply, create } from '../harness/orders.ts'
import type { Answer } from '../harness/node-process.ts'
import { tick, until } from '../harness/patience.ts'
import { AppendPicker } from './harness/cassandra-frames.ts'
import type { Cluster, ClusterMember } from './harness/cluster.ts'
import { quantile } from './probes.ts'
import { faults } from './scene.ts'

/** More at once than an actor's mailbox takes (LIMITS.sharding.actorInFlightMax). */
const HOT = 200

interface Sent {
  readonly path: string
  readonly body: unknown
  readonly key: string
  readonly first: Answer
}

function send(member: ClusterMember, { path, body, key }: Omit<Sent, 'first'>): Promise<Answer> {
  return member.ask(path, { body, headers: { 'Idempotency-Key': key }, timeoutMs: 15_000 })
}

function said({ status, text }: Answer): string {
  return `${status} ${text.replace(/,"requestId":"[^"]*"/, '')}`
}

/** A create, a command and a rejection, each with its first answer. */
async function threeRequests(cluster: Cluster, number: string): Promise<Sent[]> {
  const order = `/resources/actors/order/${number}`
  const [a, b, c] = cluster.up
  const sent: Sent[] = []
  const bodies = [
    ['/resources/actors/order/new', [create({ orderNumber: number })]],
    [order, [apply({ type: 'addTag', key: 'one' })]],
    [
      order,
      [apply({ type: 'addTag', key: 'two' }, { type: 'deleteDelivery', deliveryId: randomUUID() })],
    ],
  ] as const
  for (const [i, [path, body]] of bodies.entries()) {
    const request = { path, body, key: randomUUID() }
    sent.push({ ...request, first: await send([a, b, c][i]!, request) })
  }
  return sent
}

async function repeatEverywhere(
  t: Pick<Test, 'equal'>,
  cluster: Cluster,
  sent: readonly Sent[],
  when: string,
): Promise<void> {
  for (const request of sent) {
    for (const member of cluster.up) {
      const again = await send(member, request)
      t.equal(said(again), said(request.first), `${when}, over ${member.name}: ${request.path}`)
    }
    // Another body for the same number: else it would be another key (CONTRACT 0).
    const text = JSON.stringify(request.body)
    const other = {
      ...request,
      body: JSON.parse(text.replace(/"(EUR|one|two)"/, '"SEK"')) as unknown,
    }
    const answer = await send(cluster.up[0]!, other)
    t.equal(answer.status, ERRORS.IDEMPOTENCY_MISMATCH.status, `${when}: another body`)
  }
}

faults(t, {
  'the same key again': async ({ t, cluster, probes, others }) => {
    others.orders += 1
    const sent = await threeRequests(cluster, 'KEY-1')
    t.same(
      sent.map(({ first }) => first.status),
      [200, 200, 422],
      'made, changed, rejected',
    )
    await repeatEverywhere(t, cluster, sent, 'at once')
    await tick(1_000)
    await repeatEverywhere(t, cluster, sent, 'after a second')
    const victim = await cluster.ownerOfMost()
    await cluster.kill(victim)
    await probes.allAnswer()
    await repeatEverywhere(t, cluster, sent, `after the death of ${victim}`)
    await cluster.start(victim)
    // Nothing of what is in memory now was there when they were first answered.
    for (const name of ['a', 'b', 'c']) {
      await cluster.stop(name)
      await cluster.start(name)
    }
    await cluster.settled()
    await repeatEverywhere(t, cluster, sent, 'after every member was restarted')
  },

  'the same key at the same time, over all members': async ({ t, cluster, others }) => {
    others.orders += 10
    for (let round = 0; round < 10; round++) {
      const request = {
        path: '/resources/actors/order/new',
        body: [create({ orderNumber: `TWIN-${round}` })],
        key: randomUUID(),
      }
      const answers = await Promise.all(
        [...cluster.up, ...cluster.up].map((member) => send(member, request)),
      )
      t.equal(new Set(answers.map(said)).size, 1, `round ${round}: all were answered alike`)
      t.equal(answers[0]!.status, 200)
    }
  },

  'one number, two edges': async ({ t, cluster, others }) => {
    others.orders += 20
    for (let round = 0; round < 20; round++) {
      const body = [create({ orderNumber: `RACE-${round}` })]
      const ask = (member: ClusterMember): Promise<Answer> =>
        send(member, { path: '/resources/actors/order/new', body, key: randomUUID() })
      const answers = await Promise.all(cluster.up.map(ask))
      const statuses = answers.map(({ status }) => status).toSorted((a, b) => a - b)
      t.same(statuses, [200, 409, 409], `round ${round}: one of them got it`)
    }
  },

  'a create that applies late': async ({ t, cluster, probes, others }) => {
    others.orders += 1
    const number = 'LATE-1'
    const request = {
      path: '/resources/actors/order/new',
      body: [create({ orderNumber: number })],
      key: randomUUID(),
    }
    // Appends of everybody are held: the create is on its way when its owner is declared dead.
    const pickers = cluster.up.map((member) => {
      const picker = new AppendPicker()
      member.ways.cassandra.hold('requests', picker.requests)
      return picker
    })
    const first = send(cluster.up[0]!, request).then(said, (error: Error) => error.name)
    await until('appends are held', () => pickers.every(({ seen }) => seen > 0))
    await tick(4_000)
    cluster.heal()
    await first
    await probes.allAnswer()
    const again = await send(cluster.up[1]!, request)
    t.equal(again.status, 200, 'its repeat is answered')
    const rival = await send(cluster.up[2]!, { ...request, key: randomUUID() })
    t.equal(rival.status, 409, 'nobody else gets the number')
  },

  'one order that everybody wants': async ({ t, cluster, load, others }) => {
    others.orders += 1
    const made = await cluster.up[0]!.node.order('new', [create({ orderNumber: 'HOT' })])
    t.equal(made.status, 200)
    const end = new AbortController()
    const statuses = new Map<number, number>()
    const hot = Array.from({ length: HOT }, async (_, i) => {
      for (let n = 0; !end.signal.aborted; n++) {
        const member = cluster.up[(i + n) % cluster.up.length]!
        const body = [apply({ type: 'addTag', key: `t${n % 50}` })]
        const answer = await member.ask('/resources/actors/order/HOT', {
          body,
          timeoutMs: 40_000,
        })
        statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1)
        if (answer.status === 429) await tick(20)
      }
    })
    const from = load.history.operations.length
    await until('others go on', () => load.history.operations.length > from + 400, 30_000)
    end.abort()
    await Promise.all(hot)
    const text = [...statuses].map(([status, n]) => `${n} x ${status}`).join(', ')
    t.same(
      [...statuses.keys()].filter((status) => status !== 200 && status !== 429),
      [],
      `the hot order: ${text}`,
    )
    const beside = load.history.operations.slice(from).flatMap(({ attempts }) => attempts)
    t.notOk(
      beside.find(({ outcome }) => outcome !== 'ok'),
      'nobody else is refused anything',
    )
    const took = beside.map(({ tookMs }) => tookMs)
    t.comment(`others: p50 ${quantile(took, 0.5)} ms, p99 ${quantile(took, 0.99)} ms`)
  },
})
