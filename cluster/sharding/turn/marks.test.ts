// Marks against plain lists: what the window knows and for how long, what leaves it, and what is
// known of those that have left until their rows are durable.

import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import fc from 'fast-check'
import { LIMITS } from '../../../config/limits.ts'
import type { Entry } from '../../../protocol/entry/entry.ts'
import { Marks, SpilledMarks, fewestToSpill, markDay, markOf } from './marks.ts'
import type { Mark } from './marks.ts'

const ENTRY: Entry = {
  y: 'ledger',
  p: 'actor',
  v: 3,
  n: 9,
  r: [],
  m: 'id#0',
  l: 1,
  h: 'hash',
  a: { type: 'append', success: true, data: { text: 'ü' } },
  t: 5,
  c: 77,
  b: 'me',
}

function mark(id: string, clock: number, bytes: number, kind: 0 | 1 = 1): Mark {
  const result = { type: 'x', success: true as const }
  return { messageId: id, kind, bodyHash: '', result, n: 1, offset: 1, clock, keys: [], bytes }
}

t.test('what has left the window is held no longer than what is in it', async (t) => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const inWindow = 5
  const marks = new Marks()
  const refs: WeakRef<Mark>[] = []
  for (let i = 0; i < LIMITS.sharding.marksMax; i++) {
    const made = mark(`id${i}`, 0, LIMITS.sharding.marksBytesMax / inWindow)
    refs.push(new WeakRef(made))
    marks.add(made)
  }
  // Nothing that was looked at in this turn is collected.
  await new Promise((resolve) => setImmediate(resolve))
  collect()
  t.equal(marks.size, inWindow)
  const kept = refs.filter((ref) => ref.deref() !== undefined).length
  t.ok(kept <= 2 * inWindow + 1, `${kept} are held`)
})

t.test('whose time is over leaves the window, without a row', async (t) => {
  const marks = new Marks()
  const ttlMs = LIMITS.storage.edgeMarkMs
  for (let i = 0; i < 5; i++) marks.add(mark(`id${i}`, i * 1_000, 100, 0))
  t.same(marks.add(mark('id5', ttlMs + 1_999, 100, 0)), [])
  t.equal(marks.size, 4)
  t.equal(marks.bytes, 400)
  t.equal(marks.spilled, false)
  t.equal(marks.find('id2', ttlMs + 1_999)?.messageId, 'id2')
  marks.add(mark('caller', 10 * ttlMs, 100, 1))
  marks.add(mark('id6', 10 * ttlMs, 100, 0))
  t.equal(marks.size, 2, 'one that lives for long holds up those behind it alone')
})

t.test('a mark says what its entry says', async (t) => {
  const made = markOf(ENTRY, 42, ['A-1'])
  t.match(made, {
    messageId: 'id#0',
    kind: 1,
    bodyHash: 'hash',
    result: ENTRY.a,
    n: 9,
    offset: 42,
    clock: 77,
    keys: ['A-1'],
  })
  const { h: _, ...hashless } = ENTRY
  t.equal(markOf(hashless, 1, []).bodyHash, '')
  t.equal(markOf({ ...ENTRY, l: 0 }, 1, []).kind, 0)
})

t.test('a long answer is left in its entry; the bound is in bytes', async (t) => {
  const sized = (bytes: number, success = true): Entry => {
    const text = 'x'.repeat(bytes - 2)
    if (success) return { ...ENTRY, a: { type: 'x', success: true, data: text } }
    const errors = [{ code: 'X', message: '' }] as never[]
    return { ...ENTRY, a: { type: 'x', success: false, errors } }
  }
  t.not(markOf(sized(LIMITS.sharding.markAnswerBytesMax), 1, []).result, null)
  t.equal(markOf(sized(LIMITS.sharding.markAnswerBytesMax + 1), 1, []).result, null)
  const none = markOf({ ...ENTRY, a: { type: 'x', success: true } }, 1, []).bytes
  t.equal(markOf(sized(100), 1, []).bytes, none + 100)
  t.equal(markOf(sized(LIMITS.sharding.markAnswerBytesMax + 1), 1, []).bytes, none, 'it isn’t here')
  t.ok(markOf(sized(0 + 2, false), 1, []).bytes > none, 'errors weigh as well')
  t.equal(markOf(sized(100), 1, ['ab']).bytes, none + 100 + '["ab"]'.length)
  const many = ['k'.repeat(LIMITS.sharding.markKeysBytesMax)]
  t.match(markOf(sized(100), 1, many), { keys: [], bytes: none + 100 })
})

