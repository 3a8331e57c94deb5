// The registry's HTTP surface. Reads come out of the maps in memory; writes go through the shard's
// log. Source: specification "Registry", CONTRACT 1.1.

import { Type } from '@sinclair/typebox'
import type { ActorSystem, SystemEntry } from '../../cluster/actor-system.ts'
import { LIMITS } from '../../config/limits.ts'
import { RequestError, lacking } from '../../protocol/errors.ts'
import type { ErrorCode, ErrorItem } from '../../protocol/errors.ts'
import type { Position } from '../../protocol/ids.ts'
import type { Reply } from '../../protocol/message.ts'
import type { Identity } from '../access/identity.ts'
import type {
  Operation,
  OperationParameter,
  OperationRequest,
  OperationResponse,
} from '../http/operation.ts'
import { deleteRequest, etagOf, failureOf, putRequest, readCondition } from '../system-actor.ts'
import type { Origin, WriteCondition } from '../system-actor.ts'
import { readKey, readPrefix } from './entry.ts'
import type { RefusalToDefine, RegistryEntry } from './entry.ts'
import type { RegistrySecrets } from './secrets.ts'
import { enumOperations, type EntryWriter, type EnumLists, valuesPrefixOf } from './enums.ts'
import { checkValue, type ValueFault } from './well-known.ts'

export interface RegistryOptions {
  readonly actorSystem: ActorSystem
  /** What encrypts secret values; without one they are kept as they are. */
  readonly secrets?: RegistrySecrets
  /** Makes the X-Consistency token (node/graph/consistency.ts). */
  readonly consistency: { encode(positions: readonly Position[]): string }
  /** What the graph makes of entries. */
  readonly graph: GraphDefinitions
}

const INDEX: OperationParameter = {
  name: 'index',
  in: 'query',
  description: 'true: only an array of keys',
}

const CONDITIONS: readonly OperationParameter[] = [
  { name: 'If-Match', in: 'header', description: 'ETag as last read; 409 when it is stale' },
  { name: 'If-None-Match', in: 'header', description: '*: only when the key is free' },
]

/** The key is known by its form; the value is anyone's. */
const VALUE = Type.Unknown({ description: 'Any JSON value', examples: [{ label: 'Web shop' }] })

export interface GraphDefinitions extends EnumLists {
  /** What it has against a definition of a custom field or edge; null: nothing. */
  fault(key: string, value: unknown): ValueFault | null
  /** What it asks of who writes one: of the value itself, also where it is sealed afterwards. */
  readonly refusalToDefine: RefusalToDefine
}

/** Operations of the station. */
export function registryOperations(options: RegistryOptions): Operation[] {
  const station = new RegistryStation(options)
  const path = '/resources/registry/{**key}'
  return [
    {
      method: 'GET',
      path: '/resources/registry',
      summary: 'All readable entries, as {key, value}, sorted by key',
      access: 'token',
      parameters: [INDEX],
      handle: (request) => station.list(request, ''),
    },
    {
      method: 'GET',
      path,
      summary: 'An entry, or with searchType=prefix all whose key begins so',
      access: 'token',
      permissions: ['registry/{key}:read'],
      parameters: [
        { name: 'searchType', in: 'query', description: '`exact` (the default) or `prefix`' },
        INDEX,
      ],
      handle: (request) => station.get(request),
    },
    {
      method: 'POST',
      path,
      summary: 'Create or overwrite an entry',
      access: 'token',
      permissions: ['registry/{key}:write'],
      body: { type: 'json', required: true, schema: VALUE },
      parameters: [
        { name: 'isSecret', in: 'query', description: 'Hide the value from HTTP reads from now' },
        ...CONDITIONS,
      ],
      handle: (request) => station.put(request),
    },
    {
      method: 'DELETE',
      path,
      summary: 'Delete an entry; one that is not there is deleted already',
      access: 'token',
      permissions: ['registry/{key}:write'],
      parameters: CONDITIONS.slice(0, 1),
      handle: (request) => station.delete(request),
    },
    ...enumOperations({ values: () => options.graph, station, conditions: CONDITIONS }),
  ]
}

class RegistryStation implements EntryWriter {
  readonly #options: RegistryOptions

  constructor(options: RegistryOptions) {
    this.#options = options
  }

  get(request: OperationRequest): OperationResponse {
    const searchType = request.query.get('searchType') ?? 'exact'
    if (searchType === 'prefix') return this.list(request, readPrefix(request.params['key']!))
    if (searchType !== 'exact') {
      throw invalid(`searchType is "exact" or "prefix", not "${searchType}"`)
    }
    // `/resources/registry/`: the list, as without its last slash.
    if (readPrefix(request.params['key']!) === '') return this.list(request, '')
    const key = readKey(request.params['key']!)
    allow(request.identity, key, 'read')
    const entry = this.#options.actorSystem.system.get<RegistryEntry>('registry', key)
    if (readFlag(request, 'index')) return { status: 200, body: entry === null ? [] : [key] }
    if (entry === null) throw new RequestError('NOT_FOUND', `there is no registry entry "${key}"`)
    return { status: 200, headers: { ETag: etagOf(entry.version) }, body: shown(entry) }
  }

  /** Entries that the caller may read; the others are left out silently (CONTRACT 1.1). */
  list(request: OperationRequest, prefix: string): OperationResponse {
    const { acl } = request.identity
    const index = readFlag(request, 'index')
    const all = acl.covers('registry', 'read')
    const { system } = this.#options.actorSystem
    const body: unknown[] = []
    for (const entry of system.withPrefix<RegistryEntry>('registry', prefix)) {
      if (!all && !acl.covers(`registry/${entry.key}`, 'read')) continue
      body.push(index ? entry.key : shown(entry))
    }
    return { status: 200, body }
  }

