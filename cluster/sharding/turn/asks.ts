// Answers to what decide asks for on the way: keys, numbers, effects of rules, history. Only the
// asking actor waits for an answer that isn't at hand; its shard goes on. It stands between the
// turn runner and the shard's tables. Source: ARCHITECTURE 2, 4; PROTOCOL 3.6.

import { placeOfKey, shardOf } from '../../../protocol/ids.ts'
import type { Ask } from '../../../protocol/behaviour.ts'
import { LIMITS } from '../../../config/limits.ts'
import { RequestError } from '../../../protocol/errors.ts'
import type { AliasRow, Maybe } from '../../../storage/journal.ts'
import type { Activation } from './activation.ts'
import { ageOfHolder, claimApart, inquire, mayWait } from '../keys/claims.ts'
import type { ShardCore } from '../core.ts'
import { checkpointsOf, entriesOf, stateAt } from './history.ts'
import { holderOf, idOf } from '../keys/keys.ts'
import { seriesOf } from '../keys/numbers.ts'
import type { Series } from '../keys/numbers.ts'
import { resumed, TurnAgain } from './work.ts'
import type { Work } from './work.ts'

/** The answer, or the promise of it. */
export function answerAsk(
  shard: ShardCore,
  activation: Activation,
  work: Work,
  ask: Ask,
): Maybe<unknown> {
  switch (ask.ask) {
    case 'reserve':
      return reserve(shard, activation, work, ask)
    case 'number':
      return nextNumber(shard, activation, work, {
        series: seriesOf(ask.keyType, ask.prefix),
        searches: 0,
      })
    case 'effects':
      return shard.context.hooks.effects(ask.hook, ask.payload)
    case 'checkpoints':
      return checkpointsOf(shard, activation, work, Math.min(ask.limit, LIMITS.checkpointsMax))
    case 'configuration':
      return shard.context.configuration()
    case 'state-at':
      return stateAt(shard, activation, work, ask.checkpointId)
    case 'query':
      return shard.context.query({
        behaviour: activation.behaviour,
        state: ask.state,
        actorId: activation.id,
        node: ask.node,
        aces: work.envelope.graphAces ?? [],
        entries: () => entriesOf(shard, activation, work),
      })
  }
}

interface KeyAsk {
  readonly keyType: string
  readonly key: string
}

function reserve(
  shard: ShardCore,
  activation: Activation,
  work: Work,
  ask: KeyAsk,
): Maybe<boolean> {
  const id = idOf(ask.keyType, ask.key)
  // What the actor has already it keeps by the message that took it.
  if (work.taken.has(id) || activation.holding(ask.keyType, ask.key)) return true
  const home = shardOf(placeOfKey(ask.keyType, ask.key), shard.context.shards)
  if (home !== shard.number) {
    if (work.preview) return claimApart(shard, ask, { work, activation, look: true })
    return claimApart(shard, ask, { work, activation, look: false })
  }
  const other = shard.reserved.get(id)
  if (other && other.work !== work) {
    const ended = new Promise<void>((resolve) => {
      other.waiting.push((isDropped) => void (isDropped || resolve()))
    })
    if (!mayWait(ageOfHolder(shard, work), other)) throw new TurnAgain(() => ended)
    return ended.then(resumed(work, () => reserve(shard, activation, work, ask)))
  }
  const found = shard.keys.lookup(
    ask.keyType,
    ask.key,
    resumed(work, (row) => take(shard, activation, work, { ask, row })),
  )
  if (found instanceof Promise && !work.preview) hold(shard, work, id)
  return found
}

function take(
  shard: ShardCore,
  activation: Activation,
  work: Work,
  found: { readonly ask: KeyAsk; readonly row: AliasRow | null },
): Maybe<boolean> {
  const { ask, row } = found
  const clock = shard.clockMs()
  const holder = holderOf(row, clock)
  const id = idOf(ask.keyType, ask.key)
  work.gate = Math.max(work.gate, work.preview ? shard.gate.newest : 0)
  if (holder && holder.actorId !== activation.id) {
    if (holder.confirmed || clock - holder.clock < LIMITS.claimAgeMs) return false
    return inquire(shard, ask, holder).then(
      resumed(work, (holds) => (holds ? false : reserve(shard, activation, work, ask))),
    )
  }
  if (work.preview) return true
  hold(shard, work, id)
  work.bases.set(id, row)
  work.taken.set(id, { keyType: ask.keyType, key: ask.key, isApart: false })
  return true
}

/** Another turn that asks for the key from now on waits for the end of this one. */
function hold(shard: ShardCore, work: Work, id: string): void {
  if (!shard.reserved.has(id)) shard.reserved.set(id, { work, waiting: [] })
}

interface NumberAsk {
  readonly series: Series
  /** How often a stretch of taken numbers was passed over already. */
  readonly searches: number
}

function nextNumber(
  shard: ShardCore,
  activation: Activation,
  work: Work,
  { series, searches }: NumberAsk,
): Maybe<string> {
  const { numbers } = shard
  const { keyType, counter } = series
  const again = (after: Promise<void>, times: number): Promise<string> =>
    after.then(
      resumed(work, () => nextNumber(shard, activation, work, { series, searches: times })),
    )
  for (;;) {
    const ready = numbers.ready(series)
    if (ready instanceof Promise) return again(ready, searches)
    const after = work.counters?.[counter] ?? 0
    const { text, n } = work.preview ? numbers.peek(series, after) : numbers.next(series)
    work.counters ??= {}
    work.counters[counter] = n
    if (shard.reserved.has(idOf(keyType, text))) continue
    const free = reserve(shard, activation, work, { keyType, key: text })
    if (free === true) return text
    const taken = (): Promise<string> => {
      if (searches >= LIMITS.numberSearchesMax) {
        const busy = 'others take the numbers with this prefix just now; try again'
        throw new RequestError('TOO_BUSY', busy)
      }
      return again(skipTaken(shard, series), searches + 1)
    }
    if (free === false) return taken()
    return free.then(resumed(work, (isFree) => (isFree ? text : taken())))
  }
}

function skipTaken(shard: ShardCore, series: Series): Promise<void> {
  const { keyType } = series
  return shard.numbers.skip(series, (text) => {
    if (shard.reserved.has(idOf(keyType, text))) return true
    return shard.keys.lookup(keyType, text, (row) => (row?.claims.length ?? 0) > 0)
  })
}

/** Ends what the message at which the work stands has taken on its way. */
export function endReservations(shard: ShardCore, work: Work): void {
  giveBack(shard, work)
  work.taken.clear()
}

/**
 * Ends the reservations of the work's message and wakes who waits for them. Claims stay: nobody
 * waits for one, and what the message doesn't ask for again is freed with its entry.
 */
export function giveBack(shard: ShardCore, work: Work): void {
  if (shard.reserved.size > 0) {
    for (const [id, reservation] of shard.reserved) {
      if (reservation.work !== work) continue
      shard.reserved.delete(id)
      for (const wake of reservation.waiting) wake(false)
    }
  }
  for (const [id, { isApart }] of work.taken) if (!isApart) work.taken.delete(id)
  work.bases.clear()
  work.counters = null
}
