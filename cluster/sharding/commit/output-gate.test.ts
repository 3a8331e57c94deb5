// The output gate against a plain list of entries: what each append carries, and when each answer
// leaves, whatever is committed, dropped or answered without it.

import t from 'tap'
import fc from 'fast-check'
import { LIMITS } from '../../../config/limits.ts'
import type { Entry } from '../../../protocol/entry/entry.ts'
import type { WireReply } from '../../../protocol/message.ts'
import type { Activation } from '../turn/activation.ts'
import { OutputGate } from './output-gate.ts'
import type { OpenEntry } from './output-gate.ts'

const MOVED: WireReply = { outcome: 'moved', shard: 3 }
const LATE: WireReply = { outcome: 'moved', shard: 4 }

function open(offset: number, size: number, actor: string | null = null): OpenEntry {
  return {
    entry: { m: `m${offset}` } as Entry,
    bytes: new Uint8Array(size),
    offset,
    activation: actor === null ? null : ({ id: actor } as Activation),
    aliases: [],
    spilled: [],
    snapshot: null,
    waiters: null,
    state: undefined,
    stateBytes: 0,
  }
}

type Step =
  | { readonly do: 'join'; readonly size: number }
  | { readonly do: 'wait'; readonly back: number }
  | { readonly do: (typeof PLAIN)[number] }

const PLAIN = ['take', 'committed', 'release', 'fail', 'drop'] as const

interface Waiting {
  readonly offset: number
  readonly name: string
}

const size = fc.constantFrom(
  1,
  Math.floor(LIMITS.storage.groupBytesMax / 3),
  LIMITS.storage.groupBytesMax,
  LIMITS.storage.groupBytesMax + 1,
)
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant('join' as const), size }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('wait' as const), back: fc.nat(6) }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constantFrom(...PLAIN) }) },
)

t.test('answers leave with their entries, in order, once; groups keep their bounds', async () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40, size: 'max' }), (steps) => {
      let head = 10
      const gate = new OutputGate(head)
      let flying: number[] = []
      let opened: number[] = []
      let freed: number[] = []
      let waiting: Waiting[] = []
      let taken = 0
      const out: string[] = []
      const wanted: string[] = []
      const answer = (offsets: readonly number[], how: string): void => {
        for (const offset of offsets) {
          for (const w of waiting) if (w.offset === offset) wanted.push(`${w.name} ${how}`)
          waiting = waiting.filter((w) => w.offset !== offset)
        }
      }
      const sizes = new Map<number, number>()
      for (const [i, step] of steps.entries()) {
        switch (step.do) {
          case 'join': {
            const offset = gate.newest + 1
            sizes.set(offset, step.size)
            gate.join(open(offset, step.size))
            opened.push(offset)
            break
          }
          case 'wait': {
            const offset = Math.max(1, gate.newest - step.back)
            const say = (lost: WireReply | null): void =>
              void out.push(`${i} ${lost === null ? 'yes' : (lost as { shard: number }).shard}`)
            if (offset <= head) wanted.push(`${i} yes`)
            else waiting.push({ offset, name: `${i}` })
            gate.wait(offset, say)
            break
          }
          case 'take': {
            if (flying.length > 0) break
            taken++
            let bytes = 0
            while (opened.length > 0 && flying.length < LIMITS.storage.groupEntriesMax) {
              bytes += sizes.get(opened[0]!)!
              if (flying.length > 0 && bytes > LIMITS.storage.groupBytesMax) break
              flying.push(opened.shift()!)
            }
            const group = gate.take().map(({ offset }) => offset)
            if (group.join() !== flying.join()) return false
            break
          }
          case 'committed': {
            const group = gate.committed().map(({ offset }) => offset)
            if (group.join() !== flying.join()) return false
            head += flying.length
            freed.push(...flying)
            flying = []
            break
          }
          case 'release':
            gate.release()
            answer(freed, 'yes')
            freed = []
            break
          case 'fail':
            gate.failWaiters(LATE)
            answer(flying, '4')
            break
          case 'drop':
            gate.drop(MOVED)
            answer([...flying, ...opened], '3')
            flying = []
            opened = []
        }
        const { newest, hasOpen, isFlying } = gate
        if (gate.head !== head || newest !== head + flying.length + opened.length) return false
        if (hasOpen !== opened.length > 0 || isFlying !== flying.length > 0) return false
        if (gate.taken !== taken || out.join() !== wanted.join()) return false
      }
      return true
    }),
    { numRuns: 500 },
  )
})

