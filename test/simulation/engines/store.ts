// What a simulated process has of the engine: the ports of storage/ over statements that travel.
// Rows read together are read one by one, derived rows are written one by one, each at a time of
// its own (derived.ts). Source: PROTOCOL 3.0, 3.1, 3.12 (order).

import type {
  ControlStore,
  MemberChange,
  MemberCondition,
  MemberRow,
  Outcome,
  ShardRow,
} from '../../../storage/control.ts'
import type { Group, LogRow } from '../../../storage/journal.ts'
import type { SegmentId, SegmentStatics, SegmentStore } from '../../../storage/segments.ts'
import type { Engine } from './engine.ts'
import type { Process } from '../scheduler/scheduler.ts'

class EngineCalls {
  readonly engine: Engine
  readonly process: Process

  constructor(engine: Engine, process: Process) {
    this.engine = engine
    this.process = process
  }

  /** A conditional statement. */
  statement(text: string, evaluate: () => Promise<Outcome>): Promise<Outcome> {
    return this.engine.call<Outcome>({ process: this.process, text, evaluate, unheard: 'unknown' })
  }

  read<T>(text: string, evaluate: () => Promise<T>): Promise<T> {
    return this.engine.call({ process: this.process, text, evaluate })
  }

  /** A range over partitions: each row is read at a time of its own. */
  async scan<T>(text: string, read: () => Promise<readonly T[]>): Promise<readonly T[]> {
    const { chance } = this.engine.scheduler
    const [some, others] = await Promise.all([this.read(text, read), this.read(text, read)])
    const rows = some.length >= others.length ? some : others
    return rows.map((row, i) => (chance() < 0.5 ? row : (others[i] ?? row)))
  }
}

export class StoreControl implements ControlStore {
  readonly #calls: EngineCalls
  readonly #control: ControlStore

  constructor(engine: Engine, process: Process) {
    this.#calls = new EngineCalls(engine, process)
    this.#control = engine.control
  }

  members(): Promise<readonly MemberRow[]> {
    return this.#calls.scan('members', () => this.#control.members())
  }

  shards(): Promise<readonly ShardRow[]> {
    return this.#calls.scan('shards', () => this.#control.shards())
  }

  member(member: string): Promise<MemberRow | null> {
    return this.#calls.read(`member ${member}`, () => this.#control.member(member))
  }

  shard(shard: number): Promise<ShardRow> {
    return this.#calls.read(`shard ${shard}`, () => this.#control.shard(shard))
  }

  insertMember(row: MemberRow): Promise<Outcome> {
    const text = `insert member ${row.member}`
    return this.#calls.statement(text, () => this.#control.insertMember(row))
  }

  updateMember(member: string, to: MemberChange, where: MemberCondition): Promise<Outcome> {
    const text = `update member ${member} to ${brief(to)} if ${brief(where)}`
    return this.#calls.statement(text, () => this.#control.updateMember(member, to, where))
  }

  updateShard(
    shard: number,
    to: { readonly epoch: number; readonly owner: string; readonly incarnation: string },
    where: { readonly epoch: number; readonly incarnation: string },
  ): Promise<Outcome> {
    const text = `update shard ${shard} to ${brief(to)} if ${brief(where)}`
    return this.#calls.statement(text, () => this.#control.updateShard(shard, to, where))
  }

  hintSegment(shard: number, segment: number, where: { readonly epoch: number }): Promise<Outcome> {
    const text = `hint shard ${shard} segment ${segment} if epoch ${where.epoch}`
    return this.#calls.statement(text, () => this.#control.hintSegment(shard, segment, where))
  }
}

/** Some characters of a UUID are enough to tell one incarnation from another. */
function brief(fields: object): string {
  return Object.entries(fields)
    .map(([name, value]) => `${name} ${name === 'incarnation' ? String(value).slice(-6) : value}`)
    .join(', ')
}

export class StoreSegments implements SegmentStore {
  readonly appendsMax: number
  readonly #calls: EngineCalls
  readonly #segments: SegmentStore

  constructor(engine: Engine, process: Process) {
    this.#calls = new EngineCalls(engine, process)
    this.#segments = engine.segments
    this.appendsMax = engine.segments.appendsMax
  }

  statics(of: SegmentId): Promise<SegmentStatics | null> {
    return this.#calls.read(`statics ${nameOf(of)}`, () => this.#segments.statics(of))
  }

  open(of: SegmentId, first: { readonly epoch: number; readonly head: number }): Promise<Outcome> {
    const text = `open ${nameOf(of)} epoch ${first.epoch} head ${first.head}`
    return this.#calls.statement(text, () => this.#segments.open(of, first))
  }

  fence(of: SegmentId, epoch: number): Promise<Outcome> {
    return this.#calls.statement(`fence ${nameOf(of)} epoch ${epoch}`, () =>
      this.#segments.fence(of, epoch),
    )
  }

  seal(of: SegmentId, where: { readonly epoch: number; readonly head: number }): Promise<Outcome> {
    const text = `seal ${nameOf(of)} if epoch ${where.epoch} head ${where.head}`
    return this.#calls.statement(text, () => this.#segments.seal(of, where))
  }

  append(segment: number, group: Group): Promise<Outcome> {
    const { engine, process } = this.#calls
    const { shard, epoch, head, count, commitId } = group
    // The sender may do with its bytes what it likes once they are sent.
    const sent: Group = { ...group, body: Buffer.from(group.body) }
    const text = `append ${nameOf({ shard, segment })} epoch ${epoch} head ${head} +${count}`
    return this.#calls.statement(`${text} ${commitId.slice(-6)}`, async () => {
      // A WriteFailure, which looks like an outcome that is not known (PROTOCOL 3.1).
      if (sent.body.length > engine.mutationBytesMax) return 'unknown'
      const outcome = await this.#segments.append(segment, sent)
      if (outcome === 'applied') {
        engine.witness.appended(segment, sent, {
          atMs: engine.scheduler.nowMs,
          by: process.name,
        })
      }
      return outcome
    })
  }

  rows(
    of: SegmentId,
    range: { readonly after: number; readonly bytesMax: number; readonly serial?: boolean },
  ): Promise<readonly LogRow[]> {
    const text = `rows ${nameOf(of)} after ${range.after}`
    return this.#calls.read(text, () => this.#segments.rows(of, range))
  }

  async dropRows(of: SegmentId, upTo: number): Promise<void> {
    const text = `drop rows ${nameOf(of)} to ${upTo}`
    const outcome = await this.#calls.statement(text, async () => {
      await this.#segments.dropRows(of, upTo)
      return 'applied'
    })
    if (outcome === 'unknown') throw new Error(`the engine does not answer: ${text}`)
  }
}

function nameOf({ shard, segment }: SegmentId): string {
  return `${shard}/${segment}`
}
