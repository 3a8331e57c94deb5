// When identities were active last, and secrets right last, on a real node: in answers, in lists
// and in the graph, over a restart, and without another ETag. Source: CONTRACT 1.8 "Last use".

import t from 'tap'
import type { Test } from 'tap'
import { startNode } from '../harness/node-process.ts'
import { until } from '../harness/patience.ts'
import { administration, IAM } from './administration.ts'
import type { Made, Registered } from './administration.ts'

const node = await startNode(t)
const { post, put, get, remove, person, caller, signIn } = administration(node)

interface Shown extends Made {
  readonly lastActiveAt: string | null
  readonly secrets: readonly { readonly secretId: string; readonly lastUsedAt: string | null }[]
}

const client = async (id: string): Promise<Shown> =>
  (await get(`${IAM}/clients/${id}`)).json<Shown>()

async function activeOf(id: string): Promise<Shown> {
  await until(`${id} is active`, async () => (await client(id)).lastActiveAt !== null)
  return client(id)
}

/** Clients of that name who were not active since `since`, by the graph. */
async function idle(name: string, since: string): Promise<string[]> {
  const activity = { edge: 'activity', filter: `lastActiveAt >= '${since}'`, require: 'none' }
  const node = { fields: ['clientId'], navigate: [activity] }
  const asked = [{ edge: 'clients', filter: `name == '${name}'`, node }]
  const answer = await post('/resources/graph', asked)
  if (answer.status !== 200) throw new Error(answer.text)
  return answer.json<{ clients: { clientId: string }[] }>().clients.map((one) => one.clientId)
}

function isNear(t: Test, text: string | null, fromMs: number): void {
  t.match(text, /^\d{4}-\d\d-\d\dT[\d:]{8}\.\d{3}Z$/)
  t.ok(Date.parse(text!) >= fromMs && Date.parse(text!) <= Date.now(), `${text}: when it was`)
}

t.test('a client is never active, then it is: secrets, lists, the graph, a restart', async (t) => {
  const fromMs = Date.now()
  const body = { name: 'lastused', grant_types: ['client_credentials'] }
  const [used, unused] = await Promise.all(
    [1, 2].map(async () => (await post('/iam/clients', body)).json<Registered>()),
  )
  const { clientId } = used!
  const before = await client(clientId)
  t.equal(before.lastActiveAt, null)
  t.same(
    before.secrets.map(({ lastUsedAt }) => lastUsedAt),
    [null],
  )
  const second = await post(`${IAM}/clients/${clientId}/secrets`, {})
  const { secretId } = second.json<{ secretId: string }>()
  const { eTag } = await client(clientId)
  t.equal((await signIn({ ...used!, client_secret: 'wrong' })).status, 401)
  t.equal((await client(clientId)).lastActiveAt, null, 'a wrong secret is no use')

  t.equal((await signIn(used!)).status, 200)
  const shown = await activeOf(clientId)
  isNear(t, shown.lastActiveAt, fromMs)
  const [first, other] = shown.secrets
  isNear(t, first!.lastUsedAt, fromMs)
  t.match(other, { secretId, lastUsedAt: null })
  t.equal(shown.eTag, eTag, 'no other ETag')
  const { properties } = shown
  const kept = await put(`${IAM}/clients/${clientId}`, { properties }, { 'If-Match': eTag })
  t.equal(kept.status, 200, kept.text)
  t.equal(kept.json<Shown>().lastActiveAt, shown.lastActiveAt)

  const list = (await get(`${IAM}/clients?search=lastused`)).json<{ clients: Shown[] }>().clients
  const times = new Map(list.map((one) => [one.id, one.lastActiveAt]))
  t.same(times.get(clientId), shown.lastActiveAt)
  t.same(times.get(unused!.clientId), null)

  const since = new Date(fromMs).toISOString()
  await until('the graph knows', async () => (await idle('lastused', since)).length === 1)
  t.same(await idle('lastused', since), [unused!.clientId], 'who was never active is idle')
  t.equal((await idle('lastused', '2999-01-01T00:00:00.000Z')).length, 2)

  await node.kill()
  await node.start()
  const after = await activeOf(clientId)
  t.equal(after.lastActiveAt, shown.lastActiveAt, 'a kill loses nothing that was shown')
  t.equal(after.secrets[0]!.lastUsedAt, first!.lastUsedAt)
})

t.test('a person who was never here; and the activity goes with its identity', async (t) => {
  const ada = await person()
  const read = (await get(`${IAM}/principals/${ada.id}`)).json<Shown>()
  t.equal(read.lastActiveAt, null)
  t.equal(read.eTag, ada.eTag)
  const made = await caller()
  await activeOf(made.clientId)
  const count = async (): Promise<number> => {
    const filter = `identityId == '${made.clientId}'`
    const asked = [{ edge: 'identityActivities', filter, count: true }]
    const answer = await post('/resources/graph', asked)
    if (answer.status !== 200) throw new Error(answer.text)
    return answer.json<{ identityActivities: number }>().identityActivities
  }
  await until('the graph has it', async () => (await count()) === 1)
  t.equal((await remove(`${IAM}/clients/${made.clientId}`)).status, 204)
  await until('it is gone', async () => (await count()) === 0)
  t.equal((await get('/resources/me', made.token)).status, 401)
})
