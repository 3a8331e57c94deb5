// The derived rows as a simulated process has them: registers that are written one by one, each at
// a time of its own, in the stages that every driver keeps. It stands between cluster/sharding and
// the registers of a run's engine. Source: PROTOCOL 3.0 (USING TIMESTAMP), 3.12 (order).

import type {
  AliasRow,
  AppendOutcome,
  DerivedRow,
  DerivedStore,
  EntryRange,
  EntryRow,
} from '../../storage/journal.ts'
import type { Engine } from './engine.ts'
import type { Process } from './scheduler.ts'

export class StoreDerived implements DerivedStore {
  readonly #engine: Engine
  readonly #process: Process

  constructor(engine: Engine, process: Process) {
    this.#engine = engine
    this.#process = process
  }

  async write(shard: number, _epoch: number, rows: readonly DerivedRow[]): Promise<AppendOutcome> {
    for (const stage of stagesOf(rows)) {
      const outcomes = await Promise.all(stage.map((row) => this.#put(shard, row)))
      if (outcomes.includes('unknown')) return 'unknown'
    }
    return 'committed'
  }

  #put(shard: number, row: DerivedRow): Promise<'applied' | 'unknown'> {
    const { registers, witness } = this.#engine
    // What lands late lands as it was sent.
    const kept = 'body' in row && row.body ? { ...row, body: Buffer.from(row.body) } : row
    return this.#engine.call<'applied' | 'unknown'>({
      process: this.#process,
      text: `put ${shard} ${row.kind} ${nameOf(row)}@${row.offset}`,
      unheard: 'unknown',
      evaluate: async () => {
        registers.put(shard, kept)
        witness.put(shard, kept)
        return 'applied'
      },
    })
  }

  trimImages(): Promise<void> {
    return this.#read('trim images', () => this.#engine.registers.trimImages())
  }

  alias(keyType: string, key: string): Promise<AliasRow | null> {
    const { registers } = this.#engine
    return this.#read(`alias ${keyType} ${key}`, () => registers.alias(keyType, key))
  }

  snapshot(actorId: string): Promise<{ offset: number; body: Uint8Array } | null> {
    const { registers } = this.#engine
    return this.#read(`snapshot ${actorId}`, () => registers.snapshot(actorId))
  }

  entries(actorId: string, range: EntryRange): Promise<readonly EntryRow[]> {
    const { registers } = this.#engine
    return this.#read(`entries ${actorId}`, () => registers.entries(actorId, range))
  }

  mark(actorId: string, day: number, messageId: string): Promise<Uint8Array | null> {
    const { registers } = this.#engine
    const text = `mark ${actorId} ${messageId}`
    return this.#read(text, () => registers.mark(actorId, day, messageId))
  }

  shard(shard: number): Promise<{ offset: number; body: Uint8Array } | null> {
    return this.#read(`shard snapshot ${shard}`, () => this.#engine.registers.shard(shard))
  }

  consumer(shard: number, consumer: string): Promise<number | null> {
    const { registers } = this.#engine
    const text = `consumer ${shard} ${consumer}`
    return this.#read(text, () => registers.consumer(shard, consumer))
  }

  parked(
    shard: number,
    consumer: string,
  ): Promise<readonly { actorId: string; body: Uint8Array }[]> {
    const { registers } = this.#engine
    return this.#read(`parked ${shard} ${consumer}`, () => registers.parked(shard, consumer))
  }

  image(): Promise<{ offset: number; parts: readonly Uint8Array[] } | null> {
    return this.#read('image', () => this.#engine.registers.image())
  }

  actors(after: string | null, limit: number): Promise<readonly string[]> {
    return this.#read('actors', () => this.#engine.registers.actors(after, limit))
  }

  #read<T>(text: string, evaluate: () => T): Promise<T> {
    return this.#engine.call<T>({
      process: this.#process,
      text,
      evaluate: async () => evaluate(),
    })
  }
}

/** What says of other rows that they are there waits for them, as in every driver. */
function stagesOf(rows: readonly DerivedRow[]): DerivedRow[][] {
  const first: DerivedRow[] = []
  const second: DerivedRow[] = []
  for (const row of rows) {
    const isSecond = row.kind === 'snapshot' || row.kind === 'consumer'
    ;(isSecond ? second : first).push(row)
  }
  return [first, second].filter((stage) => stage.length > 0)
}

function nameOf(row: DerivedRow): string {
  switch (row.kind) {
    case 'entry':
      return `${row.actorId.slice(-6)}#${row.n}`
    case 'alias':
      return `${row.row.keyType} ${row.row.key}`
    case 'mark':
      return `${row.actorId.slice(-6)} ${row.messageId}`
    case 'snapshot':
    case 'parked':
      return row.actorId.slice(-6)
    case 'consumer':
      return row.consumer
    case 'shard':
    case 'image':
      return ''
  }
}