t.test('two groups may be committed before their answers leave', async (t) => {
  const gate = new OutputGate(0)
  const out: number[] = []
  for (const offset of [1, 2]) {
    gate.join(open(offset, 1))
    for (let i = 0; i < 2; i++) gate.wait(offset, () => out.push(offset))
    gate.take()
    gate.committed()
  }
  t.same(out, [])
  gate.release()
  gate.release()
  t.same(out, [1, 1, 2, 2])
})

t.test('256 entries are one group, and not one more', async (t) => {
  for (const more of [0, 1]) {
    const gate = new OutputGate(0)
    for (let i = 1; i <= LIMITS.storage.groupEntriesMax + more; i++) gate.join(open(i, 1))
    t.equal(gate.take().length, LIMITS.storage.groupEntriesMax)
    t.equal(gate.hasOpen, more === 1)
  }
})

t.test('bytes of what was taken count no more', async (t) => {
  const gate = new OutputGate(0)
  const half = LIMITS.storage.groupBytesMax / 2
  for (let i = 1; i <= 3; i++) gate.join(open(i, half))
  t.equal(gate.take().length, 2)
  gate.committed()
  gate.join(open(gate.newest + 1, half))
  t.equal(gate.take().length, 2, 'the third and the fourth fit')
  gate.committed()
  for (let i = 0; i < 2; i++) gate.join(open(gate.newest + 1, half))
  gate.drop(MOVED)
  for (let i = 0; i < 2; i++) gate.join(open(gate.newest + 1, half))
  t.equal(gate.take().length, 2, 'nor of what was dropped')
})

t.test('entries join in their order; an answer waits for what was decided', async (t) => {
  const gate = new OutputGate(4)
  t.throws(() => gate.join(open(4, 1)))
  t.throws(() => gate.join(open(6, 1)))
  t.throws(() => gate.wait(5, () => undefined))
  gate.join(open(5, 1))
  gate.take()
  t.throws(() => gate.take(), 'one append in flight')
})

t.test('what an actor has on its way, the flying first', async (t) => {
  const gate = new OutputGate(0)
  t.same(gate.openOf('a'), [])
  for (const [i, actor] of ['a', 'b', null, 'a'].entries()) gate.join(open(i + 1, i + 1, actor))
  gate.take()
  t.equal(gate.openOf('a').length, 2, 'while nothing is open')
  gate.join(open(5, 5, 'b'))
  gate.join(open(6, 6, 'a'))
  const of = (actor: string): readonly (readonly [number, number])[] =>
    gate.openOf(actor).map(({ offset, body }) => [offset, body.length])
  t.same(of('a'), [
    [1, 1],
    [4, 4],
    [6, 6],
  ])
  t.same(of('b'), [
    [2, 2],
    [5, 5],
  ])
  gate.committed()
  t.same(of('a'), [[6, 6]])
})

t.test('what is committed while answers leave has its own answers, once', async (t) => {
  const gate = new OutputGate(0)
  const told: number[] = []
  const commit = (offset: number, then: () => void): void => {
    gate.join(open(offset, 1))
    gate.wait(offset, () => {
      told.push(offset)
      then()
    })
    gate.take()
    gate.committed()
  }
  commit(1, () => {
    if (told.length > 1) return
    commit(2, () => undefined)
    gate.release()
  })
  gate.release()
  gate.release()
  t.same(told, [1, 2])
})
