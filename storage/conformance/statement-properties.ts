// Random statements on control rows and segments, on a driver and on its twin at once: both must
// give the same outcomes and hold the same. It stands beside the conformance suites of both ports.
// Source: PROTOCOL 3.7.

import fc from 'fast-check'
import type { Test } from 'tap'
import type { ControlStore, MemberState, Outcome } from '../control.ts'
import { NIL_INCARNATION } from '../control.ts'
import { MemoryControl, MemorySegments, newStatementState } from '../memory/statements.ts'
import type { SegmentStore } from '../segments.ts'

export interface Statements {
  readonly control: ControlStore
  readonly segments: SegmentStore
}

/** What a run names things by: names and shards that no other run has. */
export interface RunNames {
  readonly member: (i: number) => string
  readonly shard: (i: number) => number
}

type Step = (on: Statements, names: RunNames) => Promise<Outcome>

const INCARNATIONS = [
  NIL_INCARNATION,
  ...[1, 2, 3].map((i) => NIL_INCARNATION.replace(/.$/, String(i))),
]
const small = fc.integer({ min: 0, max: 3 })
const epoch = fc.integer({ min: 0, max: 2 })
const anyIncarnation = fc.constantFrom(...INCARNATIONS)
const state = fc.constantFrom<MemberState>('up', 'leaving', 'dead', 'left')
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined })

const join = fc.tuple(small, anyIncarnation).map(([i, incarnation]): Step => {
  const rest = { state: 'up', beat: 0, address: 'a', version: '1' } as const
  return ({ control }, names) =>
    control.insertMember({ member: names.member(i % 2), incarnation, ...rest })
})
const change = fc
  .record({
    i: small,
    beat: small,
    next: state,
    incarnation: anyIncarnation,
    was: maybe(state),
    at: maybe(small),
  })
  .map(({ i, beat, next, incarnation, was, at }): Step => {
    const where = {
      incarnation,
      ...(was === undefined ? {} : { state: was }),
      ...(at === undefined ? {} : { beat: at }),
    }
    return ({ control }, names) =>
      control.updateMember(names.member(i % 2), { beat, state: next }, where)
  })
const sign = fc
  .record({ i: small, to: epoch, from: epoch, mine: anyIncarnation, theirs: anyIncarnation })
  .map(({ i, to, from, mine, theirs }): Step => {
    const next = { epoch: to, owner: `owner ${to}`, incarnation: mine }
    const where = { epoch: from, incarnation: theirs }
    return ({ control }, names) => control.updateShard(names.shard(i % 2), next, where)
  })
const hint = fc.tuple(small, small, epoch).map(([i, segment, at]): Step => {
  return ({ control }, names) => control.hintSegment(names.shard(i % 2), segment, { epoch: at })
})
const place = fc.record({ i: small, segment: fc.integer({ min: 1, max: 2 }) })
const open = fc.tuple(place, epoch, small).map(([at, e, head]): Step => {
  return ({ segments }, names) =>
    segments.open({ shard: names.shard(at.i % 2), segment: at.segment }, { epoch: e, head })
})
const fence = fc.tuple(place, epoch).map(([at, e]): Step => {
  return ({ segments }, names) =>
    segments.fence({ shard: names.shard(at.i % 2), segment: at.segment }, e)
})
const seal = fc.tuple(place, epoch, small).map(([at, e, head]): Step => {
  return ({ segments }, names) =>
    segments.seal({ shard: names.shard(at.i % 2), segment: at.segment }, { epoch: e, head })
})
const append = fc
  .record({
    at: place,
    e: epoch,
    head: small,
    count: fc.integer({ min: 1, max: 2 }),
    id: anyIncarnation,
  })
  .map(({ at, e, head, count, id }): Step => {
    return ({ segments }, names) => {
      const body = Buffer.from(`${e} ${head} ${count} ${id}`)
      const shard = names.shard(at.i % 2)
      return segments.append(at.segment, { shard, epoch: e, head, count, commitId: id, body })
    }
  })

const step = fc.oneof(join, change, sign, hint, open, fence, seal, append, append, append)

/** `makeStatements` is asked once: every run has members and shards of its own in it. */
export async function statementProperties(
  t: Test,
  statements: Statements,
  { runs, shards }: { readonly runs: number; readonly shards: number },
): Promise<void> {
  let run = 0
  const outcomes = new Set<string>()
  const property = fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
    const first = (2 * run) % shards
    const names: RunNames = {
      member: (i) => `run ${Math.floor(first / 2)} member ${i}`,
      shard: (i) => first + i,
    }
    run++
    const memory = newStatementState(shards)
    const twin = { control: new MemoryControl(memory), segments: new MemorySegments(memory) }
    for (const one of steps) {
      const [real, wanted] = [await one(statements, names), await one(twin, names)]
      if (real !== wanted) return false
      outcomes.add(real)
    }
    return (await held(statements, names)) === (await held(twin, names))
  })
  // Shrinking would meet what earlier runs have left: a failing run is short enough to read.
  await fc.assert(property, { numRuns: runs, endOnFailure: true })
  t.same([...outcomes].sort(), ['applied', 'refused'], 'both happened')
}

/** All that these names lead to, as text. */
async function held({ control, segments }: Statements, names: RunNames): Promise<string> {
  const all: unknown[] = []
  for (const i of [0, 1]) {
    all.push(await control.member(names.member(i)), await control.shard(names.shard(i)))
    for (const segment of [1, 2]) {
      const of = { shard: names.shard(i), segment }
      const rows = await segments.rows(of, { after: 0, bytesMax: 1e6 })
      all.push(await segments.statics(of))
      all.push(rows.map((row) => ({ ...row, body: Buffer.from(row.body).toString() })))
    }
  }
  return JSON.stringify(all)
}