t.test('an entry that may go with its answer is told apart: refused, and too long', async (t) => {
  const data = 'x'.repeat(LIMITS.sharding.markAnswerBytesMax)
  const long = { ...ENTRY, a: { type: 'x', success: true as const, data } }
  const records = [{}] as never
  t.equal(markOf(long, 1, []).passing, true)
  for (const entry of [ENTRY, { ...ENTRY, r: records }, { ...long, r: records }]) {
    t.notOk('passing' in markOf(entry, 1, []))
  }
})

t.test(
  'with fewer entries than that, and the largest marks there are, none has left',
  async (t) => {
    const data = 'x'.repeat(LIMITS.sharding.markAnswerBytesMax - 2)
    const keys = ['k'.repeat(LIMITS.sharding.markKeysBytesMax - 4)]
    const marks = new Marks()
    for (let n = 1; n <= fewestToSpill(); n++) {
      const entry = { ...ENTRY, m: `m${n}`, a: { type: 'x', success: true as const, data } }
      const largest = markOf(entry, n, keys)
      t.same([largest.result, largest.keys], [entry.a, keys])
      marks.add(largest)
      t.equal(marks.spilled, n === fewestToSpill())
    }
    t.ok(fewestToSpill() <= LIMITS.sharding.marksMax + 1)
  },
)

t.test('how long each kind lives, to the millisecond; the day of a clock', async (t) => {
  const { edgeMarkMs, soleEdgeMarkMs, callerMarkMs } = LIMITS.storage
  for (const [marks, ...times] of [
    [new Marks(), edgeMarkMs, callerMarkMs],
    [new Marks(soleEdgeMarkMs), soleEdgeMarkMs, callerMarkMs],
  ] as const) {
    for (const kind of [0, 1] as const) {
      const made = mark(`of ${kind}`, 50, 1, kind)
      t.ok(marks.isAlive(made, 50 + times[kind] - 1))
      t.notOk(marks.isAlive(made, 50 + times[kind]))
      marks.add(made)
      t.ok(marks.find(made.messageId, 50 + times[kind] - 1))
      t.notOk(marks.find(made.messageId, 50 + times[kind]))
    }
  }
  // Who waits longest for an answer has given up long before it is forgotten.
  t.ok(soleEdgeMarkMs >= 2 * LIMITS.sharding.requestBudgetMs)
  const day = 24 * 3_600_000
  t.same([0, day - 1, day, 3 * day + 5].map(markDay), [0, 0, 1, 3])
})

interface Adding {
  readonly id: number
  readonly kind: 0 | 1
  readonly bytes: number
  readonly afterMs: number
}

t.test('the window against a list: the newest that fit, each found while it lives', async () => {
  const large = Math.floor(LIMITS.sharding.marksBytesMax / 5)
  const adding: fc.Arbitrary<Adding> = fc.record({
    id: fc.nat(25),
    kind: fc.constantFrom(0, 1),
    bytes: fc.constantFrom(
      1,
      100,
      large,
      LIMITS.sharding.marksBytesMax,
      LIMITS.sharding.marksBytesMax + 1,
    ),
    afterMs: fc.constantFrom(0, 1, LIMITS.storage.edgeMarkMs / 2, LIMITS.storage.callerMarkMs / 3),
  })
  fc.assert(
    fc.property(fc.array(adding, { maxLength: 40, size: 'max' }), (all) => {
      const marks = new Marks()
      let window: Mark[] = []
      let clock = 0
      let hasSpilled = false
      for (const { id, kind, bytes, afterMs } of all) {
        clock += afterMs
        // An id comes again only after its time: a repeat within it is not run.
        if (window.some((m) => m.messageId === `m${id}` && marks.isAlive(m, clock))) continue
        const added = mark(`m${id}`, clock, bytes, kind)
        window.push(added)
        const sum = (): number => window.reduce((s, m) => s + m.bytes, 0)
        const left: Mark[] = []
        while (window.length > 1) {
          const oldest = window[0]!
          if (sum() <= LIMITS.sharding.marksBytesMax && marks.isAlive(oldest, clock)) break
          window = window.slice(1)
          if (marks.isAlive(oldest, clock)) left.push(oldest)
        }
        hasSpilled ||= left.length > 0
        const out = marks.add(added)
        if (out.length !== left.length || out.some((m, i) => m !== left[i])) return false
        if (marks.spilled !== hasSpilled || marks.size !== window.length) return false
        if (marks.bytes !== sum()) return false
        const shown = marks.window()
        if (shown.length !== window.length || shown.some((m, i) => m !== window[i])) return false
        for (let n = 0; n <= 25; n++) {
          const newest = window.findLast((m) => m.messageId === `m${n}`)
          const wanted = newest && marks.isAlive(newest, clock) ? newest : null
          if (marks.find(`m${n}`, clock) !== wanted) return false
        }
      }
      return true
    }),
    { numRuns: 300 },
  )
})

