// Verbs of the administration of identities, on a real node. Source: CONTRACT 1.8.

import type { Answer, NodeProcess, RuntimeCall } from '../harness/node-process.ts'

export const IAM = '/resources/iam'
export const UNKNOWN = '0198c0de-7000-7abc-8def-0123456789ab'

export interface Made {
  readonly id: string
  readonly eTag: string
  readonly roles: readonly string[]
  readonly properties: Record<string, unknown>
  readonly suspendedAt: string | null
}

export interface Registered {
  readonly clientId: string
  readonly client_id: string
  readonly client_secret: string
}

let people = 0

export function administration(node: NodeProcess) {
  const post = (path: string, body?: unknown, more: RuntimeCall = {}): Promise<Answer> =>
    node.ask(path, { method: 'POST', ...(body === undefined ? {} : { body }), ...more })
  const put = (
    path: string,
    body: unknown,
    headers = {},
    more: RuntimeCall = {},
  ): Promise<Answer> => node.ask(path, { method: 'PUT', body, headers, ...more })
  const get = (path: string, token?: string): Promise<Answer> =>
    node.ask(path, token === undefined ? {} : { token })
  const remove = (path: string, headers = {}): Promise<Answer> =>
    node.ask(path, { method: 'DELETE', headers })

  async function person(roles: readonly string[] = [], name = 'Ada'): Promise<Made> {
    const properties = { name, email: `person${people++}@example.com` }
    const answer = await post(`${IAM}/principals`, { properties, roles })
    if (answer.status !== 201) throw new Error(answer.text)
    return answer.json<Made>()
  }

  /** A client with these roles, and a token of it. */
  async function caller(...roles: string[]): Promise<Registered & { token: string }> {
    const body = { name: 'caller', grant_types: ['client_credentials'], roles }
    const answer = await post('/iam/clients', body)
    if (answer.status !== 201) throw new Error(answer.text)
    const made = answer.json<Registered>()
    return { ...made, token: await tokenOf(made) }
  }

  const signIn = ({ client_id, client_secret }: Registered): Promise<Answer> =>
    node.form('/oauth/token', { grant_type: 'client_credentials', client_id, client_secret })

  async function tokenOf(made: Registered): Promise<string> {
    const answer = await signIn(made)
    if (answer.status !== 200) throw new Error(answer.text)
    return answer.json<{ access_token: string }>().access_token
  }

  async function role(key: string, ...entries: string[]): Promise<void> {
    const answer = await put(`${IAM}/roles/${key}`, { acl: { entries } })
    if (answer.status !== 201) throw new Error(answer.text)
  }
  return { post, put, get, remove, person, caller, signIn, role }
}
