// Bounds of the language: what members of every room agree on. Part of LIMITS. Source: CONTRACT 0.

import { ACE_LIMITS } from '../../protocol/ace.ts'
import { ATTRIBUTE_LIMITS } from '../../protocol/attributes.ts'
import { JSON_DEPTH_MAX, JSON_MEMBERS_MAX, JSON_VALUES_MAX } from '../../protocol/json/json.ts'

const KiB = 1024
const MiB = 1024 * KiB

export const PROTOCOL_LIMITS = {
  // JSON
  /** Levels of one text, its values, and the members of one of its objects. */
  jsonDepthMax: JSON_DEPTH_MAX,
  jsonValuesMax: JSON_VALUES_MAX,
  jsonMembersMax: JSON_MEMBERS_MAX,
  // Entries
  /** One entry: all that one message changes. */
  entryBytesMax: 2 * MiB,
  /** Checkpoints of an actor in one answer: the newest. */
  checkpointsMax: 1_000,
  // Entries of a role or a scope, and their compiled sets
  ...ACE_LIMITS,
  // What an identity is said to be
  ...ATTRIBUTE_LIMITS,
} as const
