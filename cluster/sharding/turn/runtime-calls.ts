// Plays what decide calls for on its way: keys, numbers, effects of rules, history. Only the
// calling actor waits for an answer that isn't at hand; its shard goes on. Source: ARCHITECTURE 2,
// 4; PROTOCOL 3.6.

import { NO_ATTRIBUTES } from '../../../protocol/attributes.ts'
import { placeOfKey, shardOf } from '../../../protocol/ids.ts'
import type { ConfigurationView, RuntimeCall } from '../../../protocol/behaviour.ts'
import { LIMITS } from '../../../config/limits.ts'
import { RequestError } from '../../../protocol/errors.ts'
import type { AliasRow, Maybe } from '../../../storage/journal.ts'
import type { Activation } from './activation.ts'
import type { OutputGate } from '../commit/output-gate.ts'
import { ageOfHolder, mayWait } from '../keys/claims.ts'
import type { Claims } from '../keys/claims.ts'
import type { Reservation, ShardContext } from '../core.ts'
import { DecidedConfiguration } from './decided-configuration.ts'
import type { History } from './history.ts'
import { holderOf, idOf } from '../keys/keys.ts'
import type { KeyTable } from '../keys/keys.ts'
import { seriesOf } from '../keys/numbers.ts'
import type { Numbers, Series } from '../keys/numbers.ts'
import { resumed, TurnAgain } from './work.ts'
import type { Work } from './work.ts'

interface KeyCall {
  readonly keyType: string
  readonly key: string
}

interface NumberCall {
  readonly series: Series
  /** How often a stretch of taken numbers was passed over already. */
  readonly searches: number
}

/** What the calls of a turn are answered from. */
export interface RuntimeCallHost {
  readonly number: number
  readonly context: Pick<ShardContext, 'shards' | 'hooks' | 'configuration' | 'query'>
  readonly gate: OutputGate
  readonly keys: KeyTable
  readonly numbers: Numbers
  /** Keys that a turn under way has taken; another that asks for one waits for its end. */
  readonly reserved: Map<string, Reservation>
  /** The shard's clock, milliseconds (PROTOCOL 3.0). */
  clockMs(): number
}

export class RuntimeCalls {
  readonly #shard: RuntimeCallHost
  readonly #claims: Claims
  readonly #history: History

  constructor(shard: RuntimeCallHost, claims: Claims, history: History) {
    this.#shard = shard
    this.#claims = claims
    this.#history = history
  }

