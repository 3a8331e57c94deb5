// What messages do to natural keys, with orders on shards of their own: whatever a message takes,
// gives up and takes again on its way, only what the order has before and after it counts. Source:
// ARCHITECTURE 4.

import t from 'tap'
import type { Behaviour } from '../../../protocol/behaviour.ts'
import { placeOfKey, shardOf } from '../../../protocol/ids.ts'
import type { MemoryHooks } from '../../../storage/memory/journal.ts'
import { ledger } from '../../testing/ledger.ts'
import type { Ledger } from '../../testing/ledger.ts'
import { idOf } from './keys.ts'
import { KEY_TYPES, Orders, codeOf, made } from '../testing/orders.ts'
import type { Kind, Step } from '../testing/orders.ts'
import { Scene, latch, code as saidOf } from '../testing/scene.ts'

/** A text whose key lies, or doesn't lie, in the shard of another key's. */
function keyBeside(kind: Kind, number: string, shards: number, isSame: boolean): string {
  const home = shardOf(placeOfKey('order', number), shards)
  for (let i = 0; ; i++) {
    const key = `${number}-${i}`
    if ((shardOf(placeOfKey(KEY_TYPES[kind], key), shards) === home) === isSame) return key
  }
}

for (const where of ['in its own shard', 'in another shard'] as const) {
  const isSame = where === 'in its own shard'
  const shards = 4
  const beside = (kind: Kind, i: number): string => keyBeside(kind, `A${i}`, shards, isSame)

  t.test(`a number taken and given up within one create, ${where}`, async (t) => {
    const orders = await Orders.start({ shards })
    const [a, b, c] = [beside('number', 1), beside('number', 2), beside('number', 3)]
    const first = made(await orders.create(a, [['number', b]]))
    t.equal(first.number, b)
    await orders.restart()
    t.equal(await orders.at(a), null, 'nobody has what was given up on the way')
    const second = made(await orders.create(a, [['number', null]]))
    t.match(second.number, /^P\d+$/)
    t.equal(made(await orders.create(a)).number, a, 'and anybody may have it')
    t.equal(await orders.at(b), first.id)
    t.equal(codeOf(await orders.create(c, [['number', b]])), 'ALREADY_EXISTS')
    t.equal(made(await orders.create(c)).number, c, 'a refused create keeps nothing')
  })

  for (const kind of ['number', 'reference'] as const) {
    t.test(`two of a kind in one message, ${kind} ${where}`, async (t) => {
      const orders = await Orders.start({ shards })
      const home = 'A1'
      const [b, c] = [beside(kind, 1), keyBeside(kind, `${home}x`, shards, isSame)]
      const { id } = made(await orders.create(home))
      const other = made(await orders.create('B1'))
      t.equal(codeOf(await orders.change(id, [[kind, b], [kind, c]])), 'success') // prettier-ignore
      t.equal(await orders.holder(kind, b), null)
      t.equal(codeOf(await orders.change(other.id, [[kind, b]])), 'success')
      t.equal(codeOf(await orders.change(other.id, [[kind, c]])), 'ALREADY_EXISTS')
    })

    t.test(`given up and taken again in one message, ${kind} ${where}`, async (t) => {
      const orders = await Orders.start({ shards })
      const [b, c] = [beside(kind, 1), keyBeside(kind, 'A1x', shards, isSame)]
      const d = kind === 'number' ? 'D1' : null
      const { id } = made(await orders.create('A1', kind === 'number' ? [] : [['reference', 'r']]))
      t.equal(codeOf(await orders.change(id, [[kind, b]])), 'success')
      const back: Step[] = [[kind, c], [kind, b]] // prettier-ignore
      t.equal(codeOf(await orders.change(id, back)), 'success')
      await orders.restart()
      t.equal(await orders.holder(kind, b), id)
      t.equal(await orders.holder(kind, c), null)
      t.equal(codeOf(await orders.change(id, [[kind, d]])), 'success')
      await orders.flushed()
      t.equal(await orders.holder(kind, b), null, 'it can be given up later')
    })
  }
}

t.test('a number and a reference of one text are two keys, over a takeover', async (t) => {
  const hooks: MemoryHooks = {}
  const orders = await Orders.start({ shards: 4, hooks })
  const text = Array.from({ length: 99 }, (_, i) => `T${i}`).find((key) => {
    return shardOf(placeOfKey('order', key), 4) !== shardOf(placeOfKey(KEY_TYPES.reference, key), 4)
  })!
  hooks.beforeWrite = () => 'unknown'
  const { id } = made(await orders.create(text, [['reference', text]]))
  hooks.beforeWrite = undefined
  await orders.restart()
  t.equal(await orders.holder('number', text), id)
  t.equal(await orders.holder('reference', text), id)
})

t.test('a free key that two want while it is read: one of them has it', async (t) => {
  const ruled = latch()
  const behaviour: Behaviour<Ledger> = {
    ...ledger,
    *decide(state, message, turn) {
      const decision = yield* ledger.decide(state, message, turn)
      if (message.type === 'renumber') yield { call: 'effects', hook: 'renumbered', payload: null }
      return decision
    },
  }
  const rules = () => ruled.opened.then(() => [])
  const scene = new Scene({ behaviours: [behaviour], rules })
  await scene.run(scene.shard.claim())
  const ids = [await scene.made(), await scene.made()]
  for (const id of ids) await scene.tokens(id)
  scene.readMs = 10
  const asked = ids.map((id) => scene.ask(id, { say: [['renumber', { number: 'K' }]] }))
  await scene.clock.advance(2 * scene.readMs)
  ruled.open()
  const said = (await scene.run(Promise.all(asked))).map(saidOf)
  t.same(said, ['success', 'ALREADY_EXISTS'])
})

t.test('a key that an older version remembers of an actor that has it no more', async (t) => {
  const scene = new Scene()
  await scene.run(scene.shard.claim())
  const [before, now] = [await scene.made(), await scene.made()]
  const renumber = (id: string) =>
    scene.run(scene.ask(id, { say: [['renumber', { number: 'K' }]] }))
  const remembered = { keyType: 'ledger', key: 'K', messageId: 'm' }
  await scene.tokens(before)
  scene.shard.activations.get(before)!.held.set(idOf('ledger', 'K'), remembered)
  t.equal(saidOf(await renumber(now)), 'success', 'it was given back')
  await scene.run(scene.ask(before, { say: [['append', { token: 'x' }]] }))
  t.equal(saidOf(await renumber(before)), 'ALREADY_EXISTS')
  await scene.restart()
  t.equal(saidOf(await renumber(before)), 'ALREADY_EXISTS', 'and it is nobody else from now on')
})
