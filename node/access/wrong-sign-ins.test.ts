// How often wrong sign-ins are borne, by client and network, and in how much memory.

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { originOf, WrongSignIns } from './wrong-sign-ins.ts'

function scene() {
  const time = { ms: 5_000 }
  const wrong = new WrongSignIns(() => time.ms)
  const times = (count: number, client: string, address: string): void => {
    for (let i = 0; i < count; i++) wrong.count(originOf(client, address))
  }
  const wait = (client: string, address: string): number => wrong.waitMs(originOf(client, address))
  return { time, wrong, times, wait }
}

t.test('a client from a network: some at once, then one more each time', (t) => {
  const { time, wrong, times, wait } = scene()
  times(LIMITS.access.signInWrongMax - 1, 'a', '192.0.2.1')
  t.equal(wait('a', '192.0.2.1'), 0)
  times(1, 'a', '192.0.2.1')
  t.equal(wait('a', '192.0.2.1'), LIMITS.access.signInWrongEveryMs)
  t.equal(wait('b', '192.0.2.1'), 0, 'another client')
  t.equal(wait('a', '192.0.2.2'), 0, 'another network')
  time.ms += LIMITS.access.signInWrongEveryMs
  t.equal(wait('a', '192.0.2.1'), 0)
  times(1, 'a', '192.0.2.1')
  t.equal(wait('a', '192.0.2.1'), LIMITS.access.signInWrongEveryMs)
  t.ok(wrong.isSuspect(originOf('b', '192.0.2.1')), 'all of the network is suspect')
  t.notOk(wrong.isSuspect(originOf('a', '192.0.2.2')))
  time.ms += (LIMITS.access.signInWrongMax + 1) * LIMITS.access.signInWrongEveryMs
  t.notOk(wrong.isSuspect(originOf('a', '192.0.2.1')), 'it is forgotten')
  t.end()
})

t.test('a network with many clients, of IPv6 a /64', (t) => {
  const { time, wait, times } = scene()
  for (let i = 0; i < LIMITS.access.signInWrongOfNetworkMax; i++)
    times(1, `c${i}`, `2001:db8::${i}`)
  t.equal(wait('new', '2001:db8::ffff'), LIMITS.access.signInWrongOfNetworkEveryMs)
  t.equal(wait('new', '2001:db8:0:1::'), 0)
  time.ms += LIMITS.access.signInWrongOfNetworkEveryMs
  t.equal(wait('new', '2001:db8::ffff'), 0)
  t.end()
})

t.test('however many there were, the time until there is room is that of one', (t) => {
  const { time, wrong, times, wait } = scene()
  times(100_000, 'a', '192.0.2.1')
  t.equal(wait('a', '192.0.2.1'), LIMITS.access.signInWrongEveryMs)
  t.equal(wait('b', '192.0.2.1'), LIMITS.access.signInWrongOfNetworkEveryMs)
  time.ms += LIMITS.access.signInFloodEveryMs
  t.notOk(wrong.isFlooded)
  time.ms += LIMITS.access.signInWrongMax * LIMITS.access.signInWrongEveryMs
  t.notOk(wrong.isSuspect(originOf('a', '192.0.2.1')))
  t.end()
})

t.test('from everywhere: a flood is known, and memory has a bound', (t) => {
  const { time, wrong, times } = scene()
  times(LIMITS.access.signInFloodMax - 1, 'a', '192.0.2.1')
  t.notOk(wrong.isFlooded)
  for (let i = 0; i < LIMITS.access.signInOriginsMax + 100; i++) {
    times(1, 'x'.repeat(200), `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`)
  }
  t.ok(wrong.isFlooded)
  t.equal(wrong.size, 2 * LIMITS.access.signInOriginsMax)
  time.ms += 1e9
  t.notOk(wrong.isFlooded)
  t.end()
})
