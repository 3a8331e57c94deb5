// Passwords: what is kept of them, who is told what, which may not be chosen. Source: CONTRACT 1.8
// "Passwords".

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { Passwords } from './password.ts'
import { weaknessOf } from './password-rules.ts'
import type { Principal } from './principal.ts'

const NOW = Date.parse('2026-03-01T12:00:00Z')
const GOOD = 'three blue kettles sing'

function setUp() {
  const clock = { nowMs: NOW }
  let seed = 1
  const passwords = new Passwords({
    random(bytes) {
      for (let i = 0; i < bytes.length; i++) bytes[i] = (seed = (seed * 69069 + 1) >>> 0) >>> 24
    },
    nowMs: () => clock.nowMs,
    monotonicMs: () => clock.nowMs,
  })
  return { passwords, clock }
}

function ada(password: Principal['password'], more: Partial<Principal> = {}): Principal {
  return {
    properties: { name: 'Ada Lovelace', email: 'ada@example.com' },
    ...{ roles: [], accessAttributes: {}, sessionEpoch: 0, createdAt: '', suspendedAt: null },
    password,
    ...more,
  }
}

t.test('kept as argon2id with its own salt, and told right from wrong', async (t) => {
  const { passwords } = setUp()
  const [one, other] = await Promise.all([passwords.hash(GOOD), passwords.hash(GOOD)])
  t.match(one, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/)
  t.not(one, other)
  const principal = ada({ hash: one, changedAt: '', expiresAt: null })
  const check = (password: string, of: Principal | null = principal) =>
    passwords.check({ principal: of, email: 'ada@example.com', password, address: '' })
  t.equal(await check(GOOD), 'right')
  t.equal(await check(`${GOOD}!`), 'wrong')
  t.equal(await check(''), 'wrong')
  t.equal(await check(GOOD, null), 'wrong', 'of nobody')
  t.equal(await check('nobody has this password', null), 'wrong')
  t.equal(await check(GOOD, ada(null)), 'wrong', 'of somebody without')
  t.equal(await check(GOOD, { ...principal, suspendedAt: '2026-01-01T00:00:00Z' }), 'wrong')
  const composed = ada({
    hash: await passwords.hash('caf\u00e9 caf\u00e9 caf\u00e9'),
    changedAt: '',
    expiresAt: null,
  })
  t.equal(await check('cafe\u0301 cafe\u0301 cafe\u0301', composed), 'right', 'as another keyboard')
})

t.test('a temporary one is told as such, and ends', async (t) => {
  const { passwords, clock } = setUp()
  const password = passwords.temporary()
  t.match(password, /^([A-Za-z2-9]{5}-){3}[A-Za-z2-9]{5}$/)
  t.not(passwords.temporary(), password)
  const expiresAt = passwords.temporaryUntil()
  const principal = ada({ hash: await passwords.hash(password), changedAt: '', expiresAt })
  const check = () =>
    passwords.check({ principal, email: 'ADA@example.com', password, address: '192.0.2.1' })
  t.equal(await check(), 'temporary')
  clock.nowMs = NOW + LIMITS.access.temporaryPasswordMs - 1
  t.equal(await check(), 'temporary')
  clock.nowMs++
  t.equal(await check(), 'wrong')
})

t.test(
  'wrong ones are counted for the account, known or not, and then nothing is looked at',
  async (t) => {
    const { passwords } = setUp()
    const check = (email: string) =>
      passwords.check({ principal: null, email, password: 'x', address: '192.0.2.1' })
    for (let i = 0; i < LIMITS.access.signInWrongMax; i++) {
      t.equal(await check(i % 2 ? 'ada@example.com' : 'ADA@Example.com'), 'wrong')
    }
    t.match(await check('ada@example.com'), { refused: 'wrong-too-often' })
    t.equal(await check('bob@example.com'), 'wrong', 'another account')
  },
)

t.test('a flood is checked a few at a time, and past a bound told to wait', async (t) => {
  const { passwords } = setUp()
  const { secretChecksWaitingMax, secretChecksMax } = LIMITS.access
  const count = secretChecksWaitingMax + secretChecksMax + 8
  const answers = await Promise.all(
    Array.from({ length: count }, (_, i) =>
      passwords.check({
        principal: null,
        email: `person${i}@example.com`,
        password: 'x',
        address: `192.0.${i}.1`,
      }),
    ),
  )
  const busy = answers.filter((one) => typeof one === 'object' && one.refused === 'busy')
  t.ok(busy.length >= 8, `${busy.length} of ${count}`)
})

t.test('which may not be chosen', async (t) => {
  const about = ['Ada Lovelace', 'ada.byron@example.com']
  const weak = (password: string): string | null => weaknessOf(password, about)
  for (const password of [
    ...['short', 'elevenchars', '123456789012', '098765432109', 'aaaaaaaaaaaa', 'abcabcabcabc'],
    ...['password1234', 'Password!2024', 'P@ssw0rd12345', 'passwordpassword', 'qwertyuiop12'],
    ...['asdfghjkl123', '1q2w3e4r5t6y', 'administrator1', 'iloveyou1234', 'zyxwvutsrqpo'],
    ...['adalovelace1', 'Lovelace-2024', 'ada.byron.1815', 'a'.repeat(257), 'ünïünïünïünï'],
    ...['dragondragon', '!!!!!!!!!!!!', `${'x'.repeat(12)}\ud800`],
  ]) {
    t.type(weak(password), 'string', password)
  }
  for (const password of [
    ...[
      GOOD,
      'correct horse battery staple',
      'Tr0ub4dor&3xyz',
      'S3cure-Passw0rd!',
      '𝒳𝒴𝒵 kettle twelve',
    ],
    ...['9472058316', '739184620573'].filter(({ length }) => length >= 12),
    ...[
      'ada likes long walks',
      'новый пароль длинный',
      'x7!kP2#mQ9vL',
      'a'.repeat(240) + GOOD.slice(0, 16),
    ],
  ]) {
    t.equal(weak(password), null, password)
  }
  const { passwords } = setUp()
  t.match(passwords.fault('short', ada(null)), { code: 'WEAK_PASSWORD', message: /has 5 char/ })
  t.equal(passwords.fault(GOOD, ada(null)), null)
})
