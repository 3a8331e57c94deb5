// What is under way in a shard when its tenure ends, or when it goes back to what is committed: it
// comes to nothing, and whoever waits for it is told so (PROTOCOL 3.2, 3.5, 3.8).

import t from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import type { Address } from '../../../protocol/message.ts'
import type { AppendOutcome } from '../../../storage/journal.ts'
import type { MemoryHooks } from '../../../storage/memory/journal.ts'
import { settle } from '../../testing/harness.ts'
import { Scene, code, data, latch } from '../testing/scene.ts'

const byKey = (key: string): { readonly to: Address } => ({ to: { type: 'ledger', key } })

async function served(hooks: MemoryHooks = {}): Promise<Scene> {
  const scene = new Scene({ hooks })
  await scene.run(scene.shard.claim())
  return scene
}

t.test('a create whose key is read while the shard is sealed begins again', async (t) => {
  const scene = await served()
  const id = scene.newUuid(0)
  const create = { virtual: true, key: 'k', say: [['open', { token: 'a' }]] as [string, object][] }
  scene.readMs = 20
  const asked = scene.tell(scene.envelope(id, create))
  await settle()
  t.equal(await scene.run(scene.shard.seal(), 0), true)
  await scene.clock.advance(20)
  t.equal(code(await asked), 'moved')
  scene.shard.unseal()
  t.equal(code(await scene.run(scene.ask(id, create))), 'success')
  t.same(scene.logged, [], 'no turn has failed meanwhile')
})

t.test('a key that was read before a roll-back is not gone by', async (t) => {
  const hooks: MemoryHooks = {}
  const scene = await served(hooks)
  const id = await scene.made()
  const renumber = (number: string) => scene.ask(id, { say: [['renumber', { number }]] })
  await settle()
  scene.readMs = 1_000
  const asked = scene.tell(scene.envelope(id, byKey('K')))
  scene.readMs = 0
  const write = latch()
  hooks.beforeWrite = () => write.opened.then(() => null)
  t.equal(code(await scene.run(renumber('K'))), 'success', 'the actor has it')
  const append = latch()
  hooks.beforeAppend = () => append.opened.then((): AppendOutcome => 'full')
  const full = renumber('L')
  await settle()
  // The key's row is durable, and this much is forgotten of it, before what is above it is lost.
  write.open()
  await settle()
  append.open()
  t.equal(code(await scene.run(full)), 'STORAGE_FULL')
  delete hooks.beforeAppend
  await scene.clock.advance(1_000)
  t.equal(code(await asked), 'moved', 'the row that it has read is older')
  t.same(data(await scene.run(scene.ask(id, byKey('K')))), ['first'])
})

t.test('a seal that waits for an append ends with the tenure', async (t) => {
  const hooks: MemoryHooks = {}
  const scene = await served(hooks)
  const id = await scene.made()
  const append = latch()
  hooks.beforeAppend = () => append.opened.then(() => null)
  void scene.tell(scene.envelope(id, { say: [['append', { token: 'a' }]] }))
  await settle()
  const sealed = scene.shard.seal()
  scene.shard.stepDown('as asked')
  t.equal(await scene.run(sealed, 0), false)
  append.open()
  await settle()
  t.equal(scene.shard.state, 'stopped')
})

t.test('a read behind what may be in the log has done nothing all the same', async (t) => {
  const hooks: MemoryHooks = {}
  const scene = await served(hooks)
  const id = await scene.made()
  hooks.beforeAppend = () => new Promise(() => undefined)
  const written = scene.tell(scene.envelope(id, { say: [['append', { token: 'a' }]] }))
  const read = scene.tell(scene.envelope(id))
  await scene.clock.advance(10)
  scene.shard.stepDown('as asked')
  t.same(await written, { outcome: 'moved', shard: 0, taken: true })
  t.same(await read, { outcome: 'moved', shard: 0 })
})

t.test('it is not quiet while a turn has reserved a key', async (t) => {
  const scene = await served()
  const id = await scene.made()
  await scene.tokens(id)
  t.equal(scene.shard.quiet, true)
  scene.readMs = 10
  const asked = scene.tell(scene.envelope(id, { say: [['renumber', { number: 'K' }]] }))
  await settle()
  t.equal(scene.shard.quiet, false)
  t.equal(code(await scene.run(asked)), 'success')
  await scene.clock.advance(10)
  t.equal(scene.shard.quiet, true)
})

t.test('whether a read may leave can not be told: it stays, and is asked for again', async (t) => {
  const scene = await served()
  const id = await scene.made()
  scene.mayRead = () => Promise.reject(new Error('the store is away'))
  t.equal(code(await scene.run(scene.tell(scene.envelope(id)))), 'UNAVAILABLE')
  scene.mayRead = null
  t.same(await scene.tokens(id), ['first'])
})

t.test('a question that a seal has dropped is gone once it is answered behind it', async (t) => {
  const rule = latch()
  const scene = new Scene({ rules: () => rule.opened.then(() => []) })
  await scene.run(scene.shard.claim())
  const id = await scene.made()
  await scene.clock.advance(LIMITS.sharding.flushStoredMs * 2)
  const say = [['append', { token: 'x', wait: 'rule' }]] as const
  const turn = scene.tell(scene.envelope(id, { say }))
  await settle()
  scene.shard.activations.get(id)!.marks.spilled = true
  scene.readMs = 100
  const body = { keyType: 'ledger', key: 'K', messageId: 'f'.repeat(32) }
  const question = scene.tell(scene.envelope(id, { say: [['!holds', body]] }))
  await settle()
  t.equal(scene.shard.activations.get(id)!.questions.size, 1)
  t.equal(await scene.run(scene.shard.seal(), 0), true)
  scene.shard.unseal()
  rule.open()
  t.equal(data(await scene.run(question)), false)
  t.equal(code(await scene.run(turn)), 'success')
  t.equal(scene.shard.activations.get(id)!.questions.size, 0)
})
