// What clients signed, good and bad, at a clock that stands still.

import t from 'tap'
import { SignJWT, exportJWK, generateKeyPair } from 'jose'
import { LIMITS } from '../../../config/limits.ts'
import { overrideLimits } from '../../../config/testing/override-limits.ts'
import { RequestError } from '../../../protocol/errors.ts'
import type { Client } from '../client.ts'
import { Assertions } from './assertions.ts'
import type { AssertionsOptions } from './assertions.ts'

const ISSUER = 'https://orders.example'
const AUDIENCES = [ISSUER, `${ISSUER}/oauth/token`]
const own = await generateKeyPair('ES256')
const second = await generateKeyPair('RS256')
const other = await generateKeyPair('ES256')
const keys = [await exportJWK(own.publicKey), await exportJWK(second.publicKey)]
const client = {
  properties: { tokenEndpointAuthMethod: 'private_key_jwt', jwks: { keys } },
} as unknown as Client
const clock = { nowMs: Date.parse('2026-03-01T12:00:00Z') }
const fresh = (place: AssertionsOptions['place'] = null): Assertions =>
  new Assertions({ audiences: AUDIENCES, nowMs: () => clock.nowMs, place })
const nowS = (): number => clock.nowMs / 1_000
let made = 0

interface Claims {
  readonly iss?: string
  readonly sub?: string
  readonly aud?: string | string[]
  readonly exp?: number
  readonly nbf?: number
  readonly jti?: string
}

function sign(claims: Claims = {}, key = own.privateKey, alg = 'ES256'): Promise<string> {
  const usual = { iss: 'bot', sub: 'bot', aud: ISSUER, exp: nowS() + 60, jti: `j${made++}` }
  const whole = Object.entries({ ...usual, ...claims }).filter(([, value]) => value !== undefined)
  return new SignJWT(Object.fromEntries(whole)).setProtectedHeader({ alg }).sign(key)
}

t.test('RFC 7523 3: what a client signed for this server, for now, shows who it is', async (t) => {
  const assertions = fresh()
  for (const aud of [ISSUER, `${ISSUER}/oauth/token`, ['https://x.example', ISSUER]]) {
    const assertion = await sign({ aud })
    t.equal(assertions.subjectOf(assertion), 'bot')
    t.equal(await assertions.check(assertion, 'bot', client), 'right', String(aud))
  }
  const rsa = await sign({}, second.privateKey, 'RS256')
  t.equal(await assertions.check(rsa, 'bot', client), 'right', 'another of its keys')
})

t.test('RFC 7523 3: all others show nothing', async (t) => {
  const assertions = fresh()
  const { iss: _, ...none } = { iss: undefined }
  const cases: [string, Promise<string>][] = [
    ['another key', sign({}, other.privateKey)],
    ['another server', sign({ aud: 'https://evil.example' })],
    ['a part of the name', sign({ aud: `${ISSUER}/` })],
    ['over', sign({ exp: nowS() - LIMITS.access.clockToleranceMs / 1_000 - 1 })],
    ['not yet', sign({ nbf: nowS() + LIMITS.access.clockToleranceMs / 1_000 + 1 })],
    ['good for too long', sign({ exp: nowS() + 2 * 3_600 })],
    ['without an end', sign({ exp: undefined as never, ...none })],
    ['without an id', sign({ jti: undefined as never })],
    ['a long id', sign({ jti: 'x'.repeat(LIMITS.access.assertionIdCharsMax + 1) })],
    ['of another client', sign({ iss: 'other', sub: 'other' })],
    ['in the name of another', sign({ sub: 'other' })],
  ]
  for (const [what, assertion] of cases) {
    t.equal(await assertions.check(await assertion, 'bot', client), 'wrong', what)
  }
  const unsigned = `${Buffer.from('{"alg":"none"}').toString('base64url')}.${
    (await sign()).split('.')[1]!
  }.`
  const shared = await new SignJWT({
    iss: 'bot',
    sub: 'bot',
    aud: ISSUER,
    jti: 'x',
    exp: nowS() + 9,
  })
    .setProtectedHeader({ alg: 'HS256' })
    .sign(Buffer.from(JSON.stringify(keys[0])))
  for (const text of [unsigned, shared, '', 'a.b.c', '..', 'x'.repeat(100_000)]) {
    t.equal(await assertions.check(text, 'bot', client), 'wrong', text.slice(0, 40))
  }
  for (const method of ['client_secret_basic', 'none'] as const) {
    const properties = { ...client.properties, tokenEndpointAuthMethod: method }
    const registered = { ...client, properties } as Client
    t.equal(await assertions.check(await sign(), 'bot', registered), 'wrong', method)
  }
  const unfit = { keys: keys.map((key) => ({ ...key, k: 'x' })) }
  const old = { ...client, properties: { ...client.properties, jwks: unfit } } as Client
  t.equal(await assertions.check(await sign(), 'bot', old), 'wrong', 'keys that none registers')
  t.equal(assertions.subjectOf(await sign({ sub: 'other' })), null)
  t.equal(assertions.subjectOf('x'.repeat(LIMITS.access.assertionCharsMax + 1)), null)
})

t.test('RFC 7523 3 (7): each is taken once, in bounded memory', async (t) => {
  const assertions = fresh()
  const first = await sign()
  t.equal(await assertions.check(first, 'bot', client), 'right')
  t.equal(await assertions.check(first, 'bot', client), 'used')
  const again = await sign({ jti: 'same' })
  t.equal(await assertions.check(again, 'bot', client), 'right')
  t.equal(
    await assertions.check(await sign({ jti: 'same', exp: nowS() + 50 }), 'bot', client),
    'used',
  )
  const restore = overrideLimits({ 'access.assertionsOfClientMax': 2 })
  t.teardown(restore)
  t.equal(await assertions.check(await sign(), 'bot', client), 'full')
  clock.nowMs += 3 * 60_000
  t.equal(await assertions.check(await sign(), 'bot', client), 'right', 'the former ones are over')
})

t.test('clients whose assertions live long leave room for others', async (t) => {
  t.teardown(overrideLimits({ 'access.assertionsMax': 16, 'access.assertionsOfClientMax': 12 }))
  const assertions = fresh()
  const taken: number[] = []
  for (const name of ['a', 'b', 'c', 'd']) {
    let count = 0
    const ask = async (): Promise<string> =>
      assertions.check(await sign({ iss: name, sub: name, jti: `${count}` }), name, client)
    while ((await ask()) === 'right') count++
    taken.push(count)
  }
  t.same(taken, [8, 4, 2, 1], 'no more than are free')
})

t.test('RFC 7523 3 (7): other members are asked about what is good and new here', async (t) => {
  const asked: string[] = []
  let answer: boolean | RequestError = true
  const assertions = fresh({
    async take(clientId, jti) {
      asked.push(`${clientId} ${jti}`)
      if (typeof answer === 'object') throw answer
      return answer
    },
  })
  const check = async (jti: string, key = own.privateKey): Promise<string> =>
    assertions.check(await sign({ jti }, key), 'bot', client)
  t.equal(await check('a', other.privateKey), 'wrong')
  t.equal(await check('a'), 'right')
  t.equal(await check('a'), 'used')
  answer = false
  t.equal(await check('b'), 'used', 'another member has taken it')
  t.equal(await check('b'), 'used')
  answer = new RequestError('UNAVAILABLE', 'nobody can be asked')
  await t.rejects(check('c'), answer)
  answer = true
  t.equal(await check('c'), 'right', 'as the others have it, once they can be asked')
  t.same(asked, ['bot a', 'bot b', 'bot c', 'bot c'])
})
