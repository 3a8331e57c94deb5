// Natural keys against the plain rule, over messages with many changes, refused ones, shards,
// takeovers and a bad wire: a key leads to the order that has it, and one that nobody has is free.
// Source: ARCHITECTURE 4, PROTOCOL 4.1 (aliases = fold).

import t from 'tap'
import fc from 'fast-check'
import { LIMITS } from '../../../config/limits.ts'
import type { Reply } from '../../../protocol/message.ts'
import type { MemoryHooks } from '../../../storage/memory/journal.ts'
import { idOf } from './keys.ts'
import { KEY_TYPES, Orders, codeOf, made } from '../testing/orders.ts'
import type { Kind, Step } from '../testing/orders.ts'

const TEXTS = ['a', 'b', 'c', 'd', 'e']
const step: fc.Arbitrary<Step> = fc.tuple(
  fc.constantFrom<Kind>('number', 'reference'),
  fc.option(fc.constantFrom<string>(...TEXTS), { nil: null, freq: 4 }),
)
const steps = fc.array(step, { maxLength: 5 })
const which = fc.nat(3)

type Op =
  | { readonly op: 'create'; readonly number: string | undefined; readonly steps: readonly Step[] }
  | {
      readonly op: 'change' | 'fail' | 'preview'
      readonly which: number
      readonly steps: readonly Step[]
    }
  | { readonly op: 'delete'; readonly which: number }
  | { readonly op: 'restart' }

const op: fc.Arbitrary<Op> = fc.oneof(
  fc.record({
    op: fc.constant('create' as const),
    number: fc.option(fc.constantFrom(...TEXTS), { nil: undefined }),
    steps,
  }),
  { arbitrary: changing('change'), weight: 4 },
  changing('fail'),
  changing('preview'),
  fc.record({ op: fc.constant('delete' as const), which }),
  fc.constant({ op: 'restart' as const }),
)

function changing(name: 'change' | 'fail' | 'preview'): fc.Arbitrary<Op> {
  return fc.record({
    op: fc.constant(name),
    which,
    steps: fc.array(step, { minLength: 1, maxLength: 5 }),
  })
}

/** What an order has, as its caller reckons; a generated number is `null` until it is read. */
interface Known {
  readonly id: string
  number: string | null
  reference: string | null
  deleted: boolean
}

/** The plain rule: a key has at most one holder, and a refused message changes nothing. */
class Model {
  readonly orders: Known[] = []

  holder(kind: Kind, key: string): Known | undefined {
    return this.orders.find((order) => order[kind] === key)
  }

  /** What the steps make of an order; null: they are refused. */
  outcome(order: Known | null, from: Pick<Known, Kind>, list: readonly Step[]) {
    const next = { number: from.number, reference: from.reference }
    for (const [kind, value] of list) {
      const holder = value === null ? undefined : this.holder(kind, value)
      if (holder !== undefined && holder !== order) return null
      next[kind] = value
    }
    return next
  }
}

/** A create without a chosen number takes its first numbering step ahead of all others. */
function birthOf(number: string | undefined, list: readonly Step[]): [Step, readonly Step[]] {
  if (number !== undefined) return [['number', number], list]
  const at = list.findIndex(([kind]) => kind === 'number')
  return at === -1 ? [['number', null], list] : [list[at]!, list.toSpliced(at, 1)]
}

/** Runs one and says what is wrong with its answer. */
async function runOp(orders: Orders, model: Model, one: Op): Promise<string | null> {
  if (one.op === 'restart') {
    await orders.restart()
    return null
  }
  if (one.op === 'create') {
    const [first, rest] = birthOf(one.number, one.steps)
    const wanted = model.outcome(null, { number: null, reference: null }, [first, ...rest])
    const reply = await orders.create(one.number, one.steps)
    if (wanted === null) return expectCode(reply, 'ALREADY_EXISTS')
    if (codeOf(reply) !== 'success') return `a create was refused: ${JSON.stringify(reply)}`
    const { id, number } = made(reply)
    model.orders.push({ id, number, reference: wanted.reference, deleted: false })
    return null
  }
  const order = model.orders[one.which % Math.max(1, model.orders.length)]
  if (order === undefined || order.deleted) return null
  if (one.op === 'delete') {
    order.deleted = true
    return expectCode(await orders.delete(order.id), 'success')
  }
  const wanted = model.outcome(order, order, one.steps)
  if (one.op === 'preview') {
    const said = await orders.preview(order.id, one.steps)
    return expectCode(said, wanted === null ? 'ALREADY_EXISTS' : 'success')
  }
  const reply = await orders.change(order.id, one.steps, one.op === 'fail')
  if (wanted === null) return expectCode(reply, 'ALREADY_EXISTS')
  if (one.op === 'fail') return codeOf(reply) === 'success' ? 'it should fail' : null
  if (codeOf(reply) !== 'success') return `a change was refused: ${JSON.stringify(reply)}`
  Object.assign(order, wanted)
  order.number ??= (await orders.keysOf(order.id))[0]!.key
  return null
}