  /** The answer, or the promise of it. */
  answer(activation: Activation, work: Work, call: RuntimeCall): Maybe<unknown> {
    const { context } = this.#shard
    switch (call.call) {
      case 'reserve':
        return this.#reserve(activation, work, call)
      case 'number':
        return this.#nextNumber(activation, work, {
          series: seriesOf(call.keyType, call.prefix),
          searches: 0,
        })
      case 'effects':
        return context.hooks.effects(call.hook, call.payload)
      case 'checkpoints':
        return this.#history.checkpointsOf(
          activation,
          work,
          Math.min(call.limit, LIMITS.protocol.checkpointsMax),
        )
      case 'configuration':
        return this.#configuration()
      case 'state-at':
        return this.#history.stateAt(activation, work, call.checkpointId)
      case 'query':
        return context.query({
          behaviour: activation.behaviour,
          state: call.state,
          before: activation.state,
          actorId: activation.id,
          node: call.node,
          aces: work.envelope.graphAces ?? [],
          attributes: work.envelope.graphAttributes ?? NO_ATTRIBUTES,
          entries: () => this.#history.entriesOf(activation, work),
        })
    }
  }

  /** Of one moment with decide's own: where it has to be waited for, the turn begins anew. */
  #configuration(): ConfigurationView {
    const committed = this.#shard.context.configuration()
    if (committed instanceof Promise) throw new TurnAgain(() => committed)
    return new DecidedConfiguration(committed, this.#shard.gate.decided())
  }

  #reserve(activation: Activation, work: Work, call: KeyCall): Maybe<boolean> {
    const shard = this.#shard
    const id = idOf(call.keyType, call.key)
    // What the actor has already it keeps by the message that took it.
    if (work.taken.has(id) || activation.holding(call.keyType, call.key)) return true
    const home = shardOf(placeOfKey(call.keyType, call.key), shard.context.shards)
    if (home !== shard.number) {
      if (work.preview) return this.#claims.apart(call, { work, activation, look: true })
      return this.#claims.apart(call, { work, activation, look: false })
    }
    const other = shard.reserved.get(id)
    if (other && other.work !== work) {
      const ended = new Promise<void>((resolve) => {
        other.waiting.push((isDropped) => void (isDropped || resolve()))
      })
      if (!mayWait(ageOfHolder(shard.reserved, work), other)) throw new TurnAgain(() => ended)
      return ended.then(resumed(work, () => this.#reserve(activation, work, call)))
    }
    const found = shard.keys.lookup(
      call.keyType,
      call.key,
      resumed(work, (row) => this.#take(activation, work, { call, row })),
    )
    if (found instanceof Promise && !work.preview) this.#hold(work, id)
    return found
  }

  #take(
    activation: Activation,
    work: Work,
    found: { readonly call: KeyCall; readonly row: AliasRow | null },
  ): Maybe<boolean> {
    const shard = this.#shard
    const { call, row } = found
    const clock = shard.clockMs()
    const holder = holderOf(row, clock)
    const id = idOf(call.keyType, call.key)
    work.gate = Math.max(work.gate, work.preview ? shard.gate.newest : 0)
    if (holder && holder.actorId !== activation.id) {
      if (holder.confirmed || clock - holder.clock < LIMITS.sharding.claimAgeMs) return false
      return this.#claims
        .inquire(call, holder)
        .then(resumed(work, (holds) => (holds ? false : this.#reserve(activation, work, call))))
    }
    if (work.preview) return true
    this.#hold(work, id)
    work.bases.set(id, row)
    work.taken.set(id, { keyType: call.keyType, key: call.key, isApart: false })
    return true
  }

  /** Another turn that asks for the key from now on waits for the end of this one. */
  #hold(work: Work, id: string): void {
    const { reserved } = this.#shard
    if (!reserved.has(id)) reserved.set(id, { work, waiting: [] })
  }

  #nextNumber(activation: Activation, work: Work, { series, searches }: NumberCall): Maybe<string> {
    const { numbers, reserved } = this.#shard
    const { keyType, counter } = series
    const again = (after: Promise<void>, times: number): Promise<string> =>
      after.then(
        resumed(work, () => this.#nextNumber(activation, work, { series, searches: times })),
      )
    for (;;) {
      const ready = numbers.ready(series)
      if (ready instanceof Promise) return again(ready, searches)
      const after = work.counters?.[counter] ?? 0
      const { text, n } = work.preview ? numbers.peek(series, after) : numbers.next(series)
      work.counters ??= {}
      work.counters[counter] = n
      if (reserved.has(idOf(keyType, text))) continue
      const free = this.#reserve(activation, work, { keyType, key: text })
      if (free === true) return text
      const taken = (): Promise<string> => {
        if (searches >= LIMITS.sharding.numberSearchesMax) {
          const busy = 'others take the numbers with this prefix just now; try again'
          throw new RequestError('TOO_BUSY', busy)
        }
        return again(this.#skipTaken(series), searches + 1)
      }
      if (free === false) return taken()
      return free.then(resumed(work, (isFree) => (isFree ? text : taken())))
    }
  }

  #skipTaken(series: Series): Promise<void> {
    const shard = this.#shard
    const { keyType } = series
    return shard.numbers.skip(series, (text) => {
      if (shard.reserved.has(idOf(keyType, text))) return true
      return shard.keys.lookup(keyType, text, (row) => (row?.claims.length ?? 0) > 0)
    })
  }

  /** Ends what the message at which the work stands has taken on its way. */
  endReservations(work: Work): void {
    this.giveBack(work)
    work.taken.clear()
  }

  /**
   * Ends the reservations of the work's message and wakes who waits for them. Claims stay: nobody
   * waits for one, and what the message doesn't ask for again is freed with its entry.
   */
  giveBack(work: Work): void {
    const { reserved } = this.#shard
    if (reserved.size > 0) {
      for (const [id, reservation] of reserved) {
        if (reservation.work !== work) continue
        reserved.delete(id)
        for (const wake of reservation.waiting) wake(false)
      }
    }
    for (const [id, { isApart }] of work.taken) if (!isApart) work.taken.delete(id)
    work.bases.clear()
    work.counters = null
  }
}
