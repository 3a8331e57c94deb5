// The serial level of a store goes with every statement: a store over several data centres asks all
// of them, for two levels in one store mean two owners of a shard. Source: PROTOCOL 3.0, 3.1.

import { Client, types, type QueryOptions } from 'cassandra-driver'
import t from 'tap'
import { Session, type SerialLevel } from './session.ts'

const { consistencies } = types

t.test('conditional statements and serial reads are of the level of the store', async (t) => {
  const sent: QueryOptions[] = []
  const answer = { rows: [], pageState: null, wasApplied: () => true }
  const send = (_: unknown, params: unknown, options?: QueryOptions) => {
    sent.push(options ?? (params as QueryOptions))
    return Promise.resolve(answer)
  }
  t.intercept(Client.prototype, 'connect', { value: () => Promise.resolve() })
  t.intercept(Client.prototype, 'execute', { value: send })
  t.intercept(Client.prototype, 'batch', { value: send })
  const quiet = (): void => undefined
  const session = await Session.connect({
    contactPoints: ['127.0.0.1:1'],
    datacenter: 'datacenter1',
    log: { debug: quiet, info: quiet, warn: quiet, error: quiet },
    now: () => 0,
  })
  t.teardown(() => session.close())
  const levels = async (level: SerialLevel | null) => {
    if (level !== null) session.use(level)
    sent.length = 0
    await session.conditional('UPDATE', [])
    await session.conditionalBatch([{ query: 'UPDATE', params: [] }])
    await session.readSerial('SELECT', [])
    await session.read('SELECT', [])
    await session.put([{ query: 'UPDATE', params: [] }])
    return sent.map(({ consistency, serialConsistency = null }) => [consistency, serialConsistency])
  }
  const wanted = (quorum: types.consistencies, serial: types.consistencies) => [
    [quorum, serial],
    [quorum, serial],
    [serial, null],
    [quorum, null],
    [quorum, null],
  ]
  const local = wanted(consistencies.localQuorum, consistencies.localSerial)
  t.same(await levels(null), local)
  t.same(await levels('SERIAL'), wanted(consistencies.quorum, consistencies.serial))
  t.same(await levels('LOCAL_SERIAL'), local)
})
