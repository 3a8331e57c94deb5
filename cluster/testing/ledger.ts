// A small actor type for tests of the runtime: a list of tokens with a natural key. Each write
// appends its token, so a history shows what was lost, doubled or reordered (PROTOCOL 4.1 K1).

import type { RuntimeCall, Behaviour, Decision, Effect, Turn } from '../../protocol/behaviour.ts'
import { errorItem } from '../../protocol/errors.ts'
import type { Address, Message } from '../../protocol/message.ts'
import { RecordShapes } from '../../protocol/entry/record-shape.ts'

export interface Ledger {
  readonly number: string
  readonly tokens: readonly string[]
  readonly deleted: boolean
}

type LedgerRecord =
  | { readonly t: 'opened'; readonly number: string }
  | { readonly t: 'appended'; readonly token: string }
  | { readonly t: 'renumbered'; readonly number: string }
  | { readonly t: 'deleted' }

/** One kind has none: it goes by names among the others. */
const SHAPES = new RecordShapes([
  { id: 1, t: 'opened', members: ['number'] },
  { id: 2, t: 'appended', members: ['token'] },
  { id: 3, t: 'deleted', members: [] },
])

function fold(state: Ledger | null, record: LedgerRecord): Ledger {
  switch (record.t) {
    case 'opened':
      return { number: record.number, tokens: [], deleted: false }
    case 'appended':
      return { ...state!, tokens: [...state!.tokens, record.token] }
    case 'renumbered':
      return { ...state!, number: record.number }
    case 'deleted':
      return { ...state!, deleted: true }
  }
}

function done(
  state: Ledger | null,
  records: readonly LedgerRecord[],
  data?: unknown,
): Decision<Ledger> {
  const next = records.reduce<Ledger | null>(fold, state)
  return { ok: true, records, state: next!, data }
}

function no(
  code: 'NOT_FOUND' | 'ALREADY_EXISTS' | 'INVALID_STATE',
  text: string,
): Decision<Ledger> {
  return { ok: false, errors: [errorItem(code, text)] }
}

/** To one ledger by its UUID, or by its number; `also`: tokens of further messages. */
interface Sending {
  readonly token: string
  readonly to?: string
  readonly toNumber?: string
  readonly also?: readonly string[]
  /** Opens the ledger that it goes to. */
  readonly open?: string
}

function effectsOf({ token, to, toNumber, also = [], open }: Sending): readonly Effect[] {
  const appends = [token, ...also].map((one) => ({ type: 'append', body: { token: one } }))
  const opening = { type: 'open', body: { number: open } }
  const messages: Message[] = open === undefined ? appends : [opening, ...appends]
  const type = 'ledger'
  const address: Address = toNumber === undefined ? { type, id: to! } : { type, key: toNumber }
  return [{ to: address, messages }]
}

/** Messages of a ledger, with what they may ask for on the way. */
function* decide(
  state: Ledger | null,
  message: Message,
  turn: Turn,
): Generator<RuntimeCall, Decision<Ledger>, unknown> {
  const body = (message.body ?? {}) as Record<string, string>
  if (message.type === 'open') {
    if (state) return no('ALREADY_EXISTS', 'is open')
    let number = body['number']
    if (number === undefined) {
      number = (yield { call: 'number', keyType: 'ledger', prefix: 'L' }) as string
    } else if (!(yield { call: 'reserve', keyType: 'ledger', key: number })) {
      return no('ALREADY_EXISTS', `${number} is taken`)
    }
    const records: LedgerRecord[] = [{ t: 'opened', number }]
    if (body['token']) records.push({ t: 'appended', token: body['token'] })
    return done(null, records, { id: turn.actorId, number })
  }
  if (!state || state.deleted) return no('NOT_FOUND', 'is not open')
  switch (message.type) {
    case 'append':
      if (body['wait']) yield { call: 'effects', hook: body['wait'], payload: null }
      if (body['unless'] && state.tokens.includes(body['unless'])) {
        return no('INVALID_STATE', `has ${body['unless']}`)
      }
      return done(state, [{ t: 'appended', token: body['token']! }], state.tokens.length + 1)
    case 'renumber': {
      const number = body['number']!
      if (!(yield { call: 'reserve', keyType: 'ledger', key: number })) {
        return no('ALREADY_EXISTS', `${number} is taken`)
      }
      if (body['fail']) return no('INVALID_STATE', 'as asked')
      return done(state, [{ t: 'renumbered', number }])
    }
    case 'send': {
      const decided = done(state, [{ t: 'appended', token: body['token']! }])
      return { ...decided, effects: effectsOf(message.body as Sending) } as Decision<Ledger>
    }
    case 'delete':
      return done(state, [{ t: 'deleted' }])
    case 'read':
      return done(state, [], state.tokens)
    case 'checkpoints': {
      const list = yield { call: 'checkpoints', limit: 100 }
      return done(state, [], list)
    }
    case 'at': {
      const past = (yield { call: 'state-at', checkpointId: body['id']! }) as Ledger | null
      return past ? done(state, [], past.tokens) : no('NOT_FOUND', 'no such checkpoint')
    }
    case 'crash':
      throw new Error('as asked')
    default:
      return no('INVALID_STATE', `${message.type} is not known`)
  }
}

export const ledger: Behaviour<Ledger> = {
  type: 'ledger',
  home: 'shards',
  messageTypes: ['open', 'append', 'renumber', 'send', 'delete', 'read', 'checkpoints', 'at'],
  creates: ['open'],
  isRead: (type) => type === 'read' || type === 'checkpoints' || type === 'at',
  check: () => null,
  chosenKey(message) {
    const { number } = (message.body ?? {}) as { number?: string }
    return message.type === 'open' && number !== undefined
      ? { keyType: 'ledger', key: number }
      : null
  },
  mayTake({ body }) {
    const { number } = (body ?? {}) as { number?: string }
    return number === undefined ? [] : [{ keyType: 'ledger', key: number }]
  },
  decide,
  shapes: SHAPES,
  evolve: (state, record) => fold(state, record as unknown as LedgerRecord),
  isDeleted: (state) => state.deleted,
  keys: (state) => [state.number],
  naturalKeys: (state) => [{ keyType: 'ledger', key: state.number }],
  toSnapshot: (state) => state,
  fromSnapshot: (snapshot) => snapshot as Ledger,
  nodeTypes: [],
  touched: () => [],
  project: () => null,
  nodes: () => [],
  history: () => [],
}
