// Secret values of the registry: what is sealed opens with its key at its place, and nowhere else;
// and on the runtime, over the journal in memory, nothing that is kept holds one in clear text.

import { randomBytes, randomFillSync } from 'node:crypto'
import { serialize } from 'node:v8'
import fc from 'fast-check'
import t from 'tap'
import { startMember } from '../../cluster/testing/harness.ts'
import { OWNER_ACL } from '../../protocol/ace.ts'
import { RequestError } from '../../protocol/errors.ts'
import type { OperationRequest } from '../http/operation.ts'
import { behaviours } from '../behaviours.ts'
import { RegistryChannels } from './channels.ts'
import { systemActor } from '../system-actor.ts'
import type { RegistryEntry } from './entry.ts'
import { registryOperations } from './routes.ts'
import { RegistrySecrets } from './secrets.ts'

const random = (bytes: Uint8Array): void => void randomFillSync(bytes)
const newKey = (): string => randomBytes(32).toString('base64')
const KEY = newKey()
/** Who may write it is not looked at here. */
const REGISTRY = systemActor<RegistryEntry>(
  'registry',
  () => null,
  () => null,
)
const secretsWith = (key: string | null, ...oldKeys: string[]): RegistrySecrets =>
  new RegistrySecrets({ key, oldKeys }, random)

/** Why an entry can't be opened. */
function refusal(secrets: RegistrySecrets, path: string, entry: RegistryEntry): string {
  try {
    return `opened: ${JSON.stringify(secrets.open(path, entry))}`
  } catch (error) {
    if (!(error instanceof RequestError)) throw error
    return `${error.errors[0]!.code} ${error.message}`
  }
}

t.test('whatever is sealed is opened with its key at its place, and nowhere else', async () => {
  const paths = fc.tuple(fc.string({ minLength: 1 }), fc.string({ minLength: 1 }))
  fc.assert(
    fc.property(fc.jsonValue(), paths, fc.nat(), (value, [path, other], at) => {
      fc.pre(path !== other)
      const secrets = secretsWith(KEY)
      const entry = secrets.seal(path, value)
      const opened = secrets.open(path, entry)
      if (JSON.stringify(opened) !== JSON.stringify(value)) return false
      if (entry.value !== null || secrets.seal(path, value).sealed === entry.sealed) return false
      const [name, text] = entry.sealed!.split('.') as [string, string]
      const bytes = Buffer.from(text, 'base64url')
      bytes[at % bytes.length]! ^= 1
      const changed = { ...entry, sealed: `${name}.${bytes.toString('base64url')}` }
      return [
        refusal(secrets, other, entry),
        refusal(secrets, path, changed),
        refusal(secretsWith(newKey()), path, entry),
        refusal(secretsWith(null), path, entry),
      ].every((why) => why.startsWith('UNAVAILABLE the secret'))
    }),
    { numRuns: Number(process.env['RUNS'] ?? 100) },
  )
})

t.test(
  'a key takes over from another; what was kept before there was one stays readable',
  async (t) => {
    const [old, next] = [secretsWith(KEY), newKey()]
    const entry = old.seal('a', 'hush')
    const rotated = secretsWith(next, KEY)
    t.equal(rotated.open('a', entry), 'hush')
    t.match(
      refusal(old, 'a', rotated.seal('a', 'hush')),
      /encrypted with the key \S+, which this member/,
    )
    t.match(refusal(secretsWith(null), 'a', entry), 'KONTOR_SECRETS_KEY')
    const entries = [entry, rotated.seal('a', 'hush'), { value: 'clear', isSecret: true }]
    const lacking = (secrets: RegistrySecrets): unknown => [
      ...secrets.lacking(entries.map((value) => ({ value }))),
    ]
    t.strictSame(lacking(rotated), [])
    t.strictSame(
      lacking(secretsWith(next)),
      [[old.names.current, 1]],
      'the old one is still needed',
    )
    t.strictSame(rotated.names.known, [old.names.current, rotated.names.current])
    t.equal(old.open('a', { value: 'clear', isSecret: true }), 'clear')
    t.strictSame(secretsWith(null).seal('a', 'x'), { value: 'x', isSecret: true }, 'no key')
    for (const sealed of ['', '.', `${old.names.current}.`, `${old.names.current}.AAAA`]) {
      t.match(refusal(old, 'a', { value: null, isSecret: true, sealed }), 'UNAVAILABLE')
    }
    t.notMatch(old.names.current, KEY.slice(0, 8))
  },
)

