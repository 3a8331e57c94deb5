// Definitions in the registry are followed into the live schema: several of one moment are one
// version, what can't be is told and left out, and who has a token of a write waits for it.

import t from 'tap'
import { ORDER_NODE_TYPES } from '../../../commerce/order/graph/node-types.ts'
import type { SystemEntry } from '../../../cluster/actor-system.ts'
import { LIMITS } from '../../../config/limits.ts'
import { overrideLimits } from '../../../config/testing/override-limits.ts'
import { FULL_ACCESS } from '../../../protocol/graph/planning.ts'
import { planNavigations } from '../../../protocol/graph/navigation.ts'
import { metaOf } from '../../../protocol/graph/meta.ts'
import { ManualClock } from '../../indexing/testing/manual-clock.ts'
import { LiveSchema } from '../live-schema.ts'
import { type FollowedSystem, RegistrySchema } from './registry-schema.ts'

/** The registry's map. */
class Registry implements FollowedSystem {
  offset = 0
  /** How often each prefix was asked for. */
  readonly asked = new Map<string, number>()
  readonly #entries = new Map<string, unknown>()
  readonly #watchers = new Set<(key: string, entry: SystemEntry | null) => void>()

  set(key: string, value: unknown, isSecret = false): void {
    this.offset++
    if (value === null) this.#entries.delete(key)
    else this.#entries.set(key, { value, isSecret })
    for (const changed of this.#watchers) changed(key, this.get('registry', key))
  }

  get<T>(_type: string, key: string): SystemEntry<T> | null {
    const value = this.#entries.get(key) as T | undefined
    return value === undefined ? null : { key, actorId: key, version: 1, value }
  }

  *withPrefix<T>(type: string, prefix: string): Iterable<SystemEntry<T>> {
    this.asked.set(prefix, (this.asked.get(prefix) ?? 0) + 1)
    for (const key of [...this.#entries.keys()].sort()) {
      if (key.startsWith(prefix)) yield this.get<T>(type, key)!
    }
  }

  size(): number {
    return this.#entries.size
  }

  onChange(_type: string, changed: (key: string, entry: SystemEntry | null) => void): () => void {
    this.#watchers.add(changed)
    return () => void this.#watchers.delete(changed)
  }
}

function stage() {
  const types = ORDER_NODE_TYPES
  const schema = new LiveSchema(types)
  const clock = new ManualClock()
  const told: string[] = []
  const log = {
    debug: () => undefined,
    info: () => undefined,
    warn: (fields: object) => void told.push((fields as { key: string }).key),
    error: (fields: object) => void told.push(JSON.stringify(fields)),
  }
  const system = new Registry()
  const custom = new RegistrySchema({ schema, types, clock, log })
  const names = (): unknown =>
    schema.current.schema.nodes
      .get('order')!
      .type.fields.flatMap(({ name, custom: isCustom }) => (isCustom ? name : []))
  return { schema, clock, told, system, custom, names }
}

async function passes(clock: ManualClock, ms: number): Promise<void> {
  clock.advance(ms)
  await new Promise((resolve) => setImmediate(resolve))
}

const text = { type: 'text', source: `dynamic->'a'` }

t.test('what is there at the start, and what comes; of one moment one version', async (t) => {
  const { schema, system, custom, names } = stage()
  system.set('graph/order/fields/a', text)
  custom.follow(system)
  t.strictSame(names(), ['a'])
  const { number } = schema.current
  system.set('graph/order/fields/b', text)
  system.set('graph/order/fields/c', text)
  system.set('graph/order/fields/a', null)
  t.strictSame(names(), ['a'], 'not in the midst of it')
  await Promise.resolve()
  t.strictSame(names(), ['b', 'c'])
  t.equal(schema.current.number, number + 1)
  system.set('something/else', text)
  await Promise.resolve()
  t.equal(schema.current.number, number + 1, 'other keys are no change')
})

t.test('what can not be is left out and told once; the others stay', async (t) => {
  const { system, custom, names, told } = stage()
  system.set('graph/order/fields/orderNumber', text)
  system.set('graph/order/fields/hidden', text, true)
  system.set('graph/order/fields/odd', 7)
  system.set('graph/order/fields/good', text)
  custom.follow(system)
  t.strictSame(names(), ['good'])
  const refused = ['hidden', 'odd', 'orderNumber'].map((name) => `graph/order/fields/${name}`)
  t.strictSame(
    custom.refused.map(({ key }) => key),
    refused,
  )
  t.strictSame(told, refused)
  system.set('graph/order/fields/more', text)
  await Promise.resolve()
  t.strictSame(told, refused, 'no more')
})

t.test('an enum is offered what its source has now', async (t) => {
  const { schema, system, custom } = stage()
  system.set('graph/order/fields/shop', { ...text, type: 'enum', values: 'channels' })
  system.set('channels/a', { currencyCode: 'EUR', taxIncluded: true, label: { default: 'A' } })
  system.set('channels/a/extra', { label: 'of an app' })
  custom.follow(system)
  t.strictSame(custom.valuesOf('order', 'shop'), [{ key: 'a', label: { default: 'A' } }])
  system.set('channels/b', { currencyCode: 'EUR', taxIncluded: true }, true)
  await Promise.resolve()
  t.strictSame(custom.valuesOf('order', 'shop')?.at(-1), { key: 'b', label: 'b' })
  const order = metaOf(schema.current.schema, FULL_ACCESS).nodes.find((n) => n.name === 'order')!
  t.match(
    order.fields.find(({ name }) => name === 'shop'),
    { enum: ['a', 'b'], custom: true },
  )
  t.equal(custom.valuesOf('order', 'orderNumber'), null)
  t.equal(custom.valuesOf('nowhere', 'x'), null)
})

t.test('values that many fields share are read once for all', async (t) => {
  const { schema, system, custom } = stage()
  const shared = { type: 'enum', source: `dynamic->'a'`, enumDefinition: 'colors' }
  for (let i = 0; i < 20; i++) system.set(`graph/order/fields/f${i}`, shared)
  system.set('enums/definitions/colors/values/red', { label: 'Red' })
  system.set('enums/graph/order/f3/values/own', { label: 'Own' })
  custom.follow(system)
  system.asked.clear()
  system.set('enums/definitions/colors/values/green', { label: 'Green' })
  await Promise.resolve()
  t.equal(system.asked.get('enums/definitions/colors/values/'), 1)
  const { fields } = schema.current.schema.nodes.get('order')!
  t.strictSame(fields.get('f2')!.values, ['green', 'red'])
  t.strictSame(fields.get('f3')!.values, ['green', 'red', 'own'])
})

t.test('a definition that is written again is checked without itself', async (t) => {
  const { system, custom } = stage()
  system.set('graph/order/fields/a', text)
  custom.follow(system)
  t.equal(custom.fault('graph/order/fields/a', { ...text, type: 'number' }), null)
  t.match(custom.fault('graph/order/fields/A', text), { message: /has a already/ })
  t.equal(custom.fault('channels/a', 7), null)
})

t.test('a token waits for the maps and for the index, and not for ever', async (t) => {
  const { schema, clock, system, custom } = stage()
  custom.follow(system)
  let served = schema.current
  const reached = (offset: number): Promise<boolean> => custom.reached(offset, () => served, 1_000)
  t.equal(await reached(0), true)
  const waits = reached(1)
  let isOver = false
  void waits.then(() => (isOver = true))
  await passes(clock, LIMITS.graph.schemaLookMs * 2)
  t.notOk(isOver, 'the maps are behind')
  system.set('graph/order/fields/a', text)
  await passes(clock, LIMITS.graph.schemaLookMs * 2)
  t.notOk(isOver, 'the index is behind')
  served = schema.current
  await passes(clock, LIMITS.graph.schemaLookMs * 2)
  t.equal(await waits, true)
  const never = reached(2)
  await passes(clock, 2_000)
  t.equal(await never, false)
})

t.test('those who wait are bounded', async (t) => {
  t.teardown(overrideLimits({ 'graph.schemaWaitersMax': 1 }))
  const { schema, clock, system, custom } = stage()
  custom.follow(system)
  const first = custom.reached(9, () => schema.current, 100)
  await t.rejects(
    custom.reached(9, () => schema.current, 100),
    { errors: [{ code: 'TOO_BUSY' }] },
  )
  await passes(clock, 1_000)
  t.equal(await first, false)
})

t.test(
  'a search index is followed; what of it goes is left out, and its end is the built-in',
  async (t) => {
    const { schema, system, custom, told } = stage()
    const search = (): unknown => schema.current.schema.nodes.get('order')!.type.search
    const builtIn = search()
    const key = 'system/graph/order/search'
    system.set('graph/order/fields/a', text)
    system.set(key, { fields: [{ field: 'a' }, { field: 'orderNumber', keyword: true }] })
    custom.follow(system)
    const number = { path: ['orderNumber'], keyword: true }
    t.strictSame(search(), { fields: [{ path: ['a'], keyword: false }, number], edges: [] })
    t.strictSame(custom.refused, [])
    system.set('graph/order/fields/a', null)
    await Promise.resolve()
    t.strictSame(search(), { fields: [number], edges: [] }, 'the rest is found on')
    t.match(custom.refused, [{ key, reason: /no field a/ }])
    t.strictSame(told, [key])
    system.set('graph/order/fields/a', text)
    await Promise.resolve()
    t.match(search(), { fields: [{ path: ['a'] }, number] }, 'it comes with the field')
    t.strictSame(custom.refused, [])
    system.set(key, { fields: [{ field: 'orderNumber' }] }, true)
    await Promise.resolve()
    t.strictSame(search(), builtIn)
    t.match(custom.refused, [{ key, reason: /no secret/ }])
    system.set(key, null)
    await Promise.resolve()
    t.strictSame(search(), builtIn)
    t.strictSame(custom.refused, [])
    t.match(custom.fault(key, { fields: [{ field: 'x' }] }), { member: 'fields.0' })
    t.equal(custom.fault('system/graph/order/other', { fields: [{ field: 'x' }] }), null)
  },
)

t.test('fields of keys are offered what there is, and hold other keys too', async (t) => {
  const { schema, system, custom } = stage()
  custom.follow(system)
  const offered = (node: string, name: string): unknown =>
    metaOf(schema.current.schema, FULL_ACCESS)
      .nodes.find((one) => one.name === node)!
      .fields.find((field) => field.name === name)
  t.match(offered('order', 'channelKey'), { type: 'text', enum: undefined })
  t.match(offered('order', 'currencyCode'), { type: 'text', enum: /SEK/ })
  system.set('channels/web', { currencyCode: 'EUR', taxIncluded: true, label: 'Web' })
  system.set('inventories/north', { label: 'North' })
  system.set('enums/graph/order/channelKey/values/fair', { label: 'Fair' })
  await Promise.resolve()
  t.match(offered('order', 'channelKey'), { type: 'text', enum: ['web', 'fair'] })
  t.match(offered('delivery', 'inventoryKey'), { type: 'text', enum: ['north'] })
  t.strictSame(custom.valuesOf('order', 'channelKey'), [
    { key: 'web', label: 'Web' },
    { key: 'fair', label: 'Fair' },
  ])
  t.equal(custom.valuesOf('order', 'orderNumber'), null)
  const body = [{ edge: 'orders', filter: `channelKey == 'elsewhere'` }]
  const options = { nowMs: 0, limits: LIMITS.graph }
  t.ok(planNavigations(body, schema.current.schema, FULL_ACCESS, options))
})