t.test('as many as may, over and over: nothing of the oldest is left', async (t) => {
  const marks = new Marks()
  const { marksMax } = LIMITS.sharding
  const count = 4 * marksMax
  let left = 0
  for (let i = 0; i < count; i++) {
    const out = marks.add(mark(`m${i}`, i, 1))
    if (i < marksMax) t.same(out, [])
    else if (out.length !== 1 || out[0]!.messageId !== `m${left++}`) t.fail(`${i}`)
    if (i % 997 !== 0) continue
    const oldest = Math.max(0, i - marksMax + 1)
    t.ok(marks.find(`m${oldest}`, i) && marks.find(`m${i}`, i))
    t.equal(marks.find(`m${oldest - 1}`, i), null)
    t.equal(marks.window()[0]!.messageId, `m${oldest}`)
  }
  t.same([marks.size, marks.bytes, left], [marksMax, marksMax, count - marksMax])
})

t.test('what leaves after its time is not spilled', async (t) => {
  const marks = new Marks()
  const full = LIMITS.sharding.marksBytesMax
  marks.add(mark('edge', 0, full, 0))
  t.same(marks.add(mark('caller', LIMITS.storage.edgeMarkMs, full, 1)), [])
  t.notOk(marks.spilled)
  const [left] = marks.add(
    mark('next', LIMITS.storage.edgeMarkMs + LIMITS.storage.callerMarkMs - 1, full),
  )
  t.equal(left!.messageId, 'caller')
  t.ok(marks.spilled)
})

type Step =
  | { readonly do: 'add'; readonly actor: string; readonly count: number }
  | { readonly do: 'drop' | 'flush'; readonly back: number }

t.test('spilled marks against a list: known until durable, never what did not happen', async () => {
  const actor = fc.constantFrom('a', 'b')
  const count = fc.integer({ min: 1, max: 3 })
  const step: fc.Arbitrary<Step> = fc.oneof(
    { weight: 3, arbitrary: fc.record({ do: fc.constant('add' as const), actor, count }) },
    fc.record({ do: fc.constantFrom('drop' as const, 'flush' as const), back: fc.nat(4) }),
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30, size: 'max' }), (steps) => {
      const spilled = new SpilledMarks()
      const all: { actor: string; mark: Mark; offset: number; isKnown: boolean }[] = []
      const forget = (is: (offset: number) => boolean): void => {
        for (const one of all) if (is(one.offset)) one.isKnown = false
      }
      let offset = 0
      for (const step of steps) {
        if (step.do === 'add') {
          offset++
          const from = all.length
          for (let i = 0; i < step.count; i++) {
            const made = mark(`m${all.length}`, 0, 1)
            all.push({ actor: step.actor, mark: made, offset, isKnown: true })
          }
          const marks = all.slice(from).map(({ mark }) => mark)
          spilled.add(step.actor, marks, offset)
        } else if (step.do === 'drop') {
          offset = Math.max(0, offset - step.back)
          spilled.dropAbove(offset)
          forget((at) => at > offset)
        } else {
          const upTo = offset - step.back
          spilled.flushed(upTo)
          forget((at) => at <= upTo)
        }
        for (const one of all) {
          const found = spilled.find(one.actor, one.mark.messageId)
          if (found !== (one.isKnown ? one.mark : null)) return false
          const other = one.actor === 'a' ? 'b' : 'a'
          if (spilled.find(other, one.mark.messageId) !== null) return false
        }
      }
      return true
    }),
    { numRuns: 300 },
  )
})
