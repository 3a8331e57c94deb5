// Sealed forms: whole, changed, too old, and in another browser.

import t from 'tap'
import type { AuthorizeRequest } from './authorize-request.ts'
import { FormSeal } from './form-seal.ts'
import { LIMITS } from '../../../config/limits.ts'

const request: AuthorizeRequest = {
  clientId: 'shop',
  redirectUri: 'https://shop.example/cb',
  redirectNamed: true,
  scope: null,
  state: 'ünï "code"\u0000',
  challenge: null,
}
const clock = { nowMs: 1_000_000 }
let seed = 1
const random = (bytes: Uint8Array): void => {
  for (let i = 0; i < bytes.length; i++) bytes[i] = (seed = (seed * 69069 + 1) >>> 0) >>> 24
}
const sealOf = (secret: string, baseUrl = 'https://orders.example'): FormSeal =>
  new FormSeal({ secret, random, nowMs: () => clock.nowMs, baseUrl })
const seal = sealOf('store')

t.test('a form comes back as it was, to its own browser and in its time', (t) => {
  const cookie = seal.makeCookie()
  const state = { step: 'consent', request, who: { principalId: 'p', epoch: 3 } } as const
  const form = seal.seal(state, cookie)
  t.same(seal.open(form, cookie), state)
  t.same(sealOf('store').open(form, cookie), state, 'another member has the same store')
  t.notMatch(form, Buffer.from('shop').toString('base64url'), 'nothing of it can be read')
  t.not(seal.seal(state, cookie), form, 'no two are alike')
  t.equal(seal.open(form, seal.makeCookie()), null, 'RFC 6749 10.12: another browser')
  t.equal(sealOf('other').open(form, cookie), null, 'another store')
  clock.nowMs += LIMITS.access.signInFormMs
  t.equal(seal.open(form, cookie), null, 'too old')
  t.end()
})

t.test('a form that was changed is none', (t) => {
  const cookie = seal.makeCookie()
  const bytes = Buffer.from(seal.seal({ step: 'sign-in', request }, cookie), 'base64url')
  for (let at = 0; at < bytes.length; at++) {
    const changed = Buffer.from(bytes)
    changed[at]! ^= 1
    if (seal.open(changed.toString('base64url'), cookie) !== null) t.fail(`byte ${at}`)
  }
  for (const text of ['', 'x', '😀', 'A'.repeat(50_000)]) t.equal(seal.open(text, cookie), null)
  t.end()
})

t.test('the cookie is of this host alone, and no script sees it', (t) => {
  const cookie = seal.makeCookie()
  const secure = '; Path=/; HttpOnly; SameSite=Lax; Secure'
  t.equal(seal.setCookie(cookie), `__Host-kontor-sign-in=${cookie}${secure}`)
  const plain = sealOf('store', 'http://127.0.0.1:8080')
  t.equal(plain.setCookie(cookie), `kontor-sign-in=${cookie}; Path=/; HttpOnly; SameSite=Lax`)
  t.equal(seal.cookieOf(`a=b; __Host-kontor-sign-in=${cookie}; c`), cookie)
  for (const header of [
    '',
    'x',
    `kontor-sign-in=${cookie}`,
    '__Host-kontor-sign-in=short',
    ';;=',
  ]) {
    t.equal(seal.cookieOf(header), null, header)
  }
  t.end()
})
