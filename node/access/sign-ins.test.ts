// Which secrets are checked, and in which order, with checks that end when the test says so.

import t from 'tap'
import { settle } from '../../cluster/testing/harness.ts'
import { LIMITS } from '../../config/limits.ts'
import { SignIns, type Readings, type SignInAnswer } from './sign-ins.ts'

/** One client, whose right secret is `right`; checks wait until they are let go. */
function scene() {
  const time = { ms: 1_000 }
  const known = new Set<string>()
  const running: { secret: string; end: () => void }[] = []
  let checks = 0
  const secrets = {
    isKnown: ([secret]: Readings) => known.has(secret),
    atOnce: ([secret]: Readings) => (secret.startsWith('made') ? secret === 'made right' : null),
    async matches([secret]: Readings): Promise<boolean> {
      checks++
      await new Promise<void>((end) => running.push({ secret, end }))
      return secret.startsWith('right')
    },
  }
  const signIns = new SignIns({ secrets, nowMs: () => time.ms })
  const answers: string[] = []
  const send = async (secret: string, address: string, clientId = 'shop'): Promise<void> => {
    const name = (answer: SignInAnswer): string =>
      typeof answer === 'string' ? answer : `${answer.refused} ${answer.retryAfterMs}`
    void signIns
      .check({ clientId, secret, hashes: ['h'], address })
      .then((answer) => answers.push(`${secret}: ${name(answer)}`))
    await settle()
  }
  /** The oldest check ends; the secret that it was of. */
  const end = async (): Promise<string> => {
    const { secret, end: go } = running.shift()!
    go()
    await settle()
    return secret
  }
  return { time, known, running, answers, send, end, checks: () => checks }
}

const ATTACKER = '192.0.2.66'
const [CLEAN, OTHER] = ['198.51.100.1', '203.0.113.5']

t.test('a flood of wrong ones from one address: few are checked, one at a time', async (t) => {
  const s = scene()
  for (let i = 0; i < 200; i++) await s.send(`wrong${i}`, ATTACKER)
  t.equal(s.running.length, LIMITS.access.secretChecksMax)
  await s.end()
  t.equal(s.running.length, 1, 'from the first outcome on the rest is suspect')
  await s.send('right', CLEAN)
  t.strictSame(
    s.running.map(({ secret }) => secret),
    ['wrong1', 'right'],
    'a right one from elsewhere has its place at once',
  )
  while (s.running.length > 0) await s.end()
  t.equal(s.checks(), LIMITS.access.signInWrongMax + 1)
  t.ok(s.answers.includes('right: right'))
  const refused = s.answers.filter((answer) => answer.includes('wrong-too-often'))
  t.equal(
    refused.length,
    LIMITS.access.secretChecksOfBlockWaitingMax + 2 - LIMITS.access.signInWrongMax,
  )
  await s.send('late', ATTACKER)
  t.match(s.answers.at(-1), `late: wrong-too-often ${LIMITS.access.signInWaitMs}`)
  t.equal(s.running.length, 0, 'without a check')
  s.time.ms += LIMITS.access.signInWaitMs
  await s.send('right again', ATTACKER)
  await s.end()
  t.equal(s.answers.at(-1), 'right again: right')
})

t.test(
  'a flood from more networks than may wait keeps out nobody who was right before',
  async (t) => {
    const s = scene()
    await s.send('right', CLEAN)
    await s.end()
    const { secretChecksWaitingMax: waiting, secretChecksMax } = LIMITS.access
    const flood = async (from: number): Promise<void> => {
      for (let i = from; i < from + 2 * waiting; i++) await s.send(`wrong${i}`, `2001:db8:${i}::1`)
    }
    await flood(0)
    await s.send('right new', OTHER)
    t.equal(s.answers.at(-1), 'right new: busy 1000', 'who comes from a new network is one of them')
    await s.send('right again', CLEAN)
    for (let i = 0; i < secretChecksMax; i++) await s.end()
    t.ok(
      s.running.some(({ secret }) => secret === 'right again'),
      'the next that is checked',
    )
  },
)

t.test('who was right before goes first, and the rest has a turn', async (t) => {
  const s = scene()
  const friends = Array.from({ length: 20 }, (_, i) => `198.51.${i}.1`)
  for (const address of friends) {
    await s.send('right', address)
    await s.end()
  }
  for (const address of friends) await s.send('right friend', address)
  await s.send('right new', OTHER)
  const before: string[] = []
  for (let i = 0; i < 20 && !s.answers.includes('right new: right'); i++) before.push(await s.end())
  t.ok(before.length > 4 && before.length <= 8, `after ${before.join(', ')}`)
})

t.test('who was wrong since waits with the rest', async (t) => {
  const s = scene()
  for (const address of [CLEAN, OTHER]) {
    await s.send('right', address)
    await s.end()
  }
  await s.send('wrong', CLEAN)
  await s.end()
  for (let i = 0; i < LIMITS.access.secretChecksMax; i++) await s.send('right', `198.51.9${i}.1`)
  await s.send('right last', CLEAN)
  await s.send('right friend', OTHER)
  await s.end()
  t.equal(s.running.at(-1)?.secret, 'right friend')
})

