// The view: who lives and who owns which shard, as the control rows said at one time.
// death-watch.ts reads the rows; placement, edges and the check of an envelope's sender go by the
// view. Source: PROTOCOL 3.3.1, 3.5.

import type { MemberRow, ShardRow } from '../../storage/control.ts'

export interface ClusterView {
  /** Monotonic time before the reads began, milliseconds: nothing here is older. */
  readonly readAtMs: number
  readonly shards: ReadonlyMap<number, ShardRow>
  /** By name; read after the shard rows. */
  readonly members: ReadonlyMap<string, MemberRow>
  /**
   * Members that are up, by name: who may have shards. A leaving one lives, but isn't here, nor is
   * one that is cut off.
   */
  live(): readonly MemberRow[]
  /**
   * True when the row of this incarnation says dead or left, or carries another one by now. Asked
   * only for an incarnation that was heard of before the view was read (one of its shard rows,
   * say): a newer one would look dead.
   */
  isDead(incarnation: string): boolean
  /** Its wire is down while others' are up, for so long that its shards go to those. */
  isCutOff(incarnation: string): boolean
  /** It says that its wire is down: nothing is given to it. */
  saysDown(incarnation: string): boolean
  /** Somebody else is up and doesn't say that his wire is down. */
  hasOtherWired(member: string): boolean
}

export interface ViewRows {
  readonly readAtMs: number
  readonly shards: readonly ShardRow[]
  readonly members: readonly MemberRow[]
  /** Incarnations; absent: nobody. */
  readonly cutOff?: ReadonlySet<string>
}

/** True for a row whose incarnation lives: it is up, or leaving and still there. */
export function isAlive(row: MemberRow): boolean {
  return row.state === 'up' || row.state === 'leaving'
}

export function makeView({ readAtMs, shards, members, cutOff }: ViewRows): ClusterView {
  const byName = (a: MemberRow, b: MemberRow): number => (a.member < b.member ? -1 : 1)
  const up = members.filter(({ state }) => state === 'up').sort(byName)
  const live = up.filter(({ incarnation }) => cutOff?.has(incarnation) !== true)
  const wired = up.filter(({ wire }) => wire !== 'down')
  const down = new Set(members.filter(({ wire }) => wire === 'down').map(incarnationOf))
  const living = new Set(members.filter(isAlive).map(incarnationOf))
  return {
    readAtMs,
    shards: new Map(shards.map((row) => [row.shard, row])),
    members: new Map(members.map((row) => [row.member, row])),
    live: () => live,
    isDead: (incarnation) => !living.has(incarnation),
    isCutOff: (incarnation) => cutOff?.has(incarnation) === true,
    saysDown: (incarnation) => down.has(incarnation),
    hasOtherWired: (name) => wired.some(({ member }) => member !== name),
  }
}

function incarnationOf({ incarnation }: MemberRow): string {
  return incarnation
}
