// Natural keys that lead to an actor which doesn't have them: an older version left some behind
// when one message took and gave up several. What keys a state has is said by the behaviours, which
// it is given. Only what is settled counts: what is still on its way, by the log, is no finding.
// Source: ARCHITECTURE 4, PROTOCOL 4.1 (aliases = fold).

import type { Behaviour } from '../protocol/behaviour.ts'
import { decodeEntry, metaOf, recordsOf, type EntryHead } from '../protocol/entry/entry.ts'
import { placeOfActor, placeOfKey, shardOf } from '../protocol/ids.ts'
import { moveOver, successionOf } from '../protocol/entry/succession.ts'
import { COUNTER_SUFFIX, CREATE_KEY_SUFFIX } from './journal.ts'
import type { AliasRow, DerivedReader } from './journal.ts'

export type Behaviours = ReadonlyMap<string, Behaviour>

/** How far a shard had come before any log was read. */
export interface Settled {
  /** Up to here the derived rows are there. */
  readonly flush: number
  /** Up to here the effects of its entries were taken. */
  readonly relayed: number
}

export interface KeyAuditOptions {
  readonly behaviours: Behaviours
  /** By shard, read before the first entry is handed in. */
  readonly settled: ReadonlyMap<number, Settled>
  readonly shards: number
  readonly entries: DerivedReader['entries']
  readonly report: (what: string) => void
  /**
   * Writes the row of a key that is given back, as of an offset of its shard that nothing newer of
   * it is below. False: this row can't be written with that offset now. null: it is only told.
   */
  readonly free: ((row: AliasRow, at: Place) => Promise<boolean> | boolean) | null
}

export interface Place {
  readonly shard: number
  readonly offset: number
}

/** Keys that are looked at together. */
const TOGETHER = 16
const READ_BYTES = 1024 * 1024

export class KeyAudit {
  readonly #options: KeyAuditOptions
  readonly #keysOnTheirWay = new Set<string>()
  readonly #actorsOnTheirWay = new Set<string>()
  readonly #waiting: { readonly row: AliasRow; readonly offset: number }[] = []

  constructor(options: KeyAuditOptions) {
    this.#options = options
  }

  /** An entry of a log: all behind `flush` and behind `relayed` are to be handed in. */
  entry(shard: number, offset: number, { p, k, e }: EntryHead): void {
    const { flush, relayed } = this.#options.settled.get(shard) ?? NOTHING
    if (offset > flush) {
      this.#actorsOnTheirWay.add(p)
      for (const { keyType, key } of k ?? []) this.#keysOnTheirWay.add(`${keyType}\0${key}`)
    }
    if (offset <= relayed) return
    for (const { to } of e ?? []) if ('key' in to) this.#keysOnTheirWay.add(`${to.type}\0${to.key}`)
  }

  /** A row of a key, once all logs were read; `offset`: as it is stored. */
  async row(row: AliasRow, offset: number): Promise<void> {
    const { keyType } = row
    if (keyType.endsWith(CREATE_KEY_SUFFIX) || keyType.endsWith(COUNTER_SUFFIX)) return
    if (row.claims.length === 0 || row.claims.some(({ confirmed }) => !confirmed)) return
    this.#waiting.push({ row, offset })
    if (this.#waiting.length >= TOGETHER) await this.end()
  }

  /** Looks at the rows that wait to be looked at together. */
  async end(): Promise<void> {
    await Promise.all(this.#waiting.splice(0).map(({ row, offset }) => this.#look(row, offset)))
  }

  async #look(row: AliasRow, offset: number): Promise<void> {
    const { settled, shards, free, report } = this.#options
    const { keyType, key } = row
    const shard = shardOf(placeOfKey(keyType, key), shards)
    const { flush } = settled.get(shard) ?? NOTHING
    if (offset > flush || this.#keysOnTheirWay.has(`${keyType}\0${key}`)) return
    const { actorId } = row.claims[0]!
    if (!(await this.#isLeft(row, actorId))) return
    const what = `key '${key}' of ${keyType} leads to actor ${actorId}, which doesn't have it`
    if (free === null) return report(`${what}; --repair gives it back`)
    const isFree = await free({ keyType, key, claims: [] }, { shard, offset: flush })
    report(
      `${what}; ${isFree ? 'it was given back' : 'it can be given back once its shard goes on'}`,
    )
  }

  /** Whether the actor is there, has settled, and doesn't have the key. */
  async #isLeft({ keyType, key }: AliasRow, actorId: string): Promise<boolean> {
    const { settled, shards } = this.#options
    const { flush } = settled.get(shardOf(placeOfActor(actorId), shards)) ?? NOTHING
    if (this.#actorsOnTheirWay.has(actorId)) return false
    const actor = await this.#fold(actorId)
    if (actor === null || actor.newest > flush || actor.behaviour.isDeleted(actor.state))
      return false
    const keys = actor.behaviour.naturalKeys(actor.state)
    return !keys.some((one) => one.keyType === keyType && one.key === key)
  }

  /** null: it was never made, or can't be read whole. */
  async #fold(actorId: string) {
    const standing = { version: 0, recordedAt: 0 }
    let state: unknown = null
    let behaviour: Behaviour | undefined
    let newest = 0
    for (let after = 0; ;) {
      const range = { order: 'ascending', after, bytesMax: READ_BYTES } as const
      const rows = await this.#options.entries(actorId, range)
      for (const { n, offset, body } of rows) {
        after = n
        newest = Math.max(newest, offset)
        const entry = decodeEntry(body)
        const succession = successionOf(standing, entry, offset)
        // Records are missing, or it has two histories: whoever has it in hand looks at its keys.
        if (succession !== 'next') return null
        behaviour ??= this.#options.behaviours.get(entry.y)
        if (behaviour === undefined) return null
        try {
          for (const [i, record] of recordsOf(entry, behaviour).entries()) {
            state = behaviour.evolve(state, record, metaOf(entry, i))
          }
        } catch {
          return null // quarantined
        }
        moveOver(standing, entry, offset)
      }
      if (rows.length === 0) break
    }
    return behaviour === undefined || state === null ? null : { behaviour, state, newest }
  }
}

const NOTHING: Settled = { flush: 0, relayed: 0 }

/** The offset that a shard's own row names as relayed; 0 when it names none. */
export function relayedIn(own: { readonly body: Uint8Array } | null): number {
  if (own === null) return 0
  return (JSON.parse(Buffer.from(own.body).toString()) as Partial<Settled>).relayed ?? 0
}
