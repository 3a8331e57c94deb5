// Histories and logs by hand, for tests of the checkers: what clients were told, and what a log
// holds.

import { encodeEntry, joinEntries } from '../../../protocol/entry/entry.ts'
import type { Entry } from '../../../protocol/entry/entry.ts'
import type { ActorRecord } from '../../../protocol/behaviour.ts'
import type { MessageResult } from '../../../protocol/message.ts'
import { stagesOf } from '../../../storage/cassandra/derived/statements.ts'
import type { DerivedRow } from '../../../storage/journal.ts'
import { foldLog } from '../checkers/fold.ts'
import type { FoldedLog } from '../checkers/fold.ts'
import type { Engine } from '../engines/engine.ts'
import { OperationHistory } from '../clients/operation-history.ts'
import type { Operation, OperationMessage } from '../clients/operation-history.ts'
import type { AppliedRow } from '../witness.ts'

export const LEDGER = '019b76da-a800-7aea-8f20-3101f073f8bb'

export type Told = Partial<Operation> & {
  readonly messages: readonly OperationMessage[]
  /** From when to when. */
  readonly at: readonly [number, number]
}

/** A history of operations on one ledger; what isn't said is answered, without a key. */
export function historyOf(...told: readonly Told[]): OperationHistory {
  const history = new OperationHistory()
  for (const { at, messages, ...more } of told) {
    const operation = history.begin({
      client: 'client',
      type: 'ledger',
      address: LEDGER,
      messages,
      key: more.key ?? null,
      preview: more.preview ?? false,
      invokedMs: at[0],
    })
    const outcome = more.outcome ?? 'ok'
    Object.assign(operation, {
      outcome,
      returnedMs: outcome === 'info' ? Infinity : at[1],
      actorId: LEDGER,
      ...more,
    })
  }
  return history
}

export function append(token: string, more: object = {}): OperationMessage {
  return { type: 'append', body: { token, ...more } }
}

export const OPEN: OperationMessage = { type: 'open', body: { number: 'N1' } }
export const READ: OperationMessage = { type: 'read', body: {} }

export function done(type: string, data: unknown): MessageResult {
  return { type, success: true, data }
}

export function shown(...tokens: readonly string[]): MessageResult {
  return done('read', { number: 'N1', tokens })
}

export function rejected(type: string, code: string, message: string): MessageResult {
  return { type, success: false, errors: [{ code, message }] }
}

let messages = 0

export function entry(n: number, v: number, r: readonly ActorRecord[], more = {}): Entry {
  return {
    y: 'ledger',
    p: LEDGER,
    v,
    n,
    r,
    m: `message-${messages++}`,
    l: 0,
    a: done('append', 0),
    t: 0,
    c: 0,
    b: 'client',
    ...more,
  }
}

export const OPENED: ActorRecord = { t: 'opened', id: LEDGER, number: 'N1' }

export function appended(token: string): ActorRecord {
  return { t: 'appended', token }
}

/** Rows of shard 0, one an entry, as if one owner had written them one after the other. */
export function rowsOf(
  entries: readonly Entry[],
  change: (row: AppliedRow, i: number) => Partial<AppliedRow> = () => ({}),
): Map<number, AppliedRow[]> {
  const rows = entries.map((one, i): AppliedRow => {
    const row: AppliedRow = {
      shard: 0,
      epoch: 1,
      offset: i + 1,
      count: 1,
      commitId: `commit-${i}`,
      body: joinEntries([encodeEntry(one)]),
      segment: 1,
      atMs: i,
      by: 'a',
    }
    return { ...row, ...change(row, i) }
  })
  return new Map([[0, rows]])
}

export function logOf(...entries: readonly Entry[]): FoldedLog {
  return foldLog(rowsOf(entries))
}

/** A derived row of shard 0 in the tables of an engine. */
export function putRow(engine: Engine, row: DerivedRow): void {
  const bounds = { bytes: Infinity, partitions: 1 }
  const place = { keyspace: 'simulated', shard: 0, bounds, keepsRejections: false }
  const { first, second } = stagesOf(place, [row])
  for (const statement of [...first, ...second].flat()) engine.tables.write(statement)
}
