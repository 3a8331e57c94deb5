// Makes the entry of what a turn decided: records, answer, keys taken and given up, effects.
// Source: PROTOCOL 3.0, ARCHITECTURE 4.

import { LIMITS } from '../../../config/limits.ts'
import type { Decision, Effect, NaturalKey } from '../../../protocol/behaviour.ts'
import type { Entry, KeyChange } from '../../../protocol/entry/entry.ts'
import { placeOfKey, shardOf } from '../../../protocol/ids.ts'
import type { MessageResult } from '../../../protocol/message.ts'
import type { Activation, StashKey } from './activation.ts'
import { keyEffect } from '../core.ts'
import type { ShardContext } from '../core.ts'
import { CREATE_KEY_SUFFIX } from '../../../storage/journal.ts'
import { idOf } from '../keys/keys.ts'
import type { Numbers } from '../keys/numbers.ts'
import { NO_RECORDS, messageIdOf } from './work.ts'
import type { Work } from './work.ts'

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

/** Where an entry lies. */
interface Placed {
  readonly number: number
  readonly context: Pick<ShardContext, 'shards' | 'clock'>
}

interface Clocked {
  /** The shard's clock, milliseconds (PROTOCOL 3.0). */
  clockMs(): number
}

/** What an entry needs of its shard. */
export interface EntryHost extends Placed, Clocked {
  readonly numbers: Numbers
}

interface Gathered {
  readonly keys: KeyChange[]
  readonly effects: Effect[]
}

/** The entry of a decision: its records, or the rejection that a repeat must meet again. */
export function entryOf(
  shard: EntryHost,
  activation: Activation,
  work: Work,
  decided: { readonly result: MessageResult; readonly decision: Decision<unknown> },
): Entry {
  const { decision } = decided
  const into: Gathered = {
    keys: [],
    effects: decision.ok && decision.effects ? [...decision.effects] : [],
  }
  settleKeys(shard, activation, work, { decision, into })
  const entry = keyedEntry(shard, activation, work, decided.result)
  if (decision.ok) entry.r = decision.records
  const after = decision.ok ? decision.state : activation.state
  forgets(activation, entry, { after, nowMs: shard.context.clock.nowMs() })
  if (into.effects.length > 0) entry.e = into.effects
  if (into.keys.length > 0) entry.k = [...into.keys, ...(entry.k ?? NO_CHANGES)]
  if (decision.ok && work.counters) entry.g = shard.numbers.highest(work.counters)
  return entry
}

/** The entry of what was refused; the first of a create holds its key, whatever it says. */
export function refusalOf(
  shard: Clocked,
  activation: Activation,
  work: Work,
  result: MessageResult,
): Entry {
  const entry = keyedEntry(shard, activation, work, result)
  forgets(activation, entry, { after: activation.state, nowMs: work.nowMs })
  return entry
}

function keyedEntry(
  shard: Clocked,
  activation: Activation,
  work: Work,
  result: MessageResult,
): Mutable<Entry> {
  const entry = plainEntry(shard, activation, work, result) as Mutable<Entry>
  if (work.createKey === null || work.position > 0) return entry
  const { key, base } = work.createKey
  const keyType = activation.behaviour.type + CREATE_KEY_SUFFIX
  work.bases.set(idOf(keyType, key), base)
  entry.k = [{ keyType, key, change: 'take', actorId: activation.id }]
  return entry
}

/** From when the actor may be forgotten, where it isn't there behind the entry (PROTOCOL 3.12). */
function forgets(
  { behaviour, state, forgottenFrom, quarantined }: Activation,
  entry: Mutable<Entry>,
  { after, nowMs }: { readonly after: unknown; readonly nowMs: number },
): void {
  if (behaviour.countsUntilMs === undefined) return
  // What can't be read is not known to have ended: another version may read it.
  if (quarantined !== null) return
  if (after !== null && !behaviour.isDeleted(after)) return
  const isEnding = state !== null && !behaviour.isDeleted(state)
  // An actor's own time may be ahead: once the clock was.
  const leftMs = isEnding ? Math.max(0, behaviour.countsUntilMs(state) - nowMs) : 0
  entry.f = Math.max(forgottenFrom, entry.c + leftMs)
}

