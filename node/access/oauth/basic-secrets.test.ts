// Secrets that clients send by Basic, as the RFC has it and as many do it. Source: RFC 6749 2.3.1,
// CONTRACT 1.11.

import t from 'tap'
import { ClientSecrets } from '../client-secrets.ts'
import { Secrets } from '../secret.ts'
import { SignIns } from '../sign-ins.ts'
import { addClient, call, station } from '../testing/station.ts'

t.test('RFC 6749 2.3.1: a secret by Basic is form-encoded, or sent as it is', async (t) => {
  const chosen = 'a+b%20c/d%zz'
  const setup = await station(t, { secret: chosen })
  const made = 'e+f%41g'
  const hash = new Secrets((bytes) => void bytes.fill(1)).hashMade(made)
  addClient(setup, 'shop', (client) => ({ ...client, secrets: [{ ...client.secrets[0]!, hash }] }))
  const encoded = (text: string): string => new URLSearchParams({ s: text }).toString().slice(2)
  const grant = { grant_type: 'client_credentials' }
  const ask = async (pair: string): Promise<number> => {
    const authorization = `Basic ${Buffer.from(pair).toString('base64')}`
    return (await call(setup, '/oauth/token', grant, { authorization })).status
  }
  for (const [id, secret] of [
    ['bootstrap', chosen],
    ['shop', made],
  ] as const) {
    t.equal(await ask(`${id}:${encoded(secret)}`), 200, `${id}, encoded`)
    t.equal(await ask(`${id}:${secret}`), 200, `${id}, as it is`)
    t.equal(await ask(`${id}:${encoded(encoded(secret))}`), 401, `${id}, encoded twice`)
    t.equal(await ask(`${id}:${secret.replace('+', ' ')}`), 401, `${id}, another one`)
  }
  const form = { ...grant, client_id: 'shop', client_secret: encoded(made) }
  t.equal((await call(setup, '/oauth/token', form)).status, 401, 'in a form there is one reading')
})

t.test('CONTRACT 1.8: however it was read, it was used', async (t) => {
  const setup = await station(t)
  const { system } = setup.system
  const secrets = new Secrets((bytes) => void bytes.fill(1))
  const hash = secrets.hashMade('a+b')
  addClient(setup, 'shop', (client) => ({
    ...client,
    secrets: [{ ...client.secrets[0]!, hash, secretId: 's1' }],
  }))
  const used: string[] = []
  const noted = { secretUsed: (_: string, secretId: string) => void used.push(secretId) }
  const signIns = new SignIns({ secrets, nowMs: () => 0 })
  const clientSecrets = new ClientSecrets({ system, signIns, secrets, noted, nowMs: () => 0 })
  const sent = { clientId: 'shop', secret: 'a b', orElse: 'a+b', address: '192.0.2.1' }
  t.equal(await clientSecrets.check(sent), 'right')
  t.same(used, ['s1'])
})
