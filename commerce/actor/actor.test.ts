// The room of all actor types, with a small type of its own: a shelf of boxes. What it shows holds
// for orders and for every type to come.

import t from 'tap'
import { Type } from '@sinclair/typebox'
import { LIMITS } from '../../config/limits.ts'
import type { RuntimeCall, RecordMeta, Turn } from '../../protocol/behaviour.ts'
import { batchOf, ruleBatch, run } from './batch.ts'
import { commandChecks } from './check-commands.ts'
import { decideCheckpoints, settleMap, stateAt } from './checkpoints.ts'
import { patch, present } from './children.ts'
import { type Command, type CommandDefinition, commandMakers } from './command.ts'
import { describeMessages } from './described.ts'
import { Draft } from './draft.ts'
import { hooksOf } from './hooks.ts'
import { invalidState, Refused } from './refuse.ts'
import { commandMembers, JsonMembers, Key } from './shapes.ts'

interface Box {
  readonly label: string
  readonly modifiedMs: number
}
interface Shelf {
  readonly boxes: Map<string, Box>
  readonly versions: number[]
}
type ShelfRecord =
  | { readonly t: 'made' }
  | { readonly t: 'boxAdded'; readonly id: string; readonly label: string }
  | { readonly t: 'boxLabelled'; readonly id: string; readonly label: string }

function evolve(state: Shelf | null, record: ShelfRecord, meta: RecordMeta): Shelf {
  const shelf = state ?? { boxes: new Map<string, Box>(), versions: [] }
  shelf.versions.push(meta.version)
  if (record.t === 'boxAdded') {
    shelf.boxes.set(record.id, { label: record.label, modifiedMs: meta.timeMs })
  }
  if (record.t === 'boxLabelled') {
    patch(shelf.boxes, record.id, { label: record.label }, meta.timeMs)
  }
  return shelf
}

class ShelfDraft extends Draft<Shelf, ShelfRecord> {
  constructor(from: { readonly state: Shelf } | { readonly birth: ShelfRecord }, turn = TURN) {
    super(from, turn, {
      what: 'a shelf',
      evolve,
      copy: ({ boxes, versions }) => ({ boxes: new Map(boxes), versions: [...versions] }),
    })
  }
}

const { command, callingCommand } = commandMakers<ShelfDraft>()
const addBox = command(
  'addBox',
  commandMembers({ id: Key, label: Key, dynamic: Type.Optional(JsonMembers) }),
  (draft, { id, label }) => {
    draft.room(draft.state.boxes.size, 2, 'boxes')
    draft.copies(label.length)
    draft.commit({ t: 'boxAdded', id, label })
  },
)
const nameBox = callingCommand('nameBox', commandMembers({ id: Key }), function* (draft, { id }) {
  if (!draft.state.boxes.has(id)) invalidState(`there is no box ${id}`)
  const label = (yield { call: 'number', keyType: 'box', prefix: 'B' }) as string
  draft.commit({ t: 'boxLabelled', id, label })
})
const TABLE: ReadonlyMap<string, CommandDefinition<ShelfDraft>> = new Map(
  [addBox, nameBox].map((definition) => [definition.type, definition]),
)
const LATER = new Set(['paintBox'])

const TURN: Turn = {
  actorId: 'a',
  key: null,
  nowMs: 1_000,
  by: 'somebody',
  messageId: 'm',
  version: 7,
  preview: false,
  newId: () => 'id',
  hooks: { has: () => true },
}

/** Plays a generator, with the same answer to whatever it asks. */
function played<T>(asking: Generator<RuntimeCall, T, unknown>, answer: unknown): T {
  let step = asking.next()
  while (step.done !== true) step = asking.next(answer)
  return step.value
}

function refusal(act: () => unknown): unknown {
  try {
    act()
  } catch (error) {
    if (error instanceof Refused) return error.errors
    throw error
  }
  return null
}

t.test('a batch runs on a copy, in its order, and says what it came of', async (t) => {
  const before: Shelf = { boxes: new Map(), versions: [] }
  const draft = new ShelfDraft({ state: before })
  const batch = batchOf(
    [{ type: 'nameBox', id: '1' }],
    [{ type: 'addBox', id: '1', label: 'books' }],
  )
  played(run(draft, batch, TABLE), 'B9')
  t.strictSame(present(draft.state.boxes, '1'), { label: 'B9', modifiedMs: 1_000 })
  t.strictSame(draft.state.versions, [8, 9], 'each record has the next version')
  t.strictSame(before, { boxes: new Map(), versions: [] }, 'the state stays as it was')
  t.strictSame(
    draft.causes.map((cause) => cause?.index),
    [null, 0],
  )
  t.match(draft.decided(batch, { data: 1, effects: [] }), {
    ok: true,
    data: 1,
    records: [{ t: 'boxAdded', commands: ['addBox', 'nameBox'] }, { t: 'boxLabelled' }],
  })
})

t.test('the first record of a new actor is in its draft', async (t) => {
  const draft = new ShelfDraft({ birth: { t: 'made' } })
  t.strictSame(draft.state.versions, [8])
  t.strictSame([draft.records, draft.causes], [[{ t: 'made' }], [null]])
})

