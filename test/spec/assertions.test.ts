// Clients that sign, over HTTP on a real node, in a cluster on two of them: what one member has
// taken no other takes. Source: CONTRACT 1.11, RFC 7523 3 (7).

import t from 'tap'
import { SignJWT, exportJWK, generateKeyPair } from 'jose'
import { clusterSettings } from '../harness/driver.ts'
import { register } from '../harness/identities.ts'
import { NodeProcess } from '../harness/node-process.ts'
import type { Answer } from '../harness/node-process.ts'
import { until } from '../harness/patience.ts'

const ISSUER = 'https://kontor.example'
const TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'

const cluster = await clusterSettings()
const members: NodeProcess[] = []
for (const KONTOR_MEMBER_ID of cluster === null ? ['one'] : ['one', 'other']) {
  const own = cluster === null ? {} : { ...cluster, KONTOR_MEMBER_ID }
  const node = new NodeProcess({ ...own, KONTOR_BASE_URL: ISSUER })
  t.teardown(() => node.clear())
  members.push(await node.start())
}
const [first, last] = [members[0]!, members.at(-1)!]
const { privateKey, publicKey } = await generateKeyPair('ES256')
const grant_types = ['client_credentials']
const { id } = await register(first, {
  grant_types,
  token_endpoint_auth_method: 'private_key_jwt',
  jwks: { keys: [await exportJWK(publicKey)] },
})

let made = 0
const sign = (): Promise<string> =>
  new SignJWT({ iss: id, sub: id, aud: ISSUER, jti: `j${made++}` })
    .setProtectedHeader({ alg: 'ES256' })
    .setExpirationTime('5 minutes')
    .sign(privateKey)

function show(node: NodeProcess, client_assertion: string, path = 'token'): Promise<Answer> {
  const form = { grant_type: 'client_credentials', token: 'x', client_assertion }
  return node.form(`/oauth/${path}`, { ...form, client_assertion_type: TYPE })
}

await until('the other member knows the client', async () => {
  return (await show(last, await sign())).status === 200
})

t.test('RFC 7523 3 (7): an assertion is taken once, by whichever member', async (t) => {
  for (const [takes, other] of [
    [first, last],
    [last, first],
  ] as const) {
    const assertion = await sign()
    t.equal((await show(takes, assertion)).status, 200)
    for (const path of ['token', 'revoke', 'introspect']) {
      const again = await show(other, assertion, path)
      t.equal(again.status, 401, path)
      t.match(again.json(), { error: 'invalid_client', error_description: /used before/ }, path)
    }
  }
})

t.test('RFC 7523 3 (7): of many who show it at once one gets a token', async (t) => {
  for (let i = 0; i < 5; i++) {
    const assertion = await sign()
    const asked = [first, last, first, last, first, last].map((node) => show(node, assertion))
    const answers = await Promise.all(asked)
    const statuses = answers.map(({ status }) => status).toSorted((a, b) => a - b)
    t.strictSame(statuses, [200, 401, 401, 401, 401, 401])
  }
})

t.test('RFC 7521 4.2: who names another client than the one that signed', async (t) => {
  const shown = { client_assertion: await sign(), client_assertion_type: TYPE }
  const form = { grant_type: 'client_credentials', client_id: 'bootstrap', ...shown }
  const answer = await first.form('/oauth/token', form)
  t.equal(answer.status, 400, answer.text)
  t.match(answer.json(), { error: 'invalid_request', error_description: /client_id differs/ })
})