function expectCode(reply: Reply, code: string): string | null {
  return codeOf(reply) === code ? null : `${code} was expected: ${JSON.stringify(reply)}`
}

/** Of every key that was ever written: it leads to the order that has it, or it is free. */
async function auditKeys(orders: Orders, model: Model, keys: ReadonlySet<string>) {
  for (const id of [...keys]) {
    const [keyType, key] = id.split('\0') as [string, string]
    const kind = (['number', 'reference'] as const).find((one) => KEY_TYPES[one] === keyType)
    if (kind === undefined) continue
    const wanted = model.holder(kind, key)?.id ?? null
    const holder = await orders.holder(kind, key)
    if (wanted !== holder) return `${kind} ${key} leads to ${holder}, not to ${wanted}`
    if (kind === 'number' && wanted !== null && !model.holder(kind, key)!.deleted) {
      if ((await orders.at(key)) !== wanted) return `${key} is not answered by ${wanted}`
    }
    if (wanted === null) {
      const free = await orders.create(kind === 'number' ? key : undefined, [[kind, key]])
      if (codeOf(free) !== 'success') return `${kind} ${key} is free and was refused`
    }
  }
  return null
}

/** Notes every key that is written. */
function noting(keys: Set<string>): MemoryHooks {
  return {
    beforeWrite: (_, rows) => {
      for (const row of rows) {
        if (row.kind === 'alias') keys.add(idOf(row.row.keyType, row.row.key))
      }
      return null
    },
  }
}

t.test('whatever messages do, each key leads to who has it and every other is free', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(op, { minLength: 1, maxLength: 12 }),
      fc.constantFrom(1, 4),
      async (ops, shards) => {
        const keys = new Set<string>()
        const orders = await Orders.start({ shards, hooks: noting(keys) })
        const model = new Model()
        for (const one of ops) {
          const wrong = await runOp(orders, model, one)
          if (wrong !== null) throw new Error(`${JSON.stringify(one)}: ${wrong}`)
        }
        await orders.flushed()
        const wrong = await auditKeys(orders, model, keys)
        if (wrong !== null) throw new Error(wrong)
      },
    ),
    { numRuns: 60, includeErrorInReport: true },
  )
})

/** Several at a time, over a bad wire; what was answered is no matter. */
async function runWild(orders: Orders, ops: readonly Op[], chosen: readonly string[]) {
  const running = ops.map(async (one): Promise<unknown> => {
    if (one.op === 'restart') return null
    if (one.op === 'create') return orders.create(one.number, one.steps)
    const id = chosen[one.which % Math.max(1, chosen.length)]
    if (id === undefined) return null
    if (one.op === 'delete') return orders.delete(id)
    if (one.op === 'preview') return orders.preview(id, one.steps)
    return orders.change(id, one.steps, one.op === 'fail')
  })
  await Promise.all(running)
  if (ops.some((one) => one.op === 'restart')) await orders.restart()
}

/** By the orders' own states: no key has two, and what none has is to be had. */
async function auditStates(orders: Orders, keys: ReadonlySet<string>): Promise<string | null> {
  const holders = new Map<string, string>()
  for (const id of await orders.world.journal.derived.actors(null, 1_000)) {
    for (const { keyType, key } of await orders.keysOf(id)) {
      const other = holders.get(idOf(keyType, key))
      if (other !== undefined) return `${keyType} ${key} is of ${other} and of ${id}`
      holders.set(idOf(keyType, key), id)
    }
  }
  for (const id of [...keys]) {
    const [keyType, key] = id.split('\0') as [string, string]
    const kind = (['number', 'reference'] as const).find((one) => KEY_TYPES[one] === keyType)
    if (kind === undefined) continue
    const wanted = holders.get(id)
    if (wanted !== undefined) {
      const holder = await orders.holder(kind, key)
      if (holder !== wanted) return `${kind} ${key} leads to ${holder}, not to ${wanted}`
    } else {
      const free = await orders.create(kind === 'number' ? key : undefined, [[kind, key]])
      if (codeOf(free) !== 'success') return `${kind} ${key} is free: ${JSON.stringify(free)}`
    }
  }
  return null
}

t.test('the same with several at a time, effects lost and doubled, and takeovers', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(op, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 6 }),
      fc.integer({ min: 1, max: 1_000 }),
      async (groups, seed) => {
        const keys = new Set<string>()
        const nasty = { drop: 0.1, double: 0.2, delay: 0.2 }
        const orders = await Orders.start({ shards: 4, seed, nasty, hooks: noting(keys) })
        for (const ops of groups) {
          const chosen = await orders.world.journal.derived.actors(null, 1_000)
          await runWild(orders, ops, chosen)
        }
        await orders.world.clock.advance(2 * LIMITS.sharding.claimAgeMs)
        const wrong = await auditStates(orders, keys)
        if (wrong !== null) throw new Error(wrong)
      },
    ),
    { numRuns: 30, includeErrorInReport: true },
  )
})
