// What an operation needs so that it can be done: somebody to change, a role to read, an own token
// to renew. Made anew for each request, for some of them take it away. Source: CONTRACT 1.8.

import { register } from '../harness/identities.ts'
import type { RegisteredClient } from '../harness/identities.ts'
import type { Answer, NodeProcess } from '../harness/node-process.ts'
import { IAM, administration } from './administration.ts'

export interface Subject {
  readonly params?: Readonly<Record<string, string>>
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

/** Whose own things some operations are about. */
export interface Owners {
  /** A person's token, and its password. */
  readonly person: string
  readonly password: string
  /** A client's token. */
  readonly client: string
}

const ANY = { 'If-Match': '*' }
const REGISTERED = { name: 'A client', redirect_uris: [], grant_types: ['client_credentials'] }

let made = 0

function checked(answer: Answer): Answer {
  if (answer.status >= 300) throw new Error(`${answer.status} ${answer.text}`)
  return answer
}

export class Subjects {
  readonly #node: NodeProcess
  readonly #owners: Owners
  /** The client that personal access tokens are for. */
  #client: RegisteredClient | null = null

  constructor(node: NodeProcess, owners: Owners) {
    this.#node = node
    this.#owners = owners
  }

  /** For an operation by its method and path. */
  async of(name: string): Promise<Subject> {
    if (name.includes(`${IAM}/principals/{id}`)) return this.#person(name)
    if (name.includes(`${IAM}/clients/{id}`)) return this.#ofClient(name)
    if (name.includes(`${IAM}/roles/{roleKey}`)) return this.#role(name)
    if (name.includes('/me/pat')) return this.#pat(name)
    if (/^GET \/(resources\/registry|enums\/.*)\/\{(\*\*)?key\}$/.test(name))
      return this.#value(name)
    switch (name) {
      case `POST ${IAM}/principals`:
        return { body: { properties: { name: 'A person', email: `a${made++}@shop.example` } } }
      case 'POST /iam/clients':
        return { body: REGISTERED }
      case 'DELETE /resources/me/sessions/{id}':
        return { params: { id: await this.#session() } }
      case 'POST /resources/me/password':
        return {
          body: { currentPassword: this.#owners.password, newPassword: 'four even lamps hum' },
        }
      default:
        return {}
    }
  }

  async #person(name: string): Promise<Subject> {
    const { person } = administration(this.#node)
    const { id, properties } = await person()
    const isWhole = name === `PUT ${IAM}/principals/{id}`
    const body = isWhole ? { properties } : { roles: [] }
    return { params: { id }, body, headers: ANY }
  }

  async #ofClient(name: string): Promise<Subject> {
    const { id } = await register(this.#node, REGISTERED)
    const { secrets, properties } = checked(await this.#node.ask(`${IAM}/clients/${id}`)).json<{
      readonly secrets: readonly { readonly secretId: string }[]
      readonly properties: object
    }>()
    const params = { id, secretId: secrets[0]!.secretId }
    if (name.startsWith('POST')) return { params, body: {} }
    const isWhole = name === `PUT ${IAM}/clients/{id}`
    return { params, body: isWhole ? { properties } : { roles: [] }, headers: ANY }
  }

  async #role(name: string): Promise<Subject> {
    const roleKey = `shop:role${made++}`
    await administration(this.#node).role(roleKey)
    const body = name.startsWith('PUT') ? { acl: { entries: [] } } : undefined
    return { params: { roleKey }, body, headers: ANY }
  }

  async #pat(name: string): Promise<Subject> {
    this.#client ??= await register(this.#node, REGISTERED)
    const { id, secret } = this.#client
    const headers = { 'X-Client-Id': id, 'X-Client-Secret': secret! }
    const body = { description: 'a token' }
    if (name === 'POST /me/pat') return { headers, body }
    if (name === 'GET /me/pat') return {}
    const asked = await this.#node.ask('/me/pat', { token: this.#owners.person, headers, body })
    const { keyId } = checked(asked).json<{ keyId: string }>()
    const expiresAt = new Date(Date.now() + 3_600_000).toISOString()
    return { params: { id: keyId }, body: { expiresAt } }
  }

  /** Some session of the client's, another than that of the token. */
  async #session(): Promise<string> {
    const { client: token } = this.#owners
    await this.#node.token()
    const answer = checked(await this.#node.ask('/resources/me/sessions', { token }))
    return answer.json<{ sessions: readonly { sessionId: string }[] }>().sessions[0]!.sessionId
  }

  async #value(name: string): Promise<Subject> {
    const key = 'access-table'
    const path = name
      .slice('GET '.length)
      .replace('{node}', 'order')
      .replace('{field}', 'orderState')
      .replace('{name}', 'colours')
      .replace(/\{(?:\*\*)?key\}/, key)
    checked(await this.#node.ask(path, { body: { value: 1 } }))
    return { params: { key } }
  }
}
