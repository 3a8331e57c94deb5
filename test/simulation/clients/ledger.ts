// The actors of a simulation: a ledger is a list of tokens, each appended by one message, so that
// its history shows what was lost, doubled or reordered; with a natural key, batches, messages that
// are rejected depending on the state, messages to other ledgers, and graph nodes. A flag is its
// like in the `system` shard. The checkers fold the same records as the runtime. Source: PROTOCOL
// 4.1 (K1, K3, K5, K9).

import type {
  ActorRecord,
  RuntimeCall,
  Behaviour,
  ConfigurationView,
  Decision,
  Effect,
  NodeDoc,
  NodeRef,
  SystemState,
  Turn,
} from '../../../protocol/behaviour.ts'
import { errorItem } from '../../../protocol/errors.ts'
import type { ErrorCode } from '../../../protocol/errors.ts'
import type { NodeType } from '../../../protocol/graph/node-type.ts'
import type { Message } from '../../../protocol/message.ts'
import { RecordShapes } from '../../../protocol/entry/record-shape.ts'

export interface Ledger {
  readonly id: string
  readonly number: string
  /** Never shortened: what was appended, in order. */
  readonly tokens: readonly string[]
  /** Tokens whose graph nodes are gone. */
  readonly struck: readonly string[]
  readonly deleted: boolean
}

/** Body of every message; each uses some. */
export interface LedgerBody {
  readonly token?: string
  readonly number?: string
  /** Of a flag: rejected unless that flag says `yes`. */
  readonly needs?: string
  /** Rejected unless at least so many tokens are there. */
  readonly atLeast?: number
  /** Rejected when so many tokens are there. */
  readonly below?: number
  /** Tokens of a batch: `token.0` to `token.<n - 1>`. */
  readonly marks?: number
  /** UUID, or number, of another ledger, which gets the token too. */
  readonly to?: string
  readonly toNumber?: string
  /** So many messages to it, of one effect: `token>`, `token>1`, ... */
  readonly relays?: number
  /** The last of them throws there. */
  readonly explodes?: boolean
  /** Numbers that it has on the way to its last one. */
  readonly through?: readonly string[]
  /** Makes a body unlike all others. */
  readonly nonce?: string
  /** The answer is longer than a mark holds. */
  readonly long?: boolean
  /** Under a key: its edge refuses it each first time of two, as of a caller whose role changes. */
  readonly refused?: boolean
  /** The turn waits for rules first. */
  readonly waits?: boolean
}

export function emptyLedger(id: string, number: string): Ledger {
  return { id, number, tokens: [], struck: [], deleted: false }
}

export function foldLedger(state: Ledger | null, record: ActorRecord): Ledger {
  if (record.t === 'opened') return emptyLedger(String(record['id']), String(record['number']))
  if (state === null) throw new Error(`${record.t} before it was opened`)
  switch (record.t) {
    case 'appended':
      return { ...state, tokens: [...state.tokens, String(record['token'])] }
    case 'struck':
      return { ...state, struck: [...state.struck, String(record['token'])] }
    case 'renumbered':
      return { ...state, number: String(record['number']) }
    case 'deleted':
      return { ...state, deleted: true }
    default:
      throw new Error(`unknown record ${record.t}`)
  }
}

type LedgerDecision = Decision<Ledger>

/** What a long answer has behind the short one. */
const LONG = ' and so on'.repeat(40)

/** The text of a refusal. */
export function refusalText(text: string, { long }: LedgerBody): string {
  return long ? text + LONG : text
}

/** The answer to a change of the tokens: how many there are. */
export function sizeData(size: number, { long }: LedgerBody): unknown {
  return long ? { size, text: LONG } : size
}

function done(
  state: Ledger | null,
  records: readonly ActorRecord[],
  more: Partial<Extract<LedgerDecision, { ok: true }>> = {},
): LedgerDecision {
  const next = records.reduce<Ledger | null>(foldLedger, state)!
  return { ok: true, records, state: next, data: next.tokens.length, ...more }
}

function no(code: ErrorCode, text: string): Extract<LedgerDecision, { ok: false }> {
  return { ok: false, errors: [errorItem(code, text)] }
}

