// Naming and placing: the scope of a caller's key, and where each kind of request goes.

import t from 'tap'
import fc from 'fast-check'
import type { Behaviour } from '../../protocol/behaviour.ts'
import { errorItem } from '../../protocol/errors.ts'
import { SYSTEM_SHARD, placeOfActor, placeOfKey, shardOf, uuidMaker } from '../../protocol/ids.ts'
import type { ActorRequest } from '../actor-system.ts'
import { seeded } from '../testing/harness.ts'
import { ledger } from '../testing/ledger.ts'
import { place, shardOfAddress } from './address.ts'
import type { Placed, PlacingOptions } from './address.ts'

const SHARDS = 16
const UUID = '01900000-0000-7000-8000-0000000000ab'
const setting: Behaviour = { ...(ledger as Behaviour), type: 'setting', home: 'system' }

function makePlacing() {
  const chance = seeded(1)
  const make = uuidMaker((bytes) => {
    for (let i = 0; i < bytes.length; i++) bytes[i] = Math.floor(chance() * 256)
  })
  const gathered = { shard: null as number | null, asked: 0 }
  const options: PlacingOptions = {
    behaviours: new Map<string, Behaviour>([
      ['ledger', ledger],
      ['other', { ...ledger, type: 'other' }],
      ['setting', setting],
    ]),
    shards: SHARDS,
    newUuid: (tail, mask) => make(1_000, tail, mask),
    gather: () => {
      gathered.asked++
      return gathered.shard
    },
  }
  return { options, gathered }
}

const REQUEST: ActorRequest = {
  type: 'ledger',
  id: UUID,
  messages: [{ type: 'append', body: { token: 'x' } }],
  idempotencyKey: null,
  bodyHash: 'hash',
  by: 'tester',
  preview: false,
  budgetMs: 5_000,
  trace: 'trace',
}

function opening(number?: string, more: Partial<ActorRequest> = {}): ActorRequest {
  const body = number === undefined ? {} : { number }
  return { ...REQUEST, id: 'new', messages: [{ type: 'open', body }], ...more }
}

function placed(options: PlacingOptions, request: ActorRequest): Placed {
  const found = place(options, request)
  if ('outcome' in found) throw new Error(JSON.stringify(found))
  return found
}

t.test('the scope of a key: caller, type, and for a new actor its number', async () => {
  const { options } = makePlacing()
  const request = fc
    .record({
      by: fc.constantFrom('anna', 'bert'),
      type: fc.constantFrom('ledger', 'other'),
      idempotencyKey: fc.constantFrom('k', 'l'),
      number: fc.constantFrom(undefined, 'N1', 'N2'),
      isNew: fc.boolean(),
      bodyHash: fc.constantFrom('h', 'i'),
    })
    .map(({ number, isNew, ...rest }) => {
      const asked = isNew ? opening(number, rest) : { ...REQUEST, ...rest }
      const scope = [rest.by, rest.type, rest.idempotencyKey, isNew, isNew && number]
      return { asked, scope: JSON.stringify(scope) }
    })
  fc.assert(
    fc.property(request, request, (one, other) => {
      const [a, b] = [one, other].map(({ asked }) => placed(options, asked).envelope.messageId)
      const isShaped = a!.kind === 'caller' && /^[0-9a-f]{32}$/.test(a!.id)
      return isShaped && (a!.id === b!.id) === (one.scope === other.scope)
    }),
    { numRuns: 500 },
  )
})

t.test('the scope goes by the number of what makes the actor, run or refused', async (t) => {
  const { options } = makePlacing()
  const messages = [{ type: 'unheard', body: {} }, ...opening('N1').messages]
  const no = { type: '!claim', success: false as const, errors: [errorItem('NOT_FOUND', 'no')] }
  const idOf = (more: Partial<ActorRequest>): string =>
    placed(options, opening(undefined, { idempotencyKey: 'k', ...more })).envelope.messageId.id
  const whole = idOf({ messages: opening('N1').messages })
  t.equal(idOf({ messages, refused: [no, null] }), whole)
  t.equal(idOf({ messages, refused: [no, no] }), whole)
  t.not(idOf({ messages: [messages[0]!], refused: [no] }), whole)
})

t.test(
  'of what is refused no body leaves, and no type that an owner could take for its own',
  async (t) => {
    const { options } = makePlacing()
    const types = ['!claim', 'read', '!holds', 'append', 'open']
    const messages = types.map((type) => ({ type, body: { token: 'x' } }))
    const refused = types.map((type) => {
      if (type === 'append') return null
      return { type, success: false as const, errors: [errorItem('NOT_FOUND', 'no')] }
    })
    const { envelope } = placed(options, { ...REQUEST, messages, refused, idempotencyKey: 'k' })
    t.same(
      envelope.messages.map(({ type, body }) => [type, body]),
      [
        ['', undefined],
        ['read', undefined],
        ['', undefined],
        ['append', { token: 'x' }],
        ['', undefined],
      ],
    )
    t.same(envelope.refused, refused)
  },
)

t.test('under a key messages are numbered among those that may commit', async (t) => {
  const { options } = makePlacing()
  const placesOf = (types: readonly string[], idempotencyKey: string | null): unknown => {
    const messages = types.map((type) => ({ type, body: {} }))
    return placed(options, { ...REQUEST, messages, idempotencyKey }).envelope.places
  }
  t.equal(placesOf(['append', 'unheard'], 'k'), undefined)
  t.same(placesOf(['read', 'append', 'read', 'append'], 'k'), [4, 0, 6, 1])
  t.equal(placesOf(['read', 'append'], null), undefined, 'nobody repeats it')
})

