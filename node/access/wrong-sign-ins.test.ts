// How often wrong sign-ins are borne, by account and network, and in how much memory.

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

const { signInWrongMax, signInWrongMs, signInWaitMs, signInWaitMaxMs } = LIMITS.access

t.test('an account from a network: some are free, then each waits twice as long', (t) => {
  const { time, wrong, times, wait } = scene()
  times(signInWrongMax - 1, 'a', '192.0.2.1')
  t.equal(wait('a', '192.0.2.1'), 0)
  const waits: number[] = []
  for (let i = 0; i < 8; i++) {
    times(1, 'a', '192.0.2.1')
    waits.push(wait('a', '192.0.2.1'))
    time.ms += wait('a', '192.0.2.1') - 1
    t.equal(wait('a', '192.0.2.1'), 1)
    time.ms += 1
    t.equal(wait('a', '192.0.2.1'), 0, 'one more is checked')
  }
  t.strictSame(
    waits,
    [1, 2, 4, 8, 16, 32, 60, 60].map((seconds) => (seconds * signInWaitMaxMs) / 60),
  )
  t.equal(waits[0], signInWaitMs)
  t.equal(wait('b', '192.0.2.1'), 0, 'another account')
  t.equal(wait('a', '192.0.2.2'), 0, 'another network')
  t.ok(wrong.isSuspect(originOf('a', '192.0.2.1')))
  t.notOk(wrong.isSuspect(originOf('a', '192.0.2.2')))
  t.end()
})

t.test('they are forgotten: after the first, and once they wait after the last', (t) => {
  const { time, times, wait } = scene()
  times(signInWrongMax - 1, 'a', '192.0.2.1')
  time.ms += signInWrongMs
  times(signInWrongMax - 1, 'a', '192.0.2.1')
  t.equal(wait('a', '192.0.2.1'), 0)
  time.ms += signInWrongMs - 1
  times(1, 'a', '192.0.2.1')
  t.equal(wait('a', '192.0.2.1'), signInWaitMs)
  time.ms += signInWrongMs - 1
  times(1, 'a', '192.0.2.1')
  t.equal(wait('a', '192.0.2.1'), 2 * signInWaitMs)
  time.ms += signInWrongMs
  times(1, 'a', '192.0.2.1')
  t.equal(wait('a', '192.0.2.1'), 0)
  t.end()
})

t.test('how many are borne is a setting', (t) => {
  const time = { ms: 0 }
  const wrong = new WrongSignIns(() => time.ms, { max: 2, ms: 1_000 })
  const origin = originOf('a', '192.0.2.1')
  wrong.count(origin)
  t.equal(wrong.waitMs(origin), 0)
  wrong.count(origin)
  t.equal(wrong.waitMs(origin), signInWaitMs)
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

t.test('however many there were, the time until there is room has a bound', (t) => {
  const { time, wrong, times, wait } = scene()
  times(100_000, 'a', '192.0.2.1')
  t.equal(wait('a', '192.0.2.1'), signInWaitMaxMs)
  t.equal(wait('b', '192.0.2.1'), LIMITS.access.signInWrongOfNetworkEveryMs)
  time.ms += LIMITS.access.signInFloodEveryMs
  t.notOk(wrong.isFlooded)
  time.ms += signInWrongMs
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
