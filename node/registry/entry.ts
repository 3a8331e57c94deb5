// Registry entries: JSON values under path-like keys. Source: specification "Registry entry",
// CONTRACT 1.1.

import { Type } from '@sinclair/typebox'
import type { Static } from '@sinclair/typebox'
import { LIMITS } from '../../config/limits.ts'
import type { Acl } from '../../protocol/ace.ts'
import type { Behaviour, SystemState } from '../../protocol/behaviour.ts'
import { RequestError } from '../../protocol/errors.ts'
import type { ErrorItem } from '../../protocol/errors.ts'
import { compileShape } from '../../protocol/json/validation.ts'
import { aclOfCaller } from '../access/permission.ts'
import { systemActor } from '../system-actor.ts'
import type { PutBody } from '../system-actor.ts'

const EntrySchema = Type.Object(
  {
    value: Type.Unknown(),
    isSecret: Type.Boolean(),
    /** A secret value as secrets.ts has encrypted it; `value` is null then. */
    sealed: Type.Optional(Type.String()),
  },
  { additionalProperties: false },
)

/** What is kept under a key. A secret one is readable for components, not over HTTP. */
export type RegistryEntry = Static<typeof EntrySchema>

/** Why the caller may not write this value under a key that they may write; null: they may. */
export type RefusalToDefine = (
  caller: Acl,
  entry: { readonly key: string; readonly value: unknown },
) => ErrorItem | null

/** `refusalToDefine`: what the graph asks of who writes a definition of its own. */
export function registryBehaviour(
  refusalToDefine: RefusalToDefine,
): Behaviour<SystemState<RegistryEntry>> {
  return systemActor<RegistryEntry>(
    'registry',
    compileShape(EntrySchema),
    ({ view, turn, message }) => {
      const caller = aclOfCaller(view, turn)
      if (typeof caller === 'string') return caller
      const key = turn.key!
      if (!mayWrite(caller, key)) return `this needs the ACE registry/${key}:write`
      if (message.type !== 'put') return null
      const { value } = (message.body as PutBody<RegistryEntry>).value
      return refusalToDefine(caller, { key, value })
    },
  )
}

/** Values of enums have a resource of their own as well. */
function mayWrite(caller: Acl, key: string): boolean {
  if (caller.covers(`registry/${key}`, 'write')) return true
  return key.startsWith('enums/') && caller.covers(key, 'write')
}

// eslint-disable-next-line no-control-regex -- control characters are what it looks for
const CONTROL = /[\u0000-\u001f\u007f]/

/**
 * A key as it is kept: without one leading slash, segments between slashes. Throws RequestError
 * 400 INVALID_PARAMETERS that names what is wrong.
 */
export function readKey(text: string): string {
  const key = readPrefix(text)
  if (key === '') throw invalid('a key is missing: /resources/registry/<key>')
  for (const segment of key.split('/')) {
    if (segment === '') throw invalid('a key has no empty segments: no slash at its end or twice')
    if (segment === '.' || segment === '..') throw invalid('a key has no segments "." or ".."')
  }
  return key
}

/** The beginning of keys, which may end anywhere. Throws RequestError 400 INVALID_PARAMETERS. */
export function readPrefix(text: string): string {
  const key = text.startsWith('/') ? text.slice(1) : text
  if (key.length > LIMITS.registry.keyCharsMax) {
    throw invalid(`a key has at most ${LIMITS.registry.keyCharsMax} characters`)
  }
  if (CONTROL.test(key) || !key.isWellFormed()) {
    throw invalid('a key has no control characters and no halves of surrogate pairs')
  }
  return key
}

function invalid(message: string): RequestError {
  return new RequestError('INVALID_PARAMETERS', message)
}
