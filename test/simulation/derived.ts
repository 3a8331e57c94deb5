// The derived rows as a simulated process has them: registers that are written one by one, each at a
// time of its own, in the stages that every driver keeps. It stands between cluster/sharding and the
// registers of a run's engine. Source: PROTOCOL 3.0 (USING TIMESTAMP), 3.12 (order).

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
    const kept = structuredClone(row)
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

/** What a driver has to have acknowledged before the next is sent (PROTOCOL 3.12 "Order"). */
const STAGE: Readonly<Record<DerivedRow['kind'], number>> = {
  entry: 0,
  mark: 0,
  alias: 0,
  parked: 0,
  image: 0,
  snapshot: 1,
  shard: 1,
  consumer: 2,
}

function stagesOf(rows: readonly DerivedRow[]): DerivedRow[][] {
  const stages: DerivedRow[][] = [[], [], []]
  for (const row of rows) stages[STAGE[row.kind]]!.push(row)
  return stages.filter((stage) => stage.length > 0)
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
