// What a store is, asked of it from the first statement on: its serial level goes with everything
// that is conditional, whatever is configured or not. Source: PROTOCOL 3.0, 3.1.

import { types } from 'cassandra-driver'
import t from 'tap'
import { openCassandra } from './store.ts'
import { TwinCassandra } from './testing/twin.ts'

const { consistencies } = types
const LEVELS = {
  SERIAL: { serial: consistencies.serial, quorum: consistencies.quorum },
  LOCAL_SERIAL: { serial: consistencies.localSerial, quorum: consistencies.localQuorum },
} as const

for (const level of ['SERIAL', 'LOCAL_SERIAL'] as const) {
  t.test(`a store of ${level}`, async (t) => {
    const twin = new TwinCassandra(t)
    const options = twin.options(t)
    const other = level === 'SERIAL' ? 'LOCAL_SERIAL' : 'SERIAL'
    const seen: unknown[] = []
    twin.fault = (query, { consistency, serialConsistency: serial }) => {
      if (/^\s*(UPDATE|INSERT).* IF /s.test(query)) seen.push({ serial, quorum: consistency })
      return null
    }
    const open = async (serial: typeof level | null): Promise<void> => {
      seen.length = 0
      const store = await openCassandra({ ...options, serial })
      const { incarnation, epoch } = await store.control.shard(0)
      const next = { epoch: epoch + 1, owner: 'm', incarnation }
      t.equal(await store.control.updateShard(0, next, { epoch, incarnation }), 'applied')
      t.match(store.identity, {
        serial: level,
        datacenter: level === 'SERIAL' ? null : 'datacenter1',
      })
      await store.close()
      t.ok(seen.length > 0)
      t.same(
        new Set(seen.map((one) => JSON.stringify(one))),
        new Set([JSON.stringify(LEVELS[level])]),
      )
    }
    await open(level)
    await open(level)
    await open(null)
    await t.rejects(openCassandra({ ...options, serial: other }), {
      message: new RegExp(`made for the serial level ${level}, ${other} is configured`),
    })
  })
}

t.test('a new store is of LOCAL_SERIAL, and has 32 shards', async (t) => {
  const twin = new TwinCassandra(t)
  const store = await openCassandra({ ...twin.options(t), shards: null })
  t.match(store.identity, { serial: 'LOCAL_SERIAL', shards: 32, format: 1 })
  t.equal((await store.control.shards()).length, 33)
  await store.close()
})

t.test('the number of shards is a power of two', async (t) => {
  const twin = new TwinCassandra(t)
  for (const shards of [0, 3, 6, 8_192, -4]) {
    await t.rejects(openCassandra({ ...twin.options(t), shards }), {
      message: `the number of shards must be a power of two up to 4096: ${shards}`,
    })
  }
})

t.test('what was written is in before a store is closed', async (t) => {
  const twin = new TwinCassandra(t)
  const options = twin.options(t)
  const store = await openCassandra(options)
  const order: string[] = []
  const written = store.derived.write(0, 1, [{ kind: 'consumer', consumer: 'flush', offset: 7 }])
  void written.then(() => order.push('written'))
  await store.close()
  order.push('closed')
  t.same(order, ['written', 'closed'])
})
