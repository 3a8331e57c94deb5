// The control port: the rows that say who lives and who owns which shard, changed by conditional
// statements alone. Drivers: memory/, cassandra/. The embedded store needs none of it. Every driver
// passes conformance/control.ts. Source: PROTOCOL 3.0, 3.3, 3.5.

/**
 * What became of a conditional statement. `unknown`: it may be applied, now or at any later time
 * (timeout, lost connection, overload): read at the serial level before going on. Statements never
 * reject for what an engine does.
 */
export type Outcome = 'applied' | 'refused' | 'unknown'

export type MemberState = 'up' | 'leaving' | 'dead' | 'left'

/** Whether an incarnation reaches the others over the wire, as it says itself. */
export type WireState = 'up' | 'down'

/** One member: the name of a process, whose incarnations follow one another. */
export interface MemberRow {
  readonly member: string
  /** UUID of this incarnation. */
  readonly incarnation: string
  readonly state: MemberState
  /** Rises by one with every beat of this incarnation. */
  readonly beat: number
  /** Address of its HTTP service, for people and tools. */
  readonly address: string
  /** Version of the program, for rolling upgrades. */
  readonly version: string
  /** Absent: `up`; a program that doesn't know of it never says. */
  readonly wire?: WireState
}

/** Who owns a shard. A new one has epoch 0, no owner and the nil incarnation, which is dead. */
export interface ShardRow {
  readonly shard: number
  readonly epoch: number
  /** Name of the owner, for people; the incarnation decides. Empty: none yet. */
  readonly owner: string
  readonly incarnation: string
  /** A hint: the log's open segment is this one or a later one. */
  readonly segment: number
}

/** UUID of no incarnation at all: it counts as dead. */
export const NIL_INCARNATION = '00000000-0000-0000-0000-000000000000'

/** What must hold of a member's row; fields that are left out may be anything. */
export interface MemberCondition {
  readonly incarnation: string
  readonly state?: MemberState
  readonly beat?: number
}

export type MemberChange = Partial<Omit<MemberRow, 'member'>>

export interface ControlStore {
  /** All members, at quorum. Rejects when the engine can't answer, as every read here. */
  members(): Promise<readonly MemberRow[]>
  /** All shard rows (`system` is -1), at quorum, by number. They are there from `open` on. */
  shards(): Promise<readonly ShardRow[]>
  /** One member at the serial level: what undecided statements have come to is seen. */
  member(member: string): Promise<MemberRow | null>
  /** One shard's row at the serial level. */
  shard(shard: number): Promise<ShardRow>
  /** Applied when there is no row of this name yet. */
  insertMember(row: MemberRow): Promise<Outcome>
  updateMember(member: string, to: MemberChange, where: MemberCondition): Promise<Outcome>
  /** Gives the shard to another incarnation; `where` is its present tenure. */
  updateShard(
    shard: number,
    to: { readonly epoch: number; readonly owner: string; readonly incarnation: string },
    where: { readonly epoch: number; readonly incarnation: string },
  ): Promise<Outcome>
  /** Moves the hint; applied while the epoch is still this one. */
  hintSegment(shard: number, segment: number, where: { readonly epoch: number }): Promise<Outcome>
}
