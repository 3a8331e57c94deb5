// What the owner is asked, for one request and for a line of bulk: the messages that the caller may
// send, at their places, and what of the graph the caller may see. Source: CONTRACT 0, 1.3.

import t from 'tap'
import { Acl, parseAce } from '../../protocol/ace.ts'
import type { ActorRequest } from '../../cluster/actor-system.ts'
import type { Identity } from '../access/identity.ts'
import type { OperationRequest } from '../http/operation.ts'
import { ActorSystemTwin } from '../testing/actor-system-twin.ts'
import { noteOrder } from '../testing/note-order.ts'
import { actorOperations } from './routes.ts'

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
}

/** What is asked for a request, and for the same as a line of bulk. */
async function asked({ who, id, messages }: Asking): Promise<ActorRequest[][]> {
  const found: ActorRequest[][] = []
  for (const path of ['/resources/actors/{type}/{id}', '/resources/actors/{type}']) {
    const system = new ActorSystemTwin([order])
    const operation = actorOperations({
      actorSystem: system,
      consistency: { encode: () => '' },
      world: {
        clock: { nowMs: () => 0, monotonicMs: () => 0, after: () => () => {}, defer: () => {} },
        random: () => {},
      },
    }).find((one) => one.path === path)!
    const identity: Identity = { id: 'shop', kind: 'client', sessionId: UUID, acl: who }
    const request = {
      identity,
      params: { type: 'order', id },
      query: new URLSearchParams('preview'),
      header: () => '',
      body: messages,
      bodyFault: null,
      bodyBytes: Buffer.from(JSON.stringify(messages)),
      requestId: 'r-1',
      budgetMs: 1_000,
      aborted: () => false,
    } as unknown as OperationRequest
    if (operation.stream) {
      const bytes = Buffer.from(JSON.stringify({ id, messages }))
      const lines = (async function* () {
        yield { number: 1, bytes }
      })()
      await operation.stream(request, {
        lines,
        write: () => undefined,
        identityNow: () => identity,
      })
    } else await operation.handle(request)
    found.push(system.asked)
  }
  return found
}

t.test('messages keep the places that they have in what the caller sent', async (t) => {
  const who = acl('actors/order:note')
  const messages = ['read', 'note', 'create', 'note'].map(message)
  for (const requests of await asked({ who, id: UUID, messages })) {
    t.match(requests, [
      {
        id: UUID,
        by: 'shop',
        preview: true,
        places: [1, 3],
        messages: [{ type: 'note' }, { type: 'note' }],
      },
    ])
    t.equal(requests.length, 1)
    t.notOk('graphAces' in requests[0]!)
  }
})

t.test('what may be seen of the graph goes along with a query', async (t) => {
  const who = acl('actors/order:*', 'graph/order:query')
  const messages = ['read', 'query'].map(message)
  for (const requests of await asked({ who, id: UUID, messages })) {
    t.same(requests[0]!.graphAces, who.graphLists)
    t.ok(who.graphLists.flat().length > 0)
    t.notOk('places' in requests[0]!, 'all of it goes')
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
