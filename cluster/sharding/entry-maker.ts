// Makes the entry of what a turn decided: records, answer, keys taken and given up, effects. It
// stands between the turn runner and the open group. Source: PROTOCOL 3.0, ARCHITECTURE 4.

import { LIMITS } from '../../config/limits.ts'
import type { Decision, Effect } from '../../protocol/behaviour.ts'
import type { Entry, KeyChange } from '../../protocol/entry.ts'
import { placeOfKey, shardOf } from '../../protocol/ids.ts'
import type { MessageResult } from '../../protocol/message.ts'
import type { Activation } from './activation.ts'
import { keyEffect } from './core.ts'
import type { ShardCore } from './core.ts'
import { CREATE_KEY_SUFFIX } from '../../storage/journal.ts'
import { idOf } from './keys.ts'
import { NO_RECORDS, messageIdOf } from './work.ts'
import type { Work } from './work.ts'

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

interface Gathered {
  readonly keys: KeyChange[]
  readonly effects: Effect[]
}

/** The entry of a decision: its records, or the rejection that a repeat must meet again. */
export function entryOf(
  shard: ShardCore,
  activation: Activation,
  work: Work,
  decided: { readonly result: MessageResult; readonly decision: Decision<unknown> },
): Entry {
  const { decision } = decided
  const into: Gathered = {
    keys: decision.ok ? work.changes : [],
    effects: decision.ok && decision.effects ? [...decision.effects] : [],
  }
  settleClaims(activation, work, decision.ok, into)
  if (decision.ok) {
    for (const key of decision.releases ?? []) release(shard, activation, work, { key, into })
  }
  if (work.createKey && work.i === 0) {
    const keyType = activation.behaviour.type + CREATE_KEY_SUFFIX
    const { key, base } = work.createKey
    into.keys.push({ keyType, key, change: 'take', actorId: activation.id })
    work.bases.set(idOf(keyType, key), base)
  }
  const entry = plainEntry(shard, activation, work, decided.result) as Mutable<Entry>
  if (decision.ok) entry.r = decision.records
  if (into.effects.length > 0) entry.e = into.effects
  if (into.keys.length > 0) entry.k = into.keys
  if (decision.ok && work.counters) entry.g = work.counters
  return entry
}

/** An entry without records, as a rejection is. */
export function plainEntry(
  shard: ShardCore,
  activation: Activation,
  work: Work,
  result: MessageResult,
): Entry {
  const { envelope } = work
  const entry: Mutable<Entry> = {
    y: activation.behaviour.type,
    p: activation.id,
    v: activation.version,
    n: activation.n + 1,
    r: NO_RECORDS,
    m: messageIdOf(work),
    l: envelope.messageId.kind === 'caller' ? 1 : 0,
    a: result,
    t: work.nowMs,
    c: shard.clockMs(),
    b: envelope.by,
  }
  if (activation.key !== null) entry.q = activation.key
  if (envelope.bodyHash !== '') entry.h = envelope.bodyHash
  if (envelope.relay) entry.s = envelope.relay
  return entry
}

/** Claims in other shards: confirmed when the message took effect, freed when it did not. */
function settleClaims(activation: Activation, work: Work, ok: boolean, into: Gathered): void {
  const messageId = messageIdOf(work)
  for (const claim of work.claims) {
    if (ok) into.keys.push({ ...claim, change: 'claim', actorId: activation.id })
    into.effects.push(keyEffect(ok ? '!confirm' : '!free', claim, activation.id, messageId))
  }
}

/** A key given up: in this shard with the entry, elsewhere by the outbox, naming its message. */
function release(
  shard: ShardCore,
  activation: Activation,
  work: Work,
  given: { readonly key: { readonly keyType: string; readonly key: string }; into: Gathered },
): void {
  const { keyType, key } = given.key
  const { into } = given
  const { id: actorId } = activation
  const held = activation.held.get(idOf(keyType, key))
  if (!held) return
  const by = held.messageId
  into.keys.push({ keyType, key, change: 'free', actorId, by })
  if (shardOf(placeOfKey(keyType, key), shard.context.shards) !== shard.number) {
    into.effects.push(keyEffect('!free', given.key, actorId, by))
    return
  }
  // An alias lists the claims of one actor, so what this one holds says what the row has.
  const id = idOf(keyType, key)
  if (work.bases.has(id)) return
  const claim = { actorId, messageId: by, confirmed: true, clock: 0 }
  work.bases.set(id, { keyType, key, claims: [claim] })
}

/** Why an entry, or the state after it, is over its bound; else null (PROTOCOL 3.1). */
export function tooLarge(activation: Activation, bytes: number, state: unknown): string | null {
  if (bytes > LIMITS.entryBytesMax) {
    return (
      `what this message changes takes ${bytes} bytes, at most ${LIMITS.entryBytesMax} are ` +
      'possible; split it into several messages'
    )
  }
  activation.stateBytesBound += bytes
  if (activation.stateBytesBound <= LIMITS.stateBytesMax || state === null) return null
  const size = JSON.stringify(activation.behaviour.toSnapshot(state)).length
  if (size <= LIMITS.stateBytesMax) {
    activation.stateBytesBound = size
    return null
  }
  activation.stateBytesBound -= bytes
  return `this actor would take ${size} bytes, at most ${LIMITS.stateBytesMax} are possible`
}
