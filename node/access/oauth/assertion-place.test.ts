// An assertion that is shown to several members, at once, later, after a member has died: one of
// them takes it, once. Source: RFC 7523 3 (7), PROTOCOL 3.6 "Marks".

import t from 'tap'
import { randomFillSync } from 'node:crypto'
import { SignJWT, exportJWK, generateKeyPair } from 'jose'
import { makeMembers } from '../../../cluster/testing/members.ts'
import type { OneMember } from '../../../cluster/testing/members.ts'
import { LIMITS } from '../../../config/limits.ts'
import { accessBehaviours } from '../access.ts'
import type { Client } from '../client.ts'
import { AssertionPlace, assertionsBehaviour } from './assertion-place.ts'
import { Assertions } from './assertions.ts'

const ISSUER = 'https://orders.example'
const { privateKey, publicKey } = await generateKeyPair('ES256')
const client = {
  properties: {
    tokenEndpointAuthMethod: 'private_key_jwt',
    jwks: { keys: [await exportJWK(publicKey)] },
  },
} as unknown as Client
const random = (bytes: Uint8Array): void => void randomFillSync(bytes)

async function cluster(names: readonly string[]) {
  const members = makeMembers({ behaviours: accessBehaviours() })
  const { clock, until } = members
  const nowMs = (): number => clock.nowMs()
  /** What a member that has just started knows of assertions. */
  const begin = (one: OneMember): Assertions =>
    new Assertions({ audiences: [ISSUER], nowMs, place: new AssertionPlace(one.member, random) })
  const all = new Map<string, { one: OneMember; assertions: Assertions }>()
  for (const name of names) {
    const one = await members.start(name)
    all.set(name, { one, assertions: begin(one) })
  }
  const serving = (): number => {
    const living = [...all.values()].flatMap(({ one }) => [...one.member.shards.values()])
    return living.filter(({ state }) => state === 'serving').length
  }
  /** All of the four shards, and `system`. */
  await until('all is served', () => serving() === 5)
  const during = async <T>(promise: Promise<T>): Promise<T> => {
    let isSettled = false
    const settled = (): void => void (isSettled = true)
    promise.then(settled, settled)
    await until('it is settled', () => isSettled, 60_000)
    return promise
  }
  let made = 0
  const sign = (of = 'bot', jti = `j${made++}`): Promise<string> =>
    new SignJWT({ iss: of, sub: of, aud: ISSUER, exp: clock.nowMs() / 1_000 + 3_000, jti })
      .setProtectedHeader({ alg: 'ES256' })
      .sign(privateKey)
  const show = (name: string, assertion: string, of = 'bot'): Promise<string> =>
    all.get(name)!.assertions.check(assertion, of, client)
  return { clock, until, all, begin, during, sign, show }
}

t.test('RFC 7523 3 (7): shown to two members at once, one of them takes it', async (t) => {
  const { during, sign, show } = await cluster(['a', 'b'])
  for (let i = 0; i < 20; i++) {
    const assertion = await sign()
    const names = ['a', 'b', 'b', 'a']
    const answers = await during(Promise.all(names.map((name) => show(name, assertion))))
    t.equal(answers.filter((one) => one === 'right').length, 1, answers.join())
    t.equal(answers.filter((one) => one === 'used').length, 3, answers.join())
  }
  t.equal(await during(show('a', await sign('bot', 'same'))), 'right')
  t.equal(await during(show('b', await sign('other', 'same'), 'other')), 'right', 'of another')
  t.equal(await during(show('b', await sign('bot', 'same'))), 'used', 'signed anew with its id')
})

t.test('RFC 7523 3 (7): taken stays taken, whoever ends, until its end', async (t) => {
  const { clock, all, begin, during, sign, show, until } = await cluster(['a', 'b', 'c'])
  const shown: string[] = []
  for (const who of ['bot', 'other', 'third', 'fourth', 'fifth', 'sixth']) {
    const assertion = await sign(who)
    t.equal(await during(show('a', assertion, who)), 'right')
    shown.push(`${who} ${assertion}`)
  }
  const again = async (name: string): Promise<Set<string>> => {
    const answers = new Set<string>()
    for (const one of shown) {
      const [of = '', assertion = ''] = one.split(' ')
      answers.add(await during(show(name, assertion, of)))
    }
    return answers
  }
  t.same(await again('b'), new Set(['used']))
  const { one } = all.get('a')!
  one.kill()
  all.delete('a')
  await until('the others have its shards', () => {
    const living = [...all.values()].flatMap(({ one: { member } }) => [...member.shards.values()])
    return living.filter(({ state }) => state === 'serving').length === 5
  })
  t.same(await again('c'), new Set(['used']), 'after the death of a member')
  await clock.advance(45 * 60_000)
  for (const [name, { one: living }] of all) {
    all.set(name, { one: living, assertions: begin(living) })
    t.same(await again(name), new Set(['used']), 'by who knows nothing of them')
  }
  await clock.advance(6 * 60_000)
  t.same(await again('b'), new Set(['wrong']), 'then it is over by itself')
})

t.test('what is taken leaves nothing behind but a mark for a day', (t) => {
  const decided = (state: object | null): unknown =>
    assertionsBehaviour.decide(state as never, { type: 'take', body: {} }, {} as never).next().value
  t.strictSame(decided(null), { ok: true, records: [{ t: 'begun' }], state: {} })
  t.strictSame(decided({}), { ok: true, records: [], state: {} })
  const { assertionLifeMsMax, clockToleranceMs } = LIMITS.access
  t.ok(assertionLifeMsMax + 4 * clockToleranceMs < LIMITS.storage.callerMarkMs)
  t.end()
})
