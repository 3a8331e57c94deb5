// An edge alone: what it sends is kept, and tests answer as owners would.

import { errorItem } from '../../../protocol/errors.ts'
import { uuidMaker } from '../../../protocol/ids.ts'
import type { Envelope, Reply, WireReply } from '../../../protocol/message.ts'
import { TestClock, seeded } from '../../testing/harness.ts'
import { ledger } from '../../testing/ledger.ts'
import { Edge } from '../edge.ts'
import type { Route } from '../routes.ts'

export const SHARDS = 2
export const idIn = (shard: number): string => `01900000-0000-7000-8000-00000000000${shard}`

export interface Sent {
  readonly to: string
  readonly shard: number
  readonly envelope: Envelope
  readonly respond: (reply: WireReply) => void
  /** Its owner may still run it. */
  isOpen: boolean
}

export interface Request {
  readonly trace: string
  readonly copies: Sent[]
  readonly replies: Reply[]
  readonly askedMs: number
  /** Copies before this one may be in the log of an owner that is gone. */
  lostBefore: number
  crashes: number
}

export const answered: WireReply = {
  outcome: 'answered',
  actorId: idIn(0),
  keys: [],
  results: [{ type: 'append', success: true, data: 1 }],
  position: { shard: 0, offset: 1 },
}
export const busy: WireReply = { outcome: 'refused', error: errorItem('TOO_BUSY', 'later') }
export const noKey: WireReply = { outcome: 'refused', error: errorItem('NOT_FOUND', 'no such key') }

export function makeEdge() {
  const clock = new TestClock()
  const chance = seeded(3)
  const make = uuidMaker((bytes) => {
    for (let i = 0; i < bytes.length; i++) bytes[i] = Math.floor(chance() * 256)
  })
  const requests = new Map<string, Request>()
  const world = {
    clock,
    requests,
    owner: { incarnation: 'a', epoch: 1 } as Route | null,
    once: new Set<string>(),
    edge: null as unknown as Edge,
    ask(id: string, more: { budgetMs?: number; open?: boolean } = {}): Request {
      const trace = `r${requests.size}`
      const request: Request = {
        trace,
        copies: [],
        replies: [],
        askedMs: clock.monotonicMs(),
        lostBefore: 0,
        crashes: 0,
      }
      requests.set(trace, request)
      const message = more.open ? { type: 'open', body: {} } : { type: 'append', body: {} }
      const asking = world.edge.ask({
        type: 'ledger',
        id,
        messages: [message],
        idempotencyKey: null,
        bodyHash: '',
        by: 'tester',
        preview: false,
        budgetMs: more.budgetMs ?? 10_000,
        trace,
      })
      void asking.then((reply) => request.replies.push(reply))
      return request
    },
  }
  world.edge = new Edge({
    behaviours: new Map([['ledger', ledger]]),
    shards: SHARDS,
    newUuid: (tail, mask) => make(1, tail, mask),
    gather: () => null,
    clock,
    route: () => world.owner,
    send: ({ incarnation }, shard, envelope, respond) => {
      const sent = { to: incarnation, shard, envelope, respond, isOpen: true }
      requests.get(envelope.trace)!.copies.push(sent)
    },
    deliversOnce: (incarnation) => world.once.has(incarnation),
    learn: (_, route) => void (world.owner = route),
  })
  return world
}

export type World = ReturnType<typeof makeEdge>
