// Requests to ledgers at the actors' stations, single or as a line of bulk, over a member with its
// journal in memory, as tests make them.

import { ledger } from '../../../cluster/testing/ledger.ts'
import { settle, startMember } from '../../../cluster/testing/harness.ts'
import type { World } from '../../../cluster/testing/harness.ts'
import { Acl, parseScope } from '../../../protocol/ace.ts'
import type { Behaviour } from '../../../protocol/behaviour.ts'
import { RequestError, errorItem } from '../../../protocol/errors.ts'
import type { ErrorItem } from '../../../protocol/errors.ts'
import type { Message, MessageResult } from '../../../protocol/message.ts'
import type { Operation, OperationRequest, OperationResponse } from '../../http/operation.ts'
import { actorOperations } from '../routes.ts'
import { SOMEBODY } from '../../access/testing/sessions.ts'

export interface Answer {
  readonly paths: readonly string[]
  readonly results: readonly MessageResult[]
  readonly errors?: readonly ErrorItem[]
}

/** One request. A body that is a text is no JSON. */
export interface Sent {
  readonly id: string
  readonly body: unknown
  /** Message types, of one actor with its UUID in front: `<uuid>:append`. */
  readonly may: readonly string[]
  readonly key?: string
  readonly by?: string
  readonly isBulk?: boolean
  readonly isPreview?: boolean
}

const shaped: Behaviour = {
  ...(ledger as Behaviour),
  check: ({ body }) =>
    typeof body === 'object' && body !== null && 'wrong' in body
      ? [errorItem('INVALID_MESSAGE_BODY', 'the body has a member "wrong"')]
      : null,
}

export const start = (seed = 1, isNasty = false): Promise<World> =>
  startMember({
    ...{ shards: 2, seed, behaviours: [shaped] },
    ...(isNasty ? { nasty: { drop: 0.1, double: 0.2, delay: 0.2 } } : null),
  })

export function operationsOf(world: World): readonly Operation[] {
  return actorOperations({
    actorSystem: world.member,
    consistency: { encode: () => '' },
    world: { clock: world.clock, random: () => undefined },
  })
}

function requestOf(sent: Sent): OperationRequest {
  const { id, body, may, key = '', by = 'shop', isPreview = false } = sent
  const ace = (type: string): string => `actors/ledger${type.includes(':') ? '/' : ':'}${type}`
  const scope = parseScope(may.map(ace).join(' '))
  const acl = new Acl(scope.ok ? scope.aces : [])
  return {
    identity: { ...SOMEBODY, id: by, sessionId: id, acl },
    params: { type: 'ledger', id },
    query: new URLSearchParams(isPreview ? 'preview' : ''),
    header: (name: string) => (name === 'idempotency-key' ? key : ''),
    body: typeof body === 'string' ? undefined : body,
    bodyFault: typeof body === 'string' ? new RequestError('MALFORMED_REQUEST', 'no JSON') : null,
    bodyBytes: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
    requestId: 'r',
    budgetMs: 5_000,
    aborted: () => false,
  } as unknown as OperationRequest
}

/** Sends a body as somebody who may send messages of these types. */
export async function post(
  world: World,
  sent: Sent,
  operations = operationsOf(world),
): Promise<Answer> {
  const { id, body, key, isBulk = false } = sent
  const request = requestOf(sent)
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
    ended = answering().then(
      ({ raw }) => (text = raw as string),
      (error: unknown) => {
        if (!(error instanceof RequestError)) throw error
        text = JSON.stringify({ paths: [], results: [], errors: error.errors })
      },
    )
  }
  const passing = { isOver: false }
  const over = (): void => void (passing.isOver = true)
  ended.then(over, over)
  while (!passing.isOver) await world.clock.advance(10)
  await ended
  return JSON.parse(text) as Answer
}

export const idOf = ({ paths }: Answer): string => paths[0]!.split('/').at(-1)!
export const append = (token: string): Message => ({ type: 'append', body: { token } })
export const OPEN = { body: [{ type: 'open', body: {} }], may: ['open'], key: 'o' }
export const open = async (world: World): Promise<string> =>
  idOf(await post(world, { id: 'new', ...OPEN }))

export async function tokens(world: World, id: string): Promise<unknown> {
  const reading = world.ask(id, [['read']])
  await settle()
  const reply = await reading
  return reply.outcome === 'answered' && (reply.results[0] as { data: unknown }).data
}

export const codes = ({ results, errors }: Answer): readonly string[] =>
  results.length === 0
    ? (errors ?? []).map(({ code }) => code)
    : results.map((one) => (one.success ? 'done' : one.errors[0]!.code))
