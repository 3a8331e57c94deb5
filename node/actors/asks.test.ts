// What the owner is asked, for one request and for a line of bulk: the messages that the caller may
// send, what it has to record of the others, and what of the graph the caller may see. Source:
// CONTRACT 0, 1.3.

import t from 'tap'
import { Acl, parseAce } from '../../protocol/ace.ts'
import type { ActorRequest } from '../../cluster/actor-system.ts'
import type { Identity } from '../access/identity.ts'
import type { OperationRequest } from '../http/operation.ts'
import { ActorSystemTwin } from '../testing/actor-system-twin.ts'
import { noteOrder } from '../testing/note-order.ts'
import { actorOperations } from './routes.ts'
import { SOMEBODY } from '../access/testing/sessions.ts'

const UUID = '0198c0de-7000-7abc-8def-0123456789ab'
const message = (type: string): object => ({ type, body: {} })
const order: typeof noteOrder = {
  ...noteOrder,
  messageTypes: [...noteOrder.messageTypes, 'query'],
}

function acl(...texts: string[]): Acl {
  return new Acl(
    texts.map((text) => {
      const parsed = parseAce(text)
      if (!parsed.ok) throw new Error(parsed.reason)
      return parsed.ace
    }),
  )
}

interface Asking {
  readonly who: Acl
  readonly id: string
  readonly messages: readonly object[]
  /** Of the caller; without one nothing is stored. */
  readonly key?: string
  /** What the caller may do by the time at which a line comes. */
  readonly since?: Acl
  /** Of an actor that is there. */
  readonly number?: string
}

/** What is asked for a request, and for the same as a line of bulk. */
async function asked(asking: Asking): Promise<ActorRequest[][]> {
  const { who, id, messages, key, number, since = who } = asking
  const found: ActorRequest[][] = []
  for (const path of ['/resources/actors/{type}/{id}', '/resources/actors/{type}']) {
    const system = new ActorSystemTwin([order])
    if (number !== undefined) {
      const body = { orderNumber: number }
      const create = {
        type: 'order',
        id: UUID,
        messages: [{ type: 'create', body }],
        preview: false,
      }
      await system.ask(create as unknown as ActorRequest)
      system.asked.length = 0
    }
    const operation = actorOperations({
      actorSystem: system,
      consistency: { encode: () => '' },
      world: {
        clock: { nowMs: () => 0, monotonicMs: () => 0, after: () => () => {}, defer: () => {} },
        random: () => {},
      },
    }).find((one) => one.path === path)!
    const identity: Identity = { ...SOMEBODY, id: 'shop', sessionId: UUID, acl: who }
    const request = {
      identity,
      params: { type: 'order', id },
      query: new URLSearchParams(key === undefined ? 'preview' : ''),
      header: () => key ?? '',
      body: messages,
      bodyFault: null,
      bodyBytes: Buffer.from(JSON.stringify(messages)),
      requestId: 'r-1',
      budgetMs: 1_000,
      aborted: () => false,
    } as unknown as OperationRequest
    if (operation.stream) {
      const bytes = Buffer.from(JSON.stringify({ id, messages, idempotencyKey: key }))
      const lines = (async function* () {
        yield { number: 1, bytes }
      })()
      await operation.stream(request, {
        lines,
        write: () => undefined,
        identityNow: () => ({ ...identity, acl: since }),
      })
    } else await operation.handle(request)
    found.push(system.asked)
  }
  return found
}

t.test('what the caller may not send goes along under a key only, at its place', async (t) => {
  const who = acl('actors/order:note')
  const messages = ['read', 'note', 'create', 'note'].map(message)
  for (const requests of await asked({ who, id: UUID, messages })) {
    t.equal(requests.length, 1)
    t.match(requests[0], { id: UUID, by: 'shop', preview: true })
    t.same(
      requests[0]!.messages.map(({ type }) => type),
      ['note', 'note'],
    )
    t.notOk('refused' in requests[0]!)
    t.notOk('graphAces' in requests[0]!)
  }
  for (const requests of await asked({ who, id: UUID, messages, key: 'k' })) {
    t.match(requests[0], { idempotencyKey: 'k', preview: false, messages })
    const codes = requests[0]!.refused!.map((result) => {
      return result === null || result.success ? null : result.errors[0]!.code
    })
    t.same(codes, ['UNAUTHORIZED_MESSAGE', null, 'UNAUTHORIZED_MESSAGE', null])
  }
})

t.test('what may be seen of the graph goes along with a query', async (t) => {
  const who = acl('actors/order:*', 'graph/order:query')
  const messages = ['read', 'query'].map(message)
  for (const requests of await asked({ who, id: UUID, messages })) {
    t.same(requests[0]!.graphAces, who.graphLists)
    t.ok(who.graphLists.flat().length > 0)
    t.notOk('refused' in requests[0]!, 'all of it goes')
    t.notOk('graphAttributes' in requests[0]!, 'which goes by no attribute')
  }
  const attributed = new Acl([...acl('actors/order:*', 'region@graph/order:query').aces], null, {
    region: ['north'],
    brand: ['a'],
  })
  for (const requests of await asked({ who: attributed, id: UUID, messages })) {
    t.same(requests[0]!.graphAces, [['region@graph/order:query']])
    t.same(requests[0]!.graphAttributes, { region: ['north'] })
  }
})

t.test('nobody is looked up where the UUID is known, or there is none yet', async (t) => {
  const who = acl('actors/order:note', `actors/order/${UUID}:read`)
  const messages = ['note', 'read'].map(message)
  for (const [id, wanted] of [
    [UUID, [['note', 'read']]],
    ['new', []],
    ['A', [['read'], ['note']]],
  ] as const) {
    for (const requests of await asked({ who, id, messages })) {
      const types = requests.map((one) => one.messages.map(({ type }) => type))
      t.same(types, wanted, id)
    }
  }
})

t.test('who was found to have the number is asked: it may be another one by then', async (t) => {
  const who = acl(`actors/order/${UUID}:note`)
  for (const key of [undefined, 'k']) {
    const asking = { who, id: 'A', messages: [message('note')], number: 'A' }
    for (const requests of await asked({ ...asking, ...(key && { key }) })) {
      t.same(
        requests.map((one) => one.id),
        ['A', UUID],
      )
    }
  }
})

t.test('a line shows of the graph what its caller may see when it comes', async (t) => {
  const who = acl('actors/order:*', 'graph/order:query')
  const since = acl('actors/order:*')
  const [once, line] = await asked({ who, since, id: UUID, messages: [message('query')] })
  t.same(once![0]!.graphAces, who.graphLists)
  t.same(line![0]!.graphAces, since.graphLists)
})