t.test('a refusal names the command and its place; one of a rule has none', async (t) => {
  const draft = new ShelfDraft({ birth: { t: 'made' } })
  const add = (id: string): Command => ({ type: 'addBox', id, label: 'x' })
  const commands = [add('1'), add('2'), add('3')]
  t.match(
    refusal(() => played(run(draft, batchOf(commands), TABLE), null)),
    [
      {
        code: 'INVALID_COMMAND',
        message: 'commands[2] addBox: a shelf has at most 2 boxes',
        details: { commandIndex: 2, commandType: 'addBox' },
      },
    ],
  )
  t.equal(draft.cause, null)
  const ofRule = ruleBatch([{ type: 'nameBox', id: '9' }])
  t.match(
    refusal(() => played(run(draft, ofRule, TABLE), null)),
    [{ code: 'INVALID_STATE', details: { commandIndex: null, commandType: 'nameBox' } }],
  )
})

t.test('what a batch repeats of its state is bounded', async (t) => {
  const draft = new ShelfDraft({ birth: { t: 'made' } })
  draft.copies(LIMITS.protocol.entryBytesMax)
  t.throws(() => draft.copies(1), { errors: [{ code: 'TOO_LARGE' }] })
})

t.test('commands are checked by their own schemas', async (t) => {
  const { checkCommand, checkCommands } = commandChecks(TABLE, LATER)
  t.equal(checkCommand({ type: 'addBox', id: '1', label: 'x' }, 0), null)
  t.match(checkCommand({ type: 'addBox', id: '1' }, 3), {
    code: 'INVALID_COMMAND',
    message: /^commands\[3\] addBox: label /,
    details: { commandIndex: 3, commandType: 'addBox', member: 'label' },
  })
  t.match(checkCommand({ type: 'addBax' }, 0), { message: /no command "addBax".*addBox/ })
  t.match(checkCommand({ type: 'paintBox' }, 0), { code: 'NOT_AVAILABLE' })
  const dynamic: unknown = JSON.parse('{"__proto__":1}')
  t.match(checkCommands([{ type: 'addBox', id: '1', label: 'x', dynamic }]), [
    { details: { member: 'dynamic' } },
  ])
})

t.test('rules of a hook: commands, messages, denials, and what does not count', async (t) => {
  const { checkCommand } = commandChecks(TABLE, LATER)
  const ask = hooksOf({
    allowed: { OnShelf: ['shelfCommand', 'messageActor', 'validationError'], OnShelfMade: [] },
    commandEffect: 'shelfCommand',
    checkCommand,
  })
  const add = { type: 'addBox', id: '1', label: 'x' }
  const effects = [
    { effect: 'shelfCommand', ...add },
    { effect: 'messageActor', actorType: 'order', actorId: 'O1', messages: [{ type: 'query' }] },
    { effect: 'orderCommand', ...add },
  ]
  t.strictSame(played(ask('OnShelf', {}), effects), {
    commands: [add],
    effects: [{ to: { type: 'order', key: 'O1' }, messages: [{ type: 'query', body: {} }] }],
  })
  t.strictSame(played(ask('OnShelfMade', {}), effects), { commands: [], effects: [] })
  const deny = [{ effect: 'validationError', code: 'FULL', message: 'no' }]
  t.strictSame(
    refusal(() => played(ask('OnShelf', {}), deny)),
    [{ code: 'FULL', message: 'no' }],
  )
  t.match(
    refusal(() => played(ask('OnShelfMade', {}), deny)),
    [{ code: 'COMPONENT_ERROR' }],
  )
})

t.test('checkpoints: the list, the state of one, and what changed since', async (t) => {
  t.match(played(decideCheckpoints('s'), ['c']), { ok: true, state: 's', data: ['c'] })
  t.equal(played(stateAt('c', 'shelf S1'), 'then'), 'then')
  t.throws(() => played(stateAt('c', 'shelf S1'), null), {
    errors: [
      { code: 'NOT_FOUND', message: 'shelf S1 has no checkpoint c: getCheckpoints lists them' },
    ],
  })
  const box = (label: string, modifiedMs: number): Box => ({ label, modifiedMs })
  const now = new Map([
    ['same', box('a', 1)],
    ['changed', box('b', 2)],
    ['gone', box('c', 3)],
  ])
  const target = new Map([
    ['same', box('a', 0)],
    ['changed', box('x', 0)],
    ['back', box('d', 0)],
  ])
  const ids = settleMap('box', now, target, 9).map(({ id }) => id)
  t.strictSame(ids, ['changed', 'back', 'gone'])
  t.strictSame(
    [...target.values()].map(({ modifiedMs }) => modifiedMs),
    [1, 9, 9],
  )
})

t.test('messages and commands are described by what checks them', async (t) => {
  const { schemas, union } = describeMessages({
    name: 'Shelf',
    what: 'a shelf',
    bodies: { create: { type: 'object', properties: { commands: { type: 'array' } } } },
    commands: TABLE,
    later: LATER,
    bodyExamples: { create: {} },
    commandExample: (type) => ({ type }),
  })
  t.equal(union, 'ShelfMessage')
  t.strictSame(Object.keys(schemas), [
    'ShelfMessage',
    'ShelfCommand',
    'ShelfCreateMessage',
    'ShelfAddBoxCommand',
    'ShelfNameBoxCommand',
  ])
  t.match(schemas['ShelfMessage'], { description: 'A message to a shelf, told by its `type`.' })
  t.match(schemas['ShelfCreateMessage'], {
    properties: {
      body: { properties: { commands: { items: { $ref: '#/components/schemas/ShelfCommand' } } } },
    },
  })
})
