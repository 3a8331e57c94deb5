// A very small order for tests of the stations: it has a number, and keeps what it is told. It
// stands in for commerce/, whose own tests are elsewhere.

import type {
  ActorRecord,
  RuntimeCall,
  Behaviour,
  Decision,
  Turn,
} from '../../protocol/behaviour.ts'
import { errorItem } from '../../protocol/errors.ts'
import type { ErrorCode, ErrorItem } from '../../protocol/errors.ts'
import type { Message } from '../../protocol/message.ts'

interface NoteOrder {
  readonly number: string
  readonly notes: readonly string[]
}

interface Body {
  readonly orderNumber?: string
  readonly note?: string
  readonly fail?: ErrorCode
}

function fail(code: ErrorCode, message: string): { ok: false; errors: readonly ErrorItem[] } {
  return { ok: false, errors: [errorItem(code, message)] }
}

function* decide(
  state: NoteOrder | null,
  message: Message,
  turn: Turn,
): Generator<RuntimeCall, Decision<NoteOrder>, unknown> {
  const body = (message.body ?? {}) as Body
  if (body.fail !== undefined) return fail(body.fail, 'as asked')
  if (message.type === 'create') {
    if (state !== null) return fail('ALREADY_EXISTS', 'it is there')
    const chosen = body.orderNumber
    const ask: RuntimeCall =
      chosen === undefined
        ? { call: 'number', keyType: 'order', prefix: 'O' }
        : { call: 'reserve', keyType: 'order', key: chosen }
    const answer = yield ask
    if (answer === false) return fail('ALREADY_EXISTS', 'the number is taken')
    const number = chosen ?? (answer as string)
    const records: ActorRecord[] = [{ t: 'created', number }]
    const data = { orderId: turn.actorId, orderNumber: number }
    return { ok: true, records, state: { number, notes: [] }, data }
  }
  if (message.type === 'read') return { ok: true, records: [], state: state!, data: state!.notes }
  const notes = [...state!.notes, body.note ?? '']
  const records: ActorRecord[] = [{ t: 'noted', note: body.note ?? '' }]
  return { ok: true, records, state: { ...state!, notes }, data: { count: notes.length } }
}

/** Messages: `create {orderNumber?}`, `note {note}`, `read`; a body's `fail` is failed with. */
export const noteOrder: Behaviour<NoteOrder> = {
  type: 'order',
  home: 'shards',
  messageTypes: ['create', 'note', 'read'],
  creates: ['create'],
  isRead: (type) => type === 'read',
  check: (message) =>
    message.body !== undefined && typeof message.body !== 'object'
      ? [errorItem('INVALID_MESSAGE_BODY', 'the body should be an object')]
      : null,
  chosenKey: (message) => {
    const key = (message.body as Body | undefined)?.orderNumber
    return key === undefined ? null : { keyType: 'order', key }
  },
  mayTake: (message) => {
    const key = (message.body as Body | null | undefined)?.orderNumber
    return key === undefined ? [] : [{ keyType: 'order', key }]
  },
  decide,
  evolve: (state, record) =>
    record.t === 'created'
      ? { number: record['number'] as string, notes: [] }
      : { ...state!, notes: [...state!.notes, record['note'] as string] },
  isDeleted: () => false,
  keys: (state) => [state.number],
  naturalKeys: (state) => [{ keyType: 'order', key: state.number }],
  toSnapshot: (state) => state,
  fromSnapshot: (snapshot) => snapshot as NoteOrder,
  nodeTypes: [],
  touched: () => [],
  project: () => null,
  nodes: () => [],
  history: () => [],
}