  async put(request: OperationRequest): Promise<OperationResponse> {
    const key = readKey(request.params['key']!)
    allow(request.identity, key, 'write')
    return this.putEntry(request, key)
  }

  async putEntry(request: OperationRequest, key: string): Promise<OperationResponse> {
    const bytes = request.bodyBytes.length
    if (bytes > LIMITS.registry.valueBytesMax) {
      const what = `a registry value has at most ${LIMITS.registry.valueBytesMax} bytes`
      throw new RequestError('TOO_LARGE', `${what}, this one has ${bytes}`)
    }
    const value = request.body
    const fault =
      checkValue(key, value) ?? this.#options.graph.fault(key, value) ?? this.#crowd(key)
    if (fault !== null) {
      throw new RequestError('INVALID_REGISTRY_VALUE', fault.message, { member: fault.member })
    }
    const refusal = this.#options.graph.refusalToDefine(request.identity.acl, { key, value })
    if (refusal !== null) throw refusedBy(refusal)
    const reply = await this.#write(request, key)
    const data = dataOf(reply) as { version: number }
    return this.#written(reply, { ETag: etagOf(data.version) })
  }

  /** Too many values of one enum; null: there is room, or the key is of none. */
  #crowd(key: string): ValueFault | null {
    const { system } = this.#options.actorSystem
    const prefix = valuesPrefixOf(key)
    if (prefix === null || system.get('registry', key) !== null) return null
    let count = 0
    for (const _ of system.withPrefix('registry', prefix)) count++
    const max = LIMITS.graph.enumValuesMax
    return count < max ? null : { message: `an enum has at most ${max} values`, member: 'key' }
  }

  /** What was secret stays so until a write says otherwise. */
  async #write(request: OperationRequest, key: string): Promise<Reply> {
    const condition = conditionOf(request)
    const put = (isSecret: boolean, more: WriteCondition = {}): Promise<Reply> => {
      const { actorSystem, secrets } = this.#options
      const value = request.body
      const entry = (isSecret && secrets?.seal(key, value)) || { value, isSecret }
      const body = { value: entry, ...condition, ...more }
      return actorSystem.ask(putRequest('registry', key, body, originOf(request)))
    }
    if (request.query.has('isSecret')) return put(readFlag(request, 'isSecret'))
    const before = this.#options.actorSystem.system.get<RegistryEntry>('registry', key)
    if (before?.value.isSecret) return put(true)
    const reply = await put(false, { ifOpen: true })
    // The maps here may be behind: its owner alone knows whether it is secret by now.
    const isBehind = failureOf(reply)?.code === 'CONFLICT' && !condition.ifAbsent
    return isBehind ? put(true) : reply
  }

  async delete(request: OperationRequest): Promise<OperationResponse> {
    const key = readKey(request.params['key']!)
    allow(request.identity, key, 'write')
    return this.deleteEntry(request, key)
  }

  async deleteEntry(request: OperationRequest, key: string): Promise<OperationResponse> {
    const condition = conditionOf(request)
    const ask = deleteRequest('registry', key, condition, originOf(request))
    const reply = await this.#options.actorSystem.ask(ask)
    if (failureOf(reply)?.code === 'NOT_FOUND') {
      if (condition.ifMatch === undefined) return { status: 200 }
      throw new RequestError('CONFLICT', `registry "${key}" does not exist (any more)`)
    }
    dataOf(reply)
    return this.#written(reply, {})
  }

  #written(reply: Reply, headers: Record<string, string>): OperationResponse {
    if (reply.outcome === 'answered' && reply.position !== null) {
      headers['X-Consistency'] = this.#options.consistency.encode([reply.position])
    }
    return { status: 200, headers }
  }
}

/** An entry as HTTP shows it: secret values stay where components can read them. */
function shown({ key, value }: SystemEntry<RegistryEntry>): Record<string, unknown> {
  return value.isSecret ? { key, value: null, isSecret: true } : { key, value: value.value }
}

function allow({ acl }: Identity, key: string, permission: 'read' | 'write'): void {
  if (acl.covers(`registry/${key}`, permission)) return
  throw lacking(`registry/${key}:${permission}`)
}

function conditionOf(request: OperationRequest): ReturnType<typeof readCondition> {
  return readCondition(request.header('if-match'), request.header('if-none-match'))
}

function originOf({ identity, requestId }: OperationRequest): Origin {
  return { by: identity.id, trace: requestId, session: identity.session }
}

/** `?index`, `?index=true`, `?index=false`. Throws RequestError 400 for anything else. */
function readFlag(request: OperationRequest, name: string): boolean {
  const value = request.query.get(name)
  if (value === null || value === 'false') return false
  if (value === '' || value === 'true') return true
  throw invalid(`${name} is true or false, not "${value}"`)
}

function invalid(message: string): RequestError {
  return new RequestError('INVALID_PARAMETERS', message)
}

function refusedBy({ code, message, details }: ErrorItem): RequestError {
  return new RequestError(code as ErrorCode, message, details)
}

/** The data of a write that took effect; throws its refusal as RequestError. */
function dataOf(reply: Reply): unknown {
  const error = failureOf(reply)
  if (error !== null) throw refusedBy(error)
  const result = reply.outcome === 'answered' ? reply.results[0]! : null
  return result?.success ? result.data : undefined
}