t.test('without a key, and for a preview, an id of its own each time', async (t) => {
  const { options } = makePlacing()
  for (const more of [{}, { idempotencyKey: 'k', preview: true }]) {
    const ids = [1, 2].map(() => placed(options, { ...REQUEST, ...more }).envelope.messageId)
    t.not(ids[0]!.id, ids[1]!.id)
    for (const { id, kind } of ids) {
      t.equal(kind, 'edge')
      t.match(id, /^[0-9a-f]{32}$/)
    }
  }
})

t.test('what the envelope says of the request', async (t) => {
  const { options } = makePlacing()
  const { envelope } = placed(options, REQUEST)
  const { messages, budgetMs, by, trace } = REQUEST
  t.match(envelope, { copy: 0, crashes: 0, virtual: false, preview: false, bodyHash: '' })
  t.match(envelope, { messages, budgetMs, by, trace })
  t.notOk('fresh' in envelope, 'others may know that id')
  t.equal(placed(options, { ...REQUEST, idempotencyKey: 'k' }).envelope.bodyHash, 'hash')
  t.equal(placed(options, { ...REQUEST, preview: true }).envelope.preview, true)
  const made = placed(options, opening()).envelope
  t.match(made, { virtual: true, fresh: true })
})

t.test('who is asked for: by UUID, by key, of the system shard', async (t) => {
  const { options } = makePlacing()
  const byId = placed(options, { ...REQUEST, id: UUID.toUpperCase() })
  t.same(byId.envelope.to, { type: 'ledger', id: UUID })
  t.equal(byId.shard, shardOf(placeOfActor(UUID), SHARDS))
  for (const key of ['A-1', 'B-2', 'new-1']) {
    const byKey = placed(options, { ...REQUEST, id: key })
    t.same(byKey.envelope.to, { type: 'ledger', key })
    t.equal(byKey.envelope.virtual, false)
    t.equal(byKey.shard, shardOf(placeOfKey('ledger', key), SHARDS))
  }
  for (const key of ['roles', UUID, 'new']) {
    const ofSystem = placed(options, { ...REQUEST, type: 'setting', id: key })
    t.same(ofSystem.envelope.to, { type: 'setting', key })
    t.equal(ofSystem.envelope.virtual, false)
    t.equal(ofSystem.shard, SYSTEM_SHARD)
  }
  t.equal(shardOfAddress(options, { type: 'setting', id: UUID }), SYSTEM_SHARD)
  t.equal(shardOfAddress(options, { type: 'ledger', id: UUID }), byId.shard)
})

t.test('what leads nowhere is refused', async (t) => {
  const { options } = makePlacing()
  const nobody = { outcome: 'refused', error: { code: 'NOT_FOUND' } }
  t.match(place(options, { ...REQUEST, type: 'what' }), nobody)
  t.match(place(options, { ...REQUEST, id: 'new' }), nobody, 'the first message makes nobody')
  const late = [...REQUEST.messages, { type: 'open', body: {} }]
  t.match(place(options, { ...REQUEST, id: 'new', messages: late }), nobody)
})

t.test('a new actor lies where its number lies, else where its key lies', async (t) => {
  const { options, gathered } = makePlacing()
  for (let i = 0; i < 40; i++) {
    const key = { idempotencyKey: `k${i}` }
    for (const more of [{}, key]) {
      const { shard } = placed(options, opening(`N${i}`, more))
      t.equal(shard, shardOf(placeOfKey('ledger', `N${i}`), SHARDS), 'its number')
    }
    const { envelope, shard } = placed(options, opening(undefined, key))
    const { id } = envelope.messageId
    t.equal(shard, shardOf(placeOfKey('ledger!key', id), SHARDS), 'its key')
  }
  t.equal(gathered.asked, 0, 'who has a place is not gathered')
})

t.test('a new actor that may lie anywhere goes where they gather', async (t) => {
  const { options, gathered } = makePlacing()
  const made = (): Placed => placed(options, opening())
  const anywhere = new Set(Array.from({ length: 60 }, () => made().shard))
  t.ok(anywhere.size > 4, 'nowhere to gather: any shard')
  gathered.shard = 5
  const tails = new Set<number>()
  for (let i = 0; i < 60; i++) {
    const { envelope, shard } = made()
    t.equal(shard, 5)
    t.equal(shard, shardOfAddress(options, envelope.to))
    tails.add(placeOfActor('id' in envelope.to ? envelope.to.id : ''))
  }
  t.ok(tails.size > 30, 'the upper bits stay random: by them a shard would be split')
  t.equal(gathered.asked, 120)
  t.equal(placed(options, opening(undefined, { preview: true })).shard, 5)
})

t.test('what the caller may see of the graph goes along, and is not made up', async (t) => {
  const { options } = makePlacing()
  const graphAces = [['region@graph/order:query']]
  const graphAttributes = { region: ['north'] }
  const { envelope } = place(options, { ...REQUEST, graphAces, graphAttributes }) as Placed
  t.match(envelope, { graphAces, graphAttributes })
  const { envelope: bare } = place(options, REQUEST) as Placed
  t.notOk('graphAces' in bare || 'graphAttributes' in bare)
})