function* decide(
  state: Ledger | null,
  message: Message,
  turn: Turn,
): Generator<RuntimeCall, LedgerDecision, unknown> {
  const body = (message.body ?? {}) as LedgerBody
  if (message.type === 'open') return yield* open(state, body, turn)
  if (state === null || state.deleted) return no('NOT_FOUND', 'is not open')
  if (body.waits) yield { call: 'effects', hook: 'wait', payload: null }
  const { length } = state.tokens
  if (body.atLeast !== undefined && length < body.atLeast) {
    return no('INVALID_STATE', refusalText(`has ${length} tokens, not ${body.atLeast}`, body))
  }
  if (body.below !== undefined && length >= body.below) {
    return no('INVALID_STATE', refusalText(`has ${length} tokens already`, body))
  }
  switch (message.type) {
    case 'append':
      return changed(state, body)
    case 'strike': {
      const token = state.tokens.find((one) => !state.struck.includes(one))
      if (token === undefined) return no('INVALID_STATE', 'has nothing to strike')
      return done(state, [{ t: 'struck', token }])
    }
    case 'renumber':
      return yield* renumber(state, body)
    case 'send':
      return changed(state, body, [effectOf(body)])
    case 'explode':
      throw new Error('this turn throws')
    case 'delete':
      return done(state, [{ t: 'deleted', nodes: nodesOfLedger(state) }])
    case 'read':
      return done(state, [], { data: { number: state.number, tokens: state.tokens } })
    default:
      return no('INVALID_STATE', `${message.type} is not known`)
  }
}

function changed(state: Ledger, body: LedgerBody, effects: readonly Effect[] = []): LedgerDecision {
  const records = marksOf(body).map(appended)
  const data = sizeData(state.tokens.length + records.length, body)
  return done(state, records, { data, ...(effects.length > 0 && { effects }) })
}

function effectOf(body: LedgerBody): Effect {
  const { to, toNumber } = body
  const messages: Message[] = relayedTokens(body).map((token) => {
    return { type: 'append', body: { token } }
  })
  if (body.explodes) messages.push({ type: 'explode', body: {} })
  const address = to === undefined ? { key: toNumber! } : { id: to }
  return { to: { type: 'ledger', ...address }, messages }
}

/** The tokens that a sent one becomes at its target. */
export function relayedTokens({ token, relays = 1 }: LedgerBody): readonly string[] {
  return Array.from({ length: relays }, (_, i) => `${token!}>${i === 0 ? '' : i}`)
}

function* open(
  state: Ledger | null,
  body: LedgerBody,
  turn: Turn,
): Generator<RuntimeCall, LedgerDecision, unknown> {
  if (state !== null) return no('ALREADY_EXISTS', 'is open')
  let { number } = body
  if (number === undefined) {
    number = (yield { call: 'number', keyType: 'ledger', prefix: 'G' }) as string
  } else if (!(yield { call: 'reserve', keyType: 'ledger', key: number })) {
    return no('ALREADY_EXISTS', `${number} is taken`)
  }
  const taken = yield* reserveAll(body.through ?? [])
  if (taken !== null) return no('ALREADY_EXISTS', `${taken} is taken`)
  if (body.waits) yield { call: 'effects', hook: 'wait', payload: null }
  const opened = { t: 'opened', id: turn.actorId, number }
  const records = [opened, ...(body.through ?? []).map(renumbered), ...marksOf(body).map(appended)]
  return done(null, records, { data: { id: turn.actorId, number } })
}

/** The first of these numbers that another ledger has. */
function* reserveAll(numbers: readonly string[]): Generator<RuntimeCall, string | null, unknown> {
  for (const key of numbers) {
    if (!(yield { call: 'reserve', keyType: 'ledger', key })) return key
  }
  return null
}

function renumbered(number: string): ActorRecord {
  return { t: 'renumbered', number }
}

function* renumber(
  state: Ledger,
  body: LedgerBody,
): Generator<RuntimeCall, LedgerDecision, unknown> {
  const numbers = [...(body.through ?? []), body.number!]
  if (numbers[0] === state.number) return no('INVALID_STATE', 'has that number')
  const taken = yield* reserveAll(numbers)
  if (taken !== null) return no('ALREADY_EXISTS', `${taken} is taken`)
  if (body.waits) yield { call: 'effects', hook: 'wait', payload: null }
  return done(state, numbers.map(renumbered))
}

/** The tokens that a message appends. */
export function marksOf({ token, marks }: LedgerBody): readonly string[] {
  if (token === undefined) return []
  if (marks === undefined) return [token]
  return Array.from({ length: marks }, (_, i) => `${token}.${i}`)
}

function appended(token: string): ActorRecord {
  return { t: 'appended', token }
}

/** One kind has none, and one has a member without a position: they go by names. */
const SHAPES = new RecordShapes([
  { id: 1, t: 'opened', members: ['number'] },
  { id: 2, t: 'appended', members: ['token'] },
  { id: 3, t: 'struck', members: ['token'] },
  { id: 4, t: 'deleted', members: ['nodes'] },
])

