// Repeats of a request whose caller may send more, or less, than before: each message is known by
// its place in what the caller has sent, so it takes effect once and keeps its own answer. The
// stations over a member with its journal in memory. Source: CONTRACT 0 "Idempotency".

import t from 'tap'
import { seeded, settle, startMember } from '../../cluster/testing/harness.ts'
import type { World } from '../../cluster/testing/harness.ts'
import { Acl, parseScope } from '../../protocol/ace.ts'
import type { Message, MessageResult } from '../../protocol/message.ts'
import type { OperationRequest, OperationResponse } from '../http/operation.ts'
import { actorOperations } from './routes.ts'

interface Answer {
  readonly paths: readonly string[]
  readonly results: readonly MessageResult[]
}

const WRITES = ['append', 'renumber', 'send'] as const

/** Sends a body as somebody who may send messages of these types; as one line of bulk, or alone. */
async function post(
  world: World,
  id: string,
  sent: {
    readonly body: readonly Message[]
    readonly may: readonly string[]
    readonly key: string
  },
  isBulk = false,
): Promise<Answer> {
  const { body, may, key } = sent
  const scope = parseScope(may.map((type) => `actors/ledger:${type}`).join(' '))
  if (!scope.ok) throw new Error(scope.reason)
  const operations = actorOperations({
    actorSystem: world.member,
    consistency: { encode: () => '' },
    world: { clock: world.clock, random: () => undefined },
  })
  const request = {
    identity: { id: 'shop', kind: 'client', sessionId: id, acl: new Acl(scope.aces) },
    params: { type: 'ledger', id },
    query: new URLSearchParams(),
    header: (name: string) => (name === 'idempotency-key' ? key : ''),
    body,
    bodyBytes: Buffer.from(JSON.stringify(body)),
    requestId: 'r',
    budgetMs: 5_000,
    aborted: () => false,
  } as unknown as OperationRequest
  let text = ''
  let ended: Promise<unknown>
  if (isBulk) {
    const line = Buffer.from(JSON.stringify({ id, messages: body, idempotencyKey: key }))
    const lines = (async function* () {
      yield { number: 1, bytes: line }
    })()
    const write = (answer: string): undefined => void (text = answer)
    const bulk = operations.find(({ path }) => path === '/resources/actors/{type}')!
    const { identity } = request
    ended = Promise.resolve(bulk.stream!(request, { lines, write, identityNow: () => identity }))
  } else {
    const one = operations.find(({ path }) => path === '/resources/actors/{type}/{id}')!
    const answering = async (): Promise<OperationResponse> => one.handle(request)
    ended = answering().then(({ raw }) => (text = raw as string))
  }
  const passing = { isOver: false }
  const over = (): void => void (passing.isOver = true)
  ended.then(over, over)
  while (!passing.isOver) await world.clock.advance(10)
  await ended
  return JSON.parse(text) as Answer
}

const idOf = ({ paths }: Answer): string => paths[0]!.split('/').at(-1)!
const append = (token: string): Message => ({ type: 'append', body: { token } })

async function tokens(world: World, id: string): Promise<unknown> {
  const reading = world.ask(id, [['read']])
  await settle()
  const reply = await reading
  return reply.outcome === 'answered' && (reply.results[0] as { data: unknown }).data
}

t.test('a repeat with one message more than before runs that one alone', async (t) => {
  const world = await startMember({ shards: 1 })
  const id = idOf(
    await post(world, 'new', { body: [{ type: 'open', body: {} }], may: ['open'], key: 'o' }),
  )
  const body = [append('a'), { type: 'renumber', body: { number: 'N' } }, append('c')]
  const first = await post(world, id, { body, may: ['append'], key: 'k' })
  t.match(first.results, [{ data: 1 }, { errors: [{ code: 'UNAUTHORIZED_MESSAGE' }] }, { data: 2 }])
  const again = await post(world, id, { body, may: ['append', 'renumber'], key: 'k' })
  t.match(again.results, [
    { type: 'append', success: true, data: 1 },
    { type: 'renumber', success: true },
    { type: 'append', success: true, data: 2 },
  ])
  t.same(await tokens(world, id), ['a', 'c'])
  const fewer = await post(world, id, { body, may: ['renumber'], key: 'k' })
  t.match(fewer.results, [{ success: false }, { success: true }, { success: false }])
})

t.test('also what was made by a request whose first message was forbidden', async (t) => {
  const world = await startMember({ shards: 1 })
  const body = [append('early'), { type: 'open', body: { token: 'o' } }, append('late')]
  const first = await post(world, 'new', { body, may: ['open'], key: 'k' })
  t.match(first.results, [{ success: false }, { success: true }, { success: false }])
  const again = await post(world, 'new', { body, may: ['open', 'append'], key: 'k' })
  t.match(again.results, [{ errors: [{ code: 'NOT_FOUND' }] }, first.results[1], { data: 2 }])
  t.equal(idOf(again), idOf(first))
  t.same(await tokens(world, idOf(first)), ['o', 'late'])
})

t.test(
  'any bodies, any roles, any number of repeats: each message once, its own answer',
  async (t) => {
    for (let seed = 1; seed <= 40; seed++) {
      const chance = seeded(seed)
      const below = (n: number): number => Math.floor(chance() * n)
      let world = await startMember({ shards: 1, seed })
      const opened = { body: [{ type: 'open', body: {} }], may: ['open'], key: 'o' }
      const id = idOf(await post(world, 'new', opened))
      const body = Array.from({ length: 2 + below(5) }, (_, i): Message => {
        const type = ['append', 'renumber', 'send', 'read'][below(4)]!
        return { type, body: { token: `t${i}`, number: `${seed}-${below(3)}`, to: id } }
      })
      const recorded = new Map<number, MessageResult>()
      for (let round = 0; round < 4; round++) {
        const may = WRITES.filter(() => chance() < 0.6)
        const key = 'same'
        const { results } = await post(
          world,
          id,
          { body, may: [...may, 'read'], key },
          chance() < 0.5,
        )
        for (const [i, { type }] of body.entries()) {
          if (type === 'read') t.equal(results[i]!.success, true)
          else if (!(may as string[]).includes(type)) t.match(results[i], { success: false })
          else if (recorded.has(i)) t.strictSame(results[i], recorded.get(i), `seed ${seed}: ${i}`)
          else recorded.set(i, results[i]!)
        }
        if (chance() < 0.3) world = await world.restart()
      }
      await world.clock.advance(1_000)
      const kept = (await tokens(world, id)) as string[]
      // What is sent comes back as an effect, some time later: its token is there twice.
      const times = { append: 1, renumber: 0, send: 2, read: 0 } as Record<string, number>
      const due = body.flatMap(({ type }, i) =>
        recorded.has(i) ? Array.from({ length: times[type]! }, () => `t${i}`) : [],
      )
      t.strictSame(kept.toSorted(), due, `seed ${seed}`)
    }
  },
)
