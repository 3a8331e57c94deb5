// A decision under way: a copy of the state that takes the records of a batch one by one, so that a
// refusal leaves the original as it was. Commands commit records here, and the decision is made of
// it. Source: ARCHITECTURE 2.

import { LIMITS } from '../../config/limits.ts'
import type { ActorRecord, Decision, Effect, RecordMeta, Turn } from '../../protocol/behaviour.ts'
import { RequestError } from '../../protocol/errors.ts'
import type { Placed } from './command.ts'
import { invalid } from './refuse.ts'

/** What a draft needs to know of its actor type. */
export interface DraftModel<S, R> {
  /** For messages: `an order`. */
  readonly what: string
  /** Folds a record into the state, in place; `null` only before the first. */
  readonly evolve: (state: S | null, record: R, meta: RecordMeta) => S
  /** A copy that may be changed without the original noticing. */
  readonly copy: (state: S) => S
}

/** The meta of the record that brings an actor to `version` in this turn. */
export function metaOf(turn: Turn, version: number): RecordMeta {
  return {
    actorId: turn.actorId,
    version,
    timeMs: turn.nowMs,
    by: turn.by,
    messageId: turn.messageId,
  }
}

export class Draft<S, R extends { readonly t: string }> {
  readonly state: S
  readonly records: R[] = []
  /** The command that runs at the moment, and for each record, which it came of; null: of none. */
  cause: Placed | null = null
  readonly causes: (Placed | null)[] = []
  readonly turn: Turn
  readonly #model: DraftModel<S, R>
  /** What records are committed with; `version` moves on. */
  readonly #meta: { -readonly [K in keyof RecordMeta]: RecordMeta[K] }
  #copiedChars = 0

  /** `from`: the state to go on from (it is copied), or the record that makes a new actor. */
  constructor(
    from: { readonly state: S } | { readonly birth: R },
    turn: Turn,
    model: DraftModel<S, R>,
  ) {
    this.turn = turn
    this.#model = model
    this.#meta = metaOf(turn, turn.version)
    if ('birth' in from) {
      this.#meta.version++
      this.records.push(from.birth)
      this.causes.push(null)
      this.state = model.evolve(null, from.birth, this.#meta)
    } else {
      this.state = model.copy(from.state)
    }
  }

  /** Takes a record: from here on the draft is as it says. */
  commit(record: R): void {
    this.#meta.version++
    this.records.push(record)
    this.causes.push(this.cause)
    this.#model.evolve(this.state, record, this.#meta)
  }

  /**
   * Counts text that a record repeats from the state: small commands must not write without bound.
   * Throws TOO_LARGE past what an entry may hold.
   */
  copies(chars: number): void {
    this.#copiedChars += chars
    if (this.#copiedChars <= LIMITS.protocol.entryBytesMax) return
    throw new RequestError(
      'TOO_LARGE',
      `this batch would write more than ${LIMITS.protocol.entryBytesMax} bytes: send it in parts`,
    )
  }

  /** Refuses one more where there are `count` of at most `max`. */
  room(count: number, max: number, what: string): void {
    if (count >= max) invalid(`${this.#model.what} has at most ${max} ${what}`)
  }

  /** What is decided: the records, and the kinds of the message's commands on the first of them. */
  decided(
    batch: readonly Placed[],
    { data, effects }: { readonly data: unknown; readonly effects: readonly Effect[] },
  ): Decision<S> {
    if (batch.length > 0) {
      // Kinds of commands, for the checkpoint that this message makes (CONTRACT 1.3).
      const types = new Set<string>()
      for (const { command } of batch) types.add(command.type)
      ;(this.records[0] as { commands?: readonly string[] }).commands = [...types]
    }
    return {
      ok: true,
      records: this.records as readonly object[] as readonly ActorRecord[],
      state: this.state,
      data,
      ...(effects.length > 0 && { effects }),
    }
  }
}
