// The seal of an entry: another store's, another inbox's, a changed one, a second time, a late one.

import t from 'tap'
import { createHmac } from 'node:crypto'
import { LIMITS } from '../../config/limits.ts'
import { entryFields } from './entry.ts'
import { Seal } from './seal.ts'

function seals() {
  const time = { ms: 1_700_000_000_000 }
  const nowMs = (): number => time.ms
  const of = (secret = 'a secret'): Seal => new Seal({ secret, nowMs })
  return { time, of }
}

const fields = entryFields('there', [1], ['["r",1,{}]'], 1)

t.test('what a member has sealed is taken, once', async (t) => {
  const { of, time } = seals()
  const [sender, reader] = [of(), of()]
  const [first, second] = [sender.close('in:a', fields), sender.close('in:a', fields)]
  t.equal(reader.fault('in:a', first), null)
  t.match(reader.fault('in:a', first), /here already/)
  t.equal(reader.fault('in:a', second), null)
  t.match(reader.fault('in:a', first), /here already/, 'nor an older one')
  time.ms -= 3_600_000
  t.equal(reader.fault('in:a', sender.close('in:a', fields)), null, 'the clock went back')
  const other = entryFields('elsewhere', [], [], 1)
  t.equal(reader.fault('in:a', of().close('in:a', other)), null, 'each sender counts by itself')
})

t.test("the digest is node's HMAC", async (t) => {
  const { of } = seals()
  const sealed = of().close('in:ä', ['h', 'ß€😀'])
  const [n, m] = [sealed[3]!, sealed[5]!]
  const text = `4 in:ä ${n} 1 h 4 ß€😀`
  t.equal(m, createHmac('sha256', 'a secret').update(text).digest('base64'))
})

t.test('anything else is not', async (t) => {
  const { of } = seals()
  const reader = of()
  const sealed = of().close('in:a', fields)
  t.match(reader.fault('in:a', fields), /not sealed/)
  t.match(reader.fault('in:a', []), /not sealed/)
  t.match(reader.fault('in:b', sealed), /seal is not/, 'meant for another inbox')
  t.match(of('another').fault('in:a', sealed), /seal is not/)
  for (let i = 0; i < sealed.length; i++) {
    const changed = sealed.with(i, `1${sealed[i]}`)
    t.not(reader.fault('in:a', changed), null, `field ${i}`)
  }
  t.not(reader.fault('in:a', [...sealed.slice(0, -1), '']), null)
  t.match(reader.fault('in:a', of().close('in:a', ['h', 'x'])), /names no sender/)
  t.equal(reader.fault('in:a', sealed), null, 'and what was refused has not spoilt it')
})

t.test('nor what was held back for long', async (t) => {
  const { of, time } = seals()
  const sealed = of().close('in:a', fields)
  time.ms += LIMITS.redis.sealAgeMs + 1
  t.match(of().fault('in:a', sealed), /was sealed 600 s ago/)
})

t.test('senders are remembered within a bound', async (t) => {
  const { of } = seals()
  const [sender, reader] = [of(), of()]
  let taken = 0
  for (let i = 0; i < LIMITS.redis.sendersMax + 10; i++) {
    const one = entryFields(`sender ${i}`, [], [], 1)
    taken += reader.fault('in:a', sender.close('in:a', one)) === null ? 1 : 0
  }
  t.equal(taken, LIMITS.redis.sendersMax + 10)
  t.equal(reader.senders, LIMITS.redis.sendersMax)
})

t.test('those that were silent for longest are forgotten first', async (t) => {
  const { of } = seals()
  const [sender, reader] = [of(), of()]
  const close = (i: number) => sender.close('in:a', entryFields(`sender ${i}`, [], [], 1))
  const first = Array.from({ length: LIMITS.redis.sendersMax }, (_, i) => close(i))
  for (const sealed of first) reader.fault('in:a', sealed)
  t.equal(reader.fault('in:a', close(0)), null)
  t.equal(reader.fault('in:a', close(LIMITS.redis.sendersMax)), null)
  t.match(reader.fault('in:a', first[0]!), /here already/, 'it has written since')
  t.equal(reader.fault('in:a', first[1]!), null)
})
