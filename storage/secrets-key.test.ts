// Which key the members of a store agree on, and what one is told that has another.

import t from 'tap'
import { agreedKey, WrongSecretsKey, type SecretsKeyNames } from './secrets-key.ts'

const none: SecretsKeyNames = { current: null, known: [] }
const own: SecretsKeyNames = { current: 'own', known: ['own'] }
const newer: SecretsKeyNames = { current: 'newer', known: ['newer', 'own'] }

t.test('a store without a key takes that of the process, if it has one', (t) => {
  t.equal(agreedKey(null, none), null)
  t.equal(agreedKey(null, own), 'own')
  t.equal(agreedKey(null, newer), 'newer')
  t.end()
})

t.test("a process that knows the store's key makes its own the store's", (t) => {
  t.equal(agreedKey('own', own), 'own')
  t.equal(agreedKey('own', newer), 'newer')
  t.equal(agreedKey('newer', newer), 'newer')
  t.equal(agreedKey('own', { current: null, known: ['own'] }), 'own', 'one that only reads')
  t.end()
})

t.test("who doesn't know it is told which it is, and what to set", (t) => {
  t.throws(() => agreedKey('own', none), WrongSecretsKey)
  t.throws(() => agreedKey('own', none), {
    message: /with the key own, and this process has none: set KONTOR_SECRETS_KEY/,
  })
  for (const keys of [own, newer]) {
    t.throws(() => agreedKey('third', keys), WrongSecretsKey)
    t.throws(() => agreedKey('third', keys), {
      message: /with the key third, .*has (newer, )?own: .*KONTOR_SECRETS_KEYS_OLD/,
    })
  }
  t.end()
})