const nodeTypes: readonly NodeType[] = [
  {
    name: 'ledger',
    set: 'ledgers',
    idField: 'ledgerId',
    root: true,
    fields: [
      { name: 'ledgerId', type: 'uuid', indexed: true },
      { name: 'number', type: 'text', indexed: true },
      { name: 'size', type: 'number' },
    ],
    edges: [
      {
        ...{ name: 'tokens', node: 'token', cardinality: 'many', sameActor: true },
        ...{ from: 'ledgerId', to: 'ledgerId' },
      },
    ],
    storage: { kind: 'row' },
  },
  {
    name: 'token',
    set: 'tokens',
    idField: 'token',
    fields: [
      { name: 'token', type: 'text' },
      { name: 'ledgerId', type: 'uuid', indexed: true },
      { name: 'place', type: 'number' },
    ],
    edges: [],
    storage: { kind: 'row' },
  },
]

function touched(record: ActorRecord, actorId: string): readonly NodeRef[] {
  const self = { node: 'ledger', id: actorId }
  if (record.t === 'deleted') return record['nodes'] as readonly NodeRef[]
  const token = { node: 'token', id: String(record['token']) }
  if (record.t === 'struck') return [token]
  return record.t === 'appended' ? [self, token] : [self]
}

/** A node's content in a state, or null: what the index must show (K5). */
export function projectLedger(state: Ledger, ref: NodeRef): NodeDoc | null {
  const { id: ledgerId, number, tokens, struck } = state
  if (state.deleted) return null
  if (ref.node === 'ledger') return { ...ref, doc: { ledgerId, number, size: tokens.length } }
  const place = tokens.indexOf(ref.id)
  if (place < 0 || struck.includes(ref.id)) return null
  return { ...ref, doc: { token: ref.id, ledgerId, place } }
}

export function nodesOfLedger(state: Ledger): readonly NodeRef[] {
  const { id, tokens, struck, deleted } = state
  if (deleted) return []
  const shown = tokens.filter((token) => !struck.includes(token))
  return [{ node: 'ledger', id }, ...shown.map((token) => ({ node: 'token', id: token }))]
}

const READS = ['read']

export const ledger: Behaviour<Ledger> = {
  type: 'ledger',
  home: 'shards',
  messageTypes: ['open', 'append', 'strike', 'renumber', 'send', 'delete', 'explode', ...READS],
  creates: ['open'],
  isRead: (type) => READS.includes(type),
  check: () => null,
  chosenKey(message) {
    const { number } = (message.body ?? {}) as LedgerBody
    const isChosen = message.type === 'open' && number !== undefined
    return isChosen ? { keyType: 'ledger', key: number } : null
  },
  mayTake: () => [],
  decide,
  shapes: SHAPES,
  evolve: (state, record) => foldLedger(state, record),
  isDeleted: (state) => state.deleted,
  keys: (state) => [state.number],
  naturalKeys: (state) => [{ keyType: 'ledger', key: state.number }],
  toSnapshot: (state) => state,
  fromSnapshot: (snapshot) => snapshot as Ledger,
  nodeTypes,
  touched(record, actorId) {
    return touched(record, actorId)
  },
  project: projectLedger,
  nodes: nodesOfLedger,
  history: () => [],
}

/** A setting that every member has at hand. */
export const flag: Behaviour<SystemState<string>> = {
  type: 'flag',
  home: 'system',
  messageTypes: ['put', 'drop'],
  creates: ['put'],
  isRead: () => false,
  check: () => null,
  chosenKey: () => null,
  mayTake: () => [],
  *decide(state, message, turn) {
    const isDropped = message.type === 'drop'
    const { needs } = message.body as LedgerBody
    if (needs !== undefined) {
      const view = (yield { call: 'configuration' }) as ConfigurationView
      const isAllowed = view.get<string>('flag', needs)?.value === 'yes'
      if (!isAllowed) return no('FORBIDDEN', `${needs} does not say so`)
    }
    if (isDropped && (state === null || state.deleted)) return no('NOT_FOUND', 'is not there')
    const value = isDropped ? '' : (message.body as LedgerBody).token!
    const records = [{ t: isDropped ? 'dropped' : 'put', key: turn.key!, value }]
    return { ok: true, records, state: { key: turn.key!, value, deleted: isDropped } }
  },
  evolve: (_state, record) => ({
    key: String(record['key']),
    value: String(record['value']),
    deleted: record.t === 'dropped',
  }),
  isDeleted: (state) => state.deleted,
  keys: (state) => [state.key],
  naturalKeys: () => [],
  toSnapshot: (state) => state,
  fromSnapshot: (snapshot) => snapshot as SystemState<string>,
  nodeTypes: [],
  touched: () => [],
  project: () => null,
  nodes: () => [],
  history: () => [],
}
