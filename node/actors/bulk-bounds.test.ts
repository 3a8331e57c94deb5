// What of a bulk is held at a time, with clients that don't read, have gone, or ask for much; and
// who waits for whom when lines come one by one. Source: CONTRACT 0 "Bulk".

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { errorItem } from '../../protocol/errors.ts'
import type { Reply } from '../../protocol/message.ts'
import { bulk, create, latch, note, read, settle } from './testing/bulk-client.ts'

const UUID = '0198c0de-7000-7abc-8def-0123456789ab'

/** An answer whose line has about so many bytes: what is answered stands in it twice. */
function large(bytes: number): Reply {
  const results = [{ type: 'read', success: true, data: 'x'.repeat(bytes / 2) }] as const
  return { outcome: 'answered', actorId: UUID, keys: [], results, position: null }
}

const reads = (count: number, name: string): object[] =>
  Array.from({ length: count }, (_, i) => read(`${name}${i}`))

t.test('answers that wait for a client that does not read count as lines do', async (t) => {
  const { client, system, done } = bulk()
  const answer = large(LIMITS.actors.bulkBytesInFlightMax / 2)
  system.before = () => answer
  client.reading = false
  client.send(...reads(8, 'a')).end()
  await settle()
  t.equal(client.answers.length, 1)
  t.ok(system.asked.length <= 4, `${system.asked.length} were asked`)
  for (let i = 0; i < 8; i++) {
    client.read()
    await settle()
  }
  await done
  t.equal(client.answers.length, 8)
})

t.test('what was written holds nothing up', async (t) => {
  const { client, system, done } = bulk()
  const answer = large(LIMITS.actors.bulkBytesInFlightMax / 4)
  system.before = () => answer
  client.send(...reads(12, 'a'))
  for (let i = 0; i < 12; i++) await settle()
  t.equal(client.answers.length, 12)
  const latches = latch(system)
  const notes = ['n0', 'n1', 'n2', 'n3', 'n4']
  client.send(...notes.map((name) => note(name, name))).end()
  await settle()
  t.same(latches.held, notes, 'they go side by side')
  for (const name of notes) latches.open(name)
  await done
})

t.test('a client that has gone ends the run', async (t) => {
  const { client, system, done } = bulk()
  let ended: unknown = null
  done.catch((error: unknown) => (ended = error))
  client.write = () => Promise.reject(new Error('it has gone'))
  client.send(create(), create())
  await settle()
  client.send(...Array.from({ length: 20 }, () => create()))
  await settle()
  t.match(ended, { message: 'it has gone' })
  t.ok(system.asked.length <= 3, `${system.asked.length} were asked`)
})

t.test('... also when all that it has sent is taken', async (t) => {
  const { client, done } = bulk()
  let ended: unknown = null
  done.catch((error: unknown) => (ended = error))
  let leave = (): void => undefined
  client.write = () => new Promise((_, reject) => (leave = () => reject(new Error('it has gone'))))
  client.send(create(), create()).end()
  await settle()
  t.equal(ended, null, 'it reads slowly')
  leave()
  await settle()
  t.match(ended, { message: 'it has gone' })
})

t.test('a line waits for the last one of its name, also when that waited itself', async (t) => {
  const { client, system, done } = bulk()
  client.send(create('A'))
  await settle()
  const latches = latch(system)
  client.send(note('A', 'a1'), note('A', 'a2'))
  await settle()
  t.same(latches.held, ['a1'])
  latches.open('a1')
  await settle()
  t.same(latches.held, ['a2'])
  client.send(note('A', 'a3')).end()
  await settle()
  t.same(latches.held, ['a2'])
  latches.open('a2')
  await settle()
  latches.open('a3')
  await done
})

t.test('however long its shards are busy, so many lines of it are under way', async (t) => {
  const { client, system, clock, done } = bulk()
  system.before = () => ({ outcome: 'refused', error: errorItem('TOO_BUSY', 'busy') })
  const count = LIMITS.actors.bulkLinesInFlightMax + 100
  client.send(...Array.from({ length: count }, () => create())).end()
  const again = async (): Promise<void> => {
    const timers = clock.timers.splice(0)
    for (const { at } of timers) clock.nowMs = Math.max(clock.nowMs, at)
    for (const { run } of timers) run()
    await settle()
  }
  await settle()
  for (let i = 0; i < 500 && client.answers.length === 0; i++) await again()
  t.equal(client.answers[0]!.errors![0]!.code, 'TOO_BUSY', 'the time of the first ones is up')
  t.equal(clock.timers.length, LIMITS.actors.bulkLinesInFlightMin)
  system.before = () => null
  for (let i = 0; i < 500 && client.answers.length < count; i++) await again()
  await done
  t.equal(client.answers.length, count)
})

t.test('a line that failed keeps its own id, whoever is there', async (t) => {
  const { client, done } = bulk()
  const failing = { type: 'note', body: { fail: 'INVALID_STATE' } }
  client.send(create('A'), { id: 'A', messages: [failing] }).end()
  await done
  t.match(client.answers[1], { id: 'A', errors: [{ code: 'INVALID_STATE' }] })
})

t.test('who calls may take a moment to be known', async (t) => {
  const { client, system, done } = bulk()
  const { who } = client
  client.identityNow = () => Promise.resolve(who)
  client.send(create('A'), note('A', 'x'), read('A')).end()
  await done
  t.same(client.answers[2]!.data, ['x'])
  t.same(
    system.asked.map(({ by }) => by),
    ['shop', 'shop', 'shop'],
  )
})
