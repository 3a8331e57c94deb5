// Values of enums over HTTP: lists of what a field is offered, wherever it comes from, and single
// values, which are entries of the registry. Source: specification "Release-note resources
// (2026.1)", CONTRACT 1.1 "Enums".

import { Type } from '@sinclair/typebox'
import { RequestError, lacking } from '../../protocol/errors.ts'
import type {
  Operation,
  OperationParameter,
  OperationRequest,
  OperationResponse,
} from '../http/operation.ts'
import { readKey } from './entry.ts'

interface Value {
  readonly key: string
}

/** What is offered. */
export interface EnumLists {
  /** Null: there is no such field, or it is no enum. */
  valuesOf(node: string, field: string): readonly Value[] | null
  sharedValues(name: string): readonly Value[]
}

/** Writes entries of the registry for who was let through. */
export interface EntryWriter {
  putEntry(request: OperationRequest, key: string): Promise<OperationResponse>
  deleteEntry(request: OperationRequest, key: string): Promise<OperationResponse>
}

interface EnumOptions {
  readonly values: () => EnumLists
  readonly station: EntryWriter
  readonly conditions: readonly OperationParameter[]
}

/** Where values are kept, as the paths name it. */
const GRAPH = 'enums/graph/{node}/{field}/values'
const SHARED = 'enums/definitions/{name}/values'

const VALUE = Type.Object({}, { description: 'A value', examples: [{ label: 'Summer', hue: 50 }] })

/** The prefix under which the values of an enum are, of the key of one of them; null: of none. */
export function valuesPrefixOf(key: string): string | null {
  const found = /^(enums\/(?:graph\/[^/]+\/[^/]+|definitions\/[^/]+)\/values\/)[^/]+$/.exec(key)
  return found?.[1] ?? null
}

/** The operations on values, of fields and of definitions alike. */
export function enumOperations({ values, station, conditions }: EnumOptions): Operation[] {
  const ofField = ({ params }: OperationRequest): readonly Value[] => {
    const { node, field } = params
    const found = values().valuesOf(node!, field!)
    if (found !== null) return found
    throw new RequestError('NOT_FOUND', `${node} has no field ${field} that is an enum`)
  }
  const shared = ({ params }: OperationRequest): readonly Value[] =>
    values().sharedValues(params['name']!)
  return [
    { pattern: GRAPH, of: 'a field', list: ofField },
    { pattern: SHARED, of: 'a definition', list: shared },
  ].flatMap(({ pattern, of, list }) => {
    const read = (request: OperationRequest): readonly Value[] => {
      allow(request, pathOf(pattern, request), 'read')
      return list(request)
    }
    const write = (request: OperationRequest): string => {
      const path = readKey(pathOf(`${pattern}/{key}`, request))
      allow(request, path, 'write')
      return path
    }
    const one = `/${pattern}/{key}`
    const permissions = (permission: string): string[] => [`${pattern}:${permission}`]
    const put = (method: 'PUT' | 'POST'): Operation => ({
      method,
      path: one,
      summary: `Create or overwrite a value of ${of}`,
      access: 'token',
      permissions: permissions('write'),
      body: { type: 'json', required: true, schema: VALUE },
      parameters: conditions,
      handle: (request) => station.putEntry(request, write(request)),
    })
    return [
      {
        method: 'GET',
        path: `/${pattern}`,
        summary: `All values of ${of}, as {key, label}`,
        access: 'token',
        permissions: permissions('read'),
        handle: (request) => ({ status: 200, body: { values: read(request) } }),
      },
      {
        method: 'GET',
        path: one,
        summary: `A value of ${of}`,
        access: 'token',
        permissions: permissions('read'),
        handle: (request) => {
          const { key } = request.params
          const found = read(request).find((value) => value.key === key)
          if (found !== undefined) return { status: 200, body: found }
          throw new RequestError('NOT_FOUND', `there is no value "${key}"`)
        },
      },
      put('PUT'),
      put('POST'),
      {
        method: 'DELETE',
        path: one,
        summary: `Delete a value of ${of}; one that is not there is deleted already`,
        access: 'token',
        permissions: permissions('write'),
        parameters: conditions.slice(0, 1),
        handle: (request) => station.deleteEntry(request, write(request)),
      },
    ] satisfies Operation[]
  })
}

function pathOf(pattern: string, { params }: OperationRequest): string {
  return pattern.replaceAll(/\{(\w+)\}/g, (_, name: string) => params[name]!)
}

/** They are entries of the registry, and have a resource of their own. */
function allow({ identity }: OperationRequest, path: string, permission: 'read' | 'write'): void {
  const { acl } = identity
  if (acl.covers(path, permission) || acl.covers(`registry/${path}`, permission)) return
  throw lacking(`${path}:${permission}`)
}
