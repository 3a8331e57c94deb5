// A role that changes under what is watched: whoever has it is told the list anew, by what they may
// see from then on, or that there is none, over live queries and subscriptions alike. Source:
// CONTRACT 1.10 "Who may", specification "Scopes and ACEs".

import { createClient } from 'graphql-ws'
import t, { type Test } from 'tap'
import { startNode } from '../harness/node-process.ts'
import { apply, create } from '../harness/orders.ts'
import { until } from '../harness/patience.ts'
import { signIn } from '../harness/socket-client.ts'
import { ENTRIES, NORTH, SOUTH } from './permissions/stage.ts'

const node = await startNode(t)
const ROLE = 'test:watcher'
const IAM = '/resources/iam'

/** Sends it, and throws where it is refused. */
async function done(path: string, method: string, body: object, etag?: string) {
  const headers = etag === undefined ? {} : { 'If-Match': etag }
  const answer = await node.ask(path, { method, body, headers })
  if (answer.status >= 300) throw new Error(`${path}: ${answer.status} ${answer.text}`)
  return answer
}

async function become(entries: string): Promise<void> {
  const path = `${IAM}/roles/${ROLE}`
  const { status, headers } = await node.ask(path)
  const acl = { entries: [...BESIDE, ...(entries === '' ? [] : [entries])] }
  await done(path, 'PUT', { acl }, status === 404 ? undefined : String(headers['etag']))
}

async function tokenOfRole(): Promise<string> {
  const body = { name: 'watcher', grant_types: ['client_credentials'], roles: [ROLE] }
  const made = (await done('/iam/clients', 'POST', body)).json<Record<string, string>>()
  const { client_id, client_secret } = made as { client_id: string; client_secret: string }
  const form = { grant_type: 'client_credentials', client_id, client_secret }
  return (await node.form('/oauth/token', form)).json<{ access_token: string }>().access_token
}

const SHOWN = ['orderId', 'externalReference']
const BESIDE = SHOWN.map((name) => `graph/order:field:${name}`)
const ALL = 'graph/order:query'

const named = (nodes: unknown): string => {
  const ids = (nodes as { orderId: string }[]).map(({ orderId }) => orderId)
  return [NORTH, SOUTH].map((id, i) => (ids.includes(id) ? 'NS'[i] : '')).join('')
}

/** What a watcher was told last: the orders of its list, or why there is none. */
interface Watcher {
  readonly told: string[]
  begin(): void
}

async function liveQuery(t: Test, token: string): Promise<Watcher> {
  const client = await signIn(node, token)
  t.teardown(() => client.close())
  const query = { edge: 'orders', orderBy: 'orderId', node: { fields: SHOWN } }
  const told: string[] = []
  const hear = (): void => {
    for (const { type, code, nodes, node: one } of client.frames.splice(0)) {
      const what = type.replace('liveQuery', '').replace('Update', 'Updated')
      told.push(`${what} ${code === undefined ? named(nodes ?? [one]) : (code as string)}`)
    }
  }
  return {
    get told() {
      hear()
      return told
    },
    begin: () => client.send({ type: 'createLiveQuery', liveQueryId: 'q', query }),
  }
}

function subscription(t: Test, token: string): Watcher {
  const client = createClient({
    url: `ws://127.0.0.1:${node.port}/graphql`,
    connectionParams: { authorization: `Bearer ${token}` },
    retryAttempts: 0,
  })
  t.teardown(() => client.dispose())
  const told: string[] = []
  const query = `subscription { orders { kind node { ${SHOWN.join(' ')} } nodes { orderId } } }`
  const begin = (): void =>
    void client.subscribe<{ orders: { kind: string; node: unknown; nodes: unknown } }>(
      { query },
      {
        next({ data }) {
          const { kind, node: one, nodes } = data!.orders
          told.push(`${kind[0]!.toUpperCase()}${kind.slice(1)} ${named(nodes ?? [one])}`)
        },
        error: (error) =>
          void told.push(`Error ${/"code":"(\w+)"/.exec(JSON.stringify(error))?.[1]}`),
        complete: () => undefined,
      },
    )
  return { told, begin }
}

t.test('each role that follows another shows what it opens, and no more', async (t) => {
  for (const id of [NORTH, SOUTH]) await node.order(id, [create()])
  await node.graph([{ edge: 'orders', count: true }])
  await become(ALL)
  const token = await tokenOfRole()
  const watchers = { live: await liveQuery(t, token), subscribed: subscription(t, token) }
  const all = Object.entries(watchers)
  /** What both are told next, and nothing else. */
  const next = async (what: string, ...right: string[]): Promise<void> => {
    for (const [way, watcher] of all) {
      await until(`${way}: ${what}`, () => watcher.told.length >= right.length)
      t.strictSame(watcher.told.splice(0), right, `${way}: ${what}`)
    }
  }
  const begin = async (): Promise<void> => {
    for (const [, watcher] of all) watcher.begin()
    await next('begins', 'Created NS')
  }
  await begin()
  let changes = 0
  const rows = ENTRIES.filter(([entries]) => !entries.includes('@') && entries !== ALL)
  for (const [entries, shown] of rows) {
    await become(entries)
    const names = (shown ?? []).map((id) => named([{ orderId: id }]))
    await next(entries, shown === null ? 'Error FORBIDDEN_NODE' : `Reset ${names.join('')}`)
    for (const id of [NORTH, SOUTH]) {
      const value = `${++changes}`
      const made = await node.order(id, [apply({ type: 'setExternalReference', value })])
      t.equal(made.status, 200)
    }
    await next('what is seen has changed', ...names.map((name) => `Updated ${name}`))
    await become(ALL)
    if (shown === null) await begin()
    else await next('all is seen again', 'Reset NS')
  }
  t.ok(rows.length >= 4, 'roles of all kinds')
})