t.test('what a digest tells waits in no line, and counts all the same', async (t) => {
  const s = scene()
  const { secretChecksWaitingMax: waiting, signInWrongMax } = LIMITS.access
  for (let i = 0; i < 2 * waiting; i++) await s.send(`wrong${i}`, `2001:db8:${i}::1`)
  const atLength = s.checks()
  await s.send('made right', CLEAN)
  t.equal(s.answers.at(-1), 'made right: right', 'at once, with the lines full')
  for (let i = 0; i < signInWrongMax; i++) {
    await s.send('made wrong', OTHER)
    t.equal(s.answers.at(-1), 'made wrong: wrong')
  }
  await s.send('made right', OTHER)
  t.match(s.answers.at(-1), /^made right: wrong-too-often/)
  t.equal(s.checks(), atLength, 'none of them at length')
})

t.test('a right secret that is known passes, whatever others do', async (t) => {
  const s = scene()
  s.known.add('mine')
  for (let i = 0; i < LIMITS.access.signInWrongMax; i++) {
    await s.send(`wrong${i}`, ATTACKER)
    await s.end()
  }
  await s.send('wrong', ATTACKER)
  t.match(s.answers.at(-1), /^wrong: wrong-too-often/)
  await s.send('mine', ATTACKER)
  t.equal(s.answers.at(-1), 'mine: right', 'also from the address of the wrong ones')
  t.equal(s.checks(), LIMITS.access.signInWrongMax)
})

t.test('right ones don’t count, and who waited for one like them isn’t checked', async (t) => {
  const s = scene()
  for (let i = 0; i < 50; i++) {
    await s.send(`right${i}`, CLEAN)
    await s.end()
  }
  t.equal(s.checks(), 50)
  for (let i = 0; i < 5; i++) await s.send('right', CLEAN)
  t.equal(s.running.length, 2)
  s.known.add('right')
  await s.end()
  t.equal(s.running.length, 1, 'the three that waited know it now')
  t.equal(s.answers.filter((answer) => answer === 'right: right').length, 4)
})

t.test('wrong ones from many addresses: networks take turns', async (t) => {
  const s = scene()
  for (let i = 0; i < 200; i++) await s.send(`wrong${i}`, `10.0.${i % 3}.${i}`)
  await s.send('right', CLEAN)
  const before: string[] = []
  for (let i = 0; i < 20 && !s.answers.includes('right: right'); i++) before.push(await s.end())
  t.ok(before.length <= 7, `after ${before.join(' ')}`)
})

t.test('suspects have a turn while others come without end', async (t) => {
  const s = scene()
  await s.send('wrong', OTHER)
  await s.end()
  for (let i = 0; i < 10; i++) await s.send(`right${i}`, `198.51.${i}.1`)
  await s.send('right at last', OTHER)
  const before: string[] = []
  for (let i = 0; i < 12 && !s.answers.includes('right at last: right'); i++) {
    before.push(await s.end())
    await s.send(`right-${i}`, `198.52.${i}.1`)
  }
  t.ok(before.length <= 8, `after ${before.join(' ')}`)
})

t.test('in a flood from everywhere one is checked at a time', async (t) => {
  const s = scene()
  for (let i = 0; i < LIMITS.access.signInFloodMax; i++) {
    await s.send(`wrong${i}`, `10.1.${i}.1`)
    await s.end()
  }
  await s.send('a', CLEAN)
  await s.send('b', OTHER)
  t.equal(s.running.length, 1)
  await s.end()
  t.equal(s.running.length, 1)
})

t.test('an unknown client is treated as a wrong secret is', async (t) => {
  const s = scene()
  for (const clientId of ['shop', 'nobody']) {
    for (let i = 0; i < LIMITS.access.signInWrongMax; i++) {
      await s.send('wrong', ATTACKER, clientId)
      await s.end()
    }
    await s.send('wrong', ATTACKER, clientId)
  }
  t.equal(s.checks(), 2 * LIMITS.access.signInWrongMax)
  const half = s.answers.length / 2
  const [first, second] = [s.answers.slice(0, half), s.answers.slice(half)]
  t.strictSame(first, second)
})

t.test('past its bound the line says so at once', async (t) => {
  const s = scene()
  const all = LIMITS.access.secretChecksMax + LIMITS.access.secretChecksWaitingMax + 3
  for (let i = 0; i < all; i++) await s.send(`w${i}`, `10.${i}.0.1`)
  t.equal(s.answers.filter((answer) => answer.includes('busy')).length, 3)
  await s.send('x'.repeat(LIMITS.access.secretCharsMax + 1), CLEAN)
  t.match(s.answers.at(-1), /: wrong$/, 'too long to be one')
})

t.test('secrets that are too long are wrong ones like others', async (t) => {
  const s = scene()
  const long = 'x'.repeat(LIMITS.access.secretCharsMax + 1)
  for (let i = 0; i < 10_000; i++) await s.send(long, ATTACKER)
  const refused = s.answers.filter((answer) => answer.includes('wrong-too-often'))
  t.equal(refused.length, 10_000 - LIMITS.access.signInWrongMax)
  t.ok(refused.at(-1)!.endsWith(` ${LIMITS.access.signInWaitMs}`))
  s.time.ms += LIMITS.access.signInWaitMs
  await s.send('right', ATTACKER)
  await s.end()
  t.equal(s.answers.at(-1), 'right: right')
  for (const [i, address] of [CLEAN, OTHER].entries()) await s.send(`right${i}`, address)
  t.equal(s.running.length, LIMITS.access.secretChecksMax, 'nobody else is slowed')
  t.equal(s.checks(), 3)
})