/** An entry without records, as a rejection is. */
export function plainEntry(
  shard: Clocked,
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
  if (envelope.relay) entry.s = work.i === 0 ? envelope.relay : [...envelope.relay, work.i]
  return entry
}

/**
 * What the message does to natural keys, whatever happened to them on its way: what its actor has
 * only before it is given up, what it has only after it is taken, the rest stays as it is and is
 * held by the message that took it. What was reserved for nothing is free again.
 */
function settleKeys(
  shard: Placed,
  activation: Activation,
  work: Work,
  settled: { readonly decision: Decision<unknown>; readonly into: Gathered },
): void {
  const { decision, into } = settled
  const { behaviour, id: actorId } = activation
  const state = decision.ok ? decision.state : null
  const isBuried = state !== null && behaviour.isDeleted(state)
  const after = state === null || isBuried ? NO_KEYS : behaviour.naturalKeys(state)
  const messageId = messageIdOf(work)
  for (const { keyType, key, isApart } of work.taken.values()) {
    const has = isAmong(after, keyType, key)
    if (has) into.keys.push({ keyType, key, change: isApart ? 'claim' : 'take', actorId })
    if (!isApart) continue
    into.effects.push(keyEffect(has ? '!confirm' : '!free', { keyType, key }, actorId, messageId))
  }
  // A refused message gives up nothing, and the keys of a deleted actor stay taken.
  if (state === null || isBuried) return
  for (const held of activation.held.values()) {
    if (isAmong(after, held.keyType, held.key)) continue
    if (activation.holding(held.keyType, held.key)) release(shard, work, { actorId, held, into })
  }
}

function isAmong(keys: readonly NaturalKey[], keyType: string, key: string): boolean {
  return keys.some((one) => one.key === key && one.keyType === keyType)
}

/** A key given up: in this shard with the entry, elsewhere by the outbox, naming its message. */
function release(
  shard: Placed,
  work: Work,
  given: { readonly actorId: string; readonly held: StashKey; readonly into: Gathered },
): void {
  const { actorId, into } = given
  const { keyType, key, messageId: by } = given.held
  into.keys.push({ keyType, key, change: 'free', actorId, by })
  if (shardOf(placeOfKey(keyType, key), shard.context.shards) !== shard.number) {
    into.effects.push(keyEffect('!free', { keyType, key }, actorId, by))
    return
  }
  // An alias lists the claims of one actor, so what this one holds says what the row has.
  const claim = { actorId, messageId: by, confirmed: true, clock: 0 }
  work.bases.set(idOf(keyType, key), { keyType, key, claims: [claim] })
}

const NO_KEYS: readonly NaturalKey[] = []
const NO_CHANGES: readonly KeyChange[] = []

/**
 * Why an entry, or the state after it, is over its bound; else null (PROTOCOL 3.1). An actor that
 * is over it already, for an older version has let it, may still become smaller.
 */
export function tooLarge(activation: Activation, bytes: number, state: unknown): string | null {
  if (bytes > LIMITS.protocol.entryBytesMax) {
    return (
      `what this message changes takes ${bytes} bytes, at most ${LIMITS.protocol.entryBytesMax} are ` +
      'possible; split it into several messages'
    )
  }
  if (state === null || state === activation.state) return null
  const growth = bytes * LIMITS.sharding.stateGrowthMax
  if (activation.stateBytesBound + growth <= LIMITS.sharding.stateBytesMax) return null
  const size = snapshotBytes(activation, state)
  if (size > LIMITS.sharding.stateBytesMax && size >= snapshotBytes(activation, activation.state)) {
    return `this actor would take ${size} bytes, at most ${LIMITS.sharding.stateBytesMax} are possible`
  }
  // What joins adds its growth: then it is as measured.
  activation.stateBytesBound = size - growth
  return null
}

/** What a state takes in a snapshot with all that is kept beside it but its marks. */
function snapshotBytes({ behaviour, held, relays }: Activation, state: unknown): number {
  const shown = state === null ? null : behaviour.toSnapshot(state)
  return Buffer.byteLength(JSON.stringify([shown, [...held.values()], [...relays]]))
}
