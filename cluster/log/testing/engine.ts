// An engine for tests of the log: segments and control rows in memory whose statements are applied
// without being heard of, lost, or late; an audit of the chain that they leave. Source: PROTOCOL
// 3.2, 3.7 (I1), 4.1 (K4).

import { seeded } from '../../testing/harness.ts'
import type { Outcome } from '../../../storage/control.ts'
import type { Group, LogRow } from '../../../storage/journal.ts'
import type { SegmentId, SegmentStatics, SegmentStore } from '../../../storage/segments.ts'
import {
  MemoryControl,
  MemorySegments,
  newStatementState,
} from '../../../storage/memory/statements.ts'
import type { StatementState } from '../../../storage/memory/statements.ts'
import type { SegmentedLogOptions } from '../segmented-log.ts'

export type StatementKind = 'append' | 'seal' | 'open' | 'fence' | 'hint'
export type ReadKind = 'statics' | 'rows' | 'shard' | 'drop'

/** What becomes of one statement: only of a heard one does its sender learn. */
export type Fate = 'heard' | 'unheard' | 'lost' | 'late'

export interface Engine {
  readonly state: StatementState
  readonly segments: SegmentStore
  readonly control: SegmentedLogOptions['control']
  /** Decides on each statement; heard when it is not set. */
  fate: ((kind: StatementKind, shard: number) => Fate) | null
  /** Waited for before each statement and read, and before its answer. */
  pause: ((kind: StatementKind | ReadKind) => Promise<void>) | null
  /** Changes what a read of rows finds. */
  seen: ((rows: readonly LogRow[], serial: boolean) => readonly LogRow[]) | null
  /** Statements and reads so far, in order. */
  readonly calls: (StatementKind | ReadKind)[]
  /** Statements that may still land; each lands when it is called. */
  readonly late: (() => Promise<unknown>)[]
}

/** A connection of one process to the state. */
export function engine(state: StatementState): Engine {
  const segments = new MemorySegments(state)
  const control = new MemoryControl(state)
  const it: Pick<Engine, 'fate' | 'pause' | 'seen' | 'calls' | 'late'> = {
    fate: null,
    pause: null,
    seen: null,
    calls: [],
    late: [],
  }
  const say = async (
    kind: StatementKind,
    shard: number,
    send: () => Promise<Outcome>,
  ): Promise<Outcome> => {
    it.calls.push(kind)
    await self.pause?.(kind)
    const fate = self.fate?.(kind, shard) ?? 'heard'
    if (fate === 'late') self.late.push(send)
    const outcome = fate === 'heard' || fate === 'unheard' ? await send() : 'unknown'
    await self.pause?.(kind)
    return fate === 'heard' ? outcome : 'unknown'
  }
  const read = async <T>(kind: ReadKind, ask: () => Promise<T>): Promise<T> => {
    self.calls.push(kind)
    await self.pause?.(kind)
    const found = await ask()
    await self.pause?.(kind)
    return found
  }
  const self: Engine = Object.assign(it, {
    state,
    segments: {
      appendsMax: 8,
      statics: (of: SegmentId) => read('statics', () => segments.statics(of)),
      open: (of: SegmentId, first: { readonly epoch: number; readonly head: number }) =>
        say('open', of.shard, () => segments.open(of, first)),
      fence: (of: SegmentId, epoch: number) =>
        say('fence', of.shard, () => segments.fence(of, epoch)),
      seal: (of: SegmentId, where: { readonly epoch: number; readonly head: number }) =>
        say('seal', of.shard, () => segments.seal(of, where)),
      append: (segment: number, group: Group) =>
        say('append', group.shard, () => segments.append(segment, group)),
      rows: (of: SegmentId, range: Parameters<SegmentStore['rows']>[1]) =>
        read('rows', async () => {
          const rows = await segments.rows(of, range)
          return self.seen?.(rows, range.serial ?? false) ?? rows
        }),
      dropRows: (of: SegmentId, upTo: number) => read('drop', () => segments.dropRows(of, upTo)),
    },
    control: {
      shard: (shard: number) => read('shard', () => control.shard(shard)),
      hintSegment: (shard: number, segment: number, where: { readonly epoch: number }) =>
        say('hint', shard, () => control.hintSegment(shard, segment, where)),
    },
  })
  return self
}

export function newState(shards = 2): StatementState {
  return newStatementState(shards)
}

/** The control rows give the shard to somebody: the tenure that is then claimed. */
export async function takeShard(state: StatementState, shard: number, owner: string) {
  const control = new MemoryControl(state)
  const { epoch, incarnation } = await control.shard(shard)
  const to = { epoch: epoch + 1, owner, incarnation: owner }
  await control.updateShard(shard, to, { epoch, incarnation })
  return { epoch: epoch + 1, segment: (await control.shard(shard)).segment }
}

export interface Audit {
  readonly wrong: readonly string[]
  readonly commits: readonly string[]
  readonly segments: readonly SegmentStatics[]
}

/** What one shard's log holds, and what is wrong with it: K4 for logs that were never trimmed. */
export async function audit(state: StatementState, shard: number): Promise<Audit> {
  const store = new MemorySegments(state)
  const wrong: string[] = []
  const commits: string[] = []
  const segments: SegmentStatics[] = []
  let at = 0
  let epoch = 0
  for (let segment = 1; ; segment++) {
    const statics = await store.statics({ shard, segment })
    if (statics === null) break
    const before = segments.at(-1)
    if (before && !before.sealed) wrong.push(`segment ${segment} goes on from one not sealed`)
    if (statics.base !== at) wrong.push(`segment ${segment} begins at ${statics.base}, not ${at}`)
    for (const row of await store.rows({ shard, segment }, { after: 0, bytesMax: Infinity })) {
      if (row.offset - row.count !== at) wrong.push(`a hole behind ${at}`)
      if (row.epoch < epoch) wrong.push(`the epoch falls to ${row.epoch} at ${row.offset}`)
      if (commits.includes(row.commitId)) wrong.push(`commit ${row.commitId} is there twice`)
      commits.push(row.commitId)
      at = row.offset
      epoch = row.epoch
    }
    if (statics.head !== at) wrong.push(`segment ${segment} ends at ${at}, not ${statics.head}`)
    segments.push(statics)
  }
  const hint = state.shards.get(shard)!.segment
  if (hint > segments.length) wrong.push(`the hint ${hint} is past segment ${segments.length}`)
  return { wrong, commits, segments }
}

/** Chooses by weight, seeded. */
export function chooser(seed: number) {
  const chance = seeded(seed)
  return {
    chance,
    below: (n: number): number => Math.floor(chance() * n),
    fate: (bad: number): Fate => {
      if (chance() >= bad) return 'heard'
      return (['unheard', 'lost', 'late'] as const)[Math.floor(chance() * 3)]!
    },
  }
}