/** Everything that a store is given while secrets are put, as bytes. */
async function kept(secrets: RegistrySecrets, texts: readonly string[]): Promise<Buffer> {
  const derived: unknown[] = []
  const hooks = {
    beforeWrite: (_: number, rows: unknown) => {
      derived.push(rows)
      return null
    },
  }
  const { member, clock, journal } = await startMember({ behaviours: [REGISTRY], hooks })
  const operation = registryOperations({
    graph: {
      fault: () => null,
      refusalToDefine: () => null,
      valuesOf: () => null,
      sharedValues: () => [],
    },

    actorSystem: member,
    consistency: { encode: () => '' },
    secrets,
  }).find(({ method }) => method === 'POST')!
  for (const body of texts) {
    await operation.handle({
      identity: { id: 'me', kind: 'client', sessionId: 's', acl: OWNER_ACL },
      params: { key: 'apps/shop/password' },
      query: new URLSearchParams('isSecret=true'),
      header: () => '',
      body,
      bodyBytes: Buffer.from(JSON.stringify(body)),
      requestId: 'r',
      budgetMs: 5_000,
    } as unknown as OperationRequest)
  }
  await clock.advance(60_000)
  const entry = member.system.get<RegistryEntry>('registry', 'apps/shop/password')!
  if (secrets.open(entry.key, entry.value) !== texts.at(-1)) throw new Error('it is not opened')
  return serialize([[...journal.state.shards], derived])
}

t.test('log and derived rows, snapshots too, hold none in clear text', async (t) => {
  const texts = Array.from({ length: 300 }, (_, i) => `hush-${i}-hush`)
  const clear = await kept(secretsWith(null), texts)
  t.ok(clear.includes('hush-7-hush') && clear.includes('hush-299-hush'), 'without a key they do')
  const sealed = await kept(secretsWith(KEY), texts)
  t.ok(sealed.length > 50_000)
  t.notOk(sealed.includes('hush'))
  t.notOk(sealed.includes(Buffer.from(KEY, 'base64')))
})

t.test('a channel that is secret binds orders as any other does', async (t) => {
  const secrets = secretsWith(KEY)
  const channels = new RegistryChannels((path, entry) => secrets.open(path, entry))
  const { member } = await startMember({ behaviours: [REGISTRY] })
  channels.follow(member.system)
  const value = secrets.seal('channels/web', { currencyCode: 'EUR', taxIncluded: true })
  await member.ask({
    type: 'registry',
    id: 'channels/web',
    messages: [{ type: 'put', body: { value } }],
    idempotencyKey: null,
    bodyHash: '',
    by: 'me',
    preview: false,
    budgetMs: 5_000,
    trace: 'r',
  })
  t.match(channels.get('web'), { currencyCode: 'EUR' })
})

t.test('orders of a channel that can not be read are refused, and not for good', async (t) => {
  let mine = secretsWith(newKey())
  const channels = new RegistryChannels((path, entry) => {
    try {
      return mine.open(path, entry)
    } catch {
      return null
    }
  })
  const table = behaviours(channels).map((one) => (one.type === 'registry' ? REGISTRY : one))
  const { member } = await startMember({ behaviours: table })
  channels.follow(member.system)
  const sent = { bodyHash: 'h', by: 'me', preview: false, budgetMs: 5_000, trace: 'r' }
  const put = async (): Promise<unknown> => {
    const value = secretsWith(KEY).seal('channels/web', { currencyCode: 'EUR', taxIncluded: true })
    const messages = [{ type: 'put', body: { value } }]
    const actor = { type: 'registry', id: 'channels/web' }
    return member.ask({ ...sent, ...actor, messages, idempotencyKey: null })
  }
  const create = async (): Promise<unknown> => {
    const messages = [
      { type: 'create', body: { channelKey: 'web', currencyCode: 'EUR', commands: [] } },
    ]
    const reply = await member.ask({
      ...sent,
      type: 'order',
      id: 'new',
      messages,
      idempotencyKey: 'k',
    })
    const result = reply.outcome === 'answered' ? reply.results[0]! : null
    return result?.success === false ? result.errors[0]!.code : result?.success
  }
  await put()
  t.equal(await create(), 'UNAVAILABLE')
  mine = secretsWith(KEY)
  await put()
  t.equal(await create(), true, 'under the same key')
})
