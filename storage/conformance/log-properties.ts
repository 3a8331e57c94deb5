// Random histories of a log against the simplest model of one: a list per shard. It stands
// beside the conformance suite, which runs it on every driver. Source: PROTOCOL 3.1, 3.2, 3.7 (I1).

import fc from 'fast-check'
import type { Test } from 'tap'
import type { AppendOutcome, Group } from '../journal.ts'
import { group, type LogUnderTest, type MakeLog } from './journal-samples.ts'

const SHARDS = 2

type Step =
  | { readonly kind: 'claim'; readonly shard: number }
  | {
      readonly kind: 'append'
      readonly shard: number
      readonly count: number
      /** How far epoch and head are from what the model holds. */
      readonly epochBy: number
      readonly headBy: number
    }
  /** The last group of the shard once more. */
  | { readonly kind: 'repeat'; readonly shard: number }
  | { readonly kind: 'trim'; readonly shard: number; readonly upTo: number }

const shard = fc.integer({ min: 0, max: SHARDS - 1 })
const off = fc.oneof({ weight: 6, arbitrary: fc.constant(0) }, fc.constantFrom(-1, 1))
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('claim' as const), shard }) },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('append' as const),
      shard,
      count: fc.integer({ min: 1, max: 3 }),
      epochBy: off,
      headBy: off,
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('repeat' as const), shard }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('trim' as const),
      shard,
      upTo: fc.integer({ min: 0, max: 20 }),
    }),
  },
)

interface ModelShard {
  epoch: number
  head: number
  rows: { offset: number; commitId: string }[]
  last: Group | null
}

/** What the log must answer to these steps, and hold after them. */
export async function logProperties(t: Test, makeLog: MakeLog, histories: number): Promise<void> {
  let runs = 0
  const property = fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
    runs++
    const { log, claim, keepsLast } = await makeLog(t, SHARDS)
    const model: ModelShard[] = []
    // Nobody appends to what he has not claimed.
    for (let i = 0; i < SHARDS; i++) {
      model.push({ epoch: (await claim(i)).epoch, head: 0, rows: [], last: null })
    }
    for (const next of steps) {
      const at = model[next.shard]!
      if (next.kind === 'claim') {
        at.epoch = (await claim(next.shard)).epoch
      } else if (next.kind === 'trim') {
        if (!log.trim) continue
        await log.trim(next.shard, at.epoch, next.upTo)
        const last = keepsLast ? at.rows.at(-1) : undefined
        at.rows = at.rows.filter((row) => row.offset > next.upTo || row === last)
      } else if (next.kind === 'repeat') {
        const isIn = at.rows.some((row) => row.commitId === at.last?.commitId)
        if (isIn && (await log.append([at.last!]))[0] !== 'committed') return false
      } else {
        const { epoch, head } = at
        const sent = group({
          shard: next.shard,
          epoch: Math.max(0, epoch + next.epochBy),
          head: Math.max(0, head + next.headBy),
          count: next.count,
        })
        const isGood = sent.epoch === epoch && sent.head === head
        const wanted: AppendOutcome = isGood ? 'committed' : 'fenced'
        if ((await log.append([sent]))[0] !== wanted) return false
        if (!isGood) continue
        at.head += next.count
        at.last = sent
        at.rows.push({ offset: at.head, commitId: sent.commitId })
      }
    }
    return (await Promise.all(model.map((at, i) => isAs(log, i, at)))).every(Boolean)
  })
  await fc.assert(property, { numRuns: histories })
  t.ok(runs >= histories)
}

async function isAs(log: LogUnderTest['log'], at: number, wanted: ModelShard): Promise<boolean> {
  const rows = await log.read(at, 0, 1e6)
  const { epoch, head } = await log.status(at)
  const found = rows.map(({ offset, commitId }) => ({ offset, commitId }))
  const isSame = JSON.stringify(found) === JSON.stringify(wanted.rows)
  return isSame && epoch === wanted.epoch && head === wanted.head
}
