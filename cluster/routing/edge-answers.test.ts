// What an edge may say of a request whose copies end in any way and order, against a plain model of
// the owners behind it: what is in the log, and which copies can still put something there.
// Source: PROTOCOL 3.6 (edge 3).

import t from 'tap'
import { errorItem } from '../../protocol/errors.ts'
import type { Envelope, MessageResult, Reply, WireReply } from '../../protocol/message.ts'
import { seeded } from '../testing/harness.ts'
import { ledger } from '../testing/ledger.ts'
import { Edge } from './edge.ts'

const ID = '00000000-0000-7000-8000-000000000001'
const BUDGET_MS = 10_000

/** What the turns of one copy come to, where the log doesn't know the message already. */
type Turns = readonly ('done' | 'mistake' | 'away')[]

const TURNS: readonly Turns[] = [
  ['done', 'done', 'done'],
  ['done', 'away', 'away'],
  ['away', 'away', 'away'],
  ['done', 'mistake', 'done'],
  ['mistake', 'away', 'away'],
]

interface Copy {
  readonly to: string
  readonly respond: (reply: WireReply) => void
  hasRun: boolean
  /** What its owner has said, still on its way. */
  reply: WireReply | null
  ended: boolean
}

/** One thing that can happen next. */
type Step = () => void

const FAILURES = {
  mistake: errorItem('INTERNAL_ERROR', 'a mistake of ours'),
  away: errorItem('UNAVAILABLE', 'the shard of a key is away'),
}

class Model {
  readonly copies: Copy[] = []
  readonly log = [false, false, false]
  /** Messages that a copy has told the edge to be done. */
  readonly told = new Set<number>()
  /** A copy was begun, and its answer will never come. */
  isDoubtful = false
  said: Reply | null = null
  /** What could still be done, by copies that had not run, when the edge said it. */
  couldRun = false
  readonly #edge: Edge
  readonly #copiesMax: number
  #incarnation = 1
  #nowMs = 0
  readonly #due: { readonly at: number; readonly run: () => void }[] = []

  constructor(copiesMax: number) {
    this.#copiesMax = copiesMax
    this.#edge = new Edge({
      behaviours: new Map([['ledger', ledger]]),
      shards: 1,
      newUuid: () => ID,
      gather: () => null,
      clock: {
        nowMs: () => this.#nowMs,
        monotonicMs: () => this.#nowMs,
        defer: (run) => run(),
        after: (ms, run) => {
          const due = { at: this.#nowMs + ms, run }
          this.#due.push(due)
          return () => undefined
        },
      },
      route: () => ({ incarnation: `incarnation ${this.#incarnation}`, epoch: this.#incarnation }),
      send: ({ incarnation }, _shard, _envelope, respond) => {
        this.copies.push({ to: incarnation, respond, hasRun: false, reply: null, ended: false })
      },
      deliversOnce: () => false,
      learn: () => undefined,
    })
    this.#edge.send(envelope(), (reply) => {
      this.said = reply
      this.couldRun = this.copies.some((copy) => this.#isWaiting(copy))
    })
  }

  #isWaiting(copy: Copy): boolean {
    return !copy.hasRun && !copy.ended && copy.to === `incarnation ${this.#incarnation}`
  }

  /** All that can happen now, in a fixed order. */
  steps(): readonly Step[] {
    if (this.said !== null) return []
    const steps: Step[] = []
    for (const copy of this.copies) {
      if (this.#isWaiting(copy)) {
        for (const turns of TURNS) steps.push(() => this.#answers(copy, turns))
        steps.push(
          () => this.#replies(copy, { outcome: 'refused', error: errorItem('TOO_BUSY', 'later') }),
          () => this.#replies(copy, { outcome: 'moved', shard: 0 }),
          () => this.#replies(copy, { outcome: 'unsent' }),
          () => this.#movesWithIt(copy, TURNS[0]!),
          () => this.#movesWithIt(copy, []),
          () => this.#dies(copy, TURNS[3]!),
        )
      } else if (copy.reply !== null && !copy.ended) steps.push(() => this.#arrives(copy))
    }
    if (this.isQuiet) return steps
    if (this.copies.length < this.#copiesMax) steps.push(() => this.#edge.resend())
    steps.push(() => this.#dies(null, []))
    return steps
  }

  #run(copy: Copy, turns: Turns): MessageResult[] {
    copy.hasRun = true
    const results: MessageResult[] = []
    for (const i of this.log.keys()) {
      const turn = results.some(isAway) ? 'away' : this.log[i] ? 'done' : turns[i]!
      if (turn === 'done') this.log[i] = true
      results.push(
        turn === 'done'
          ? { type: 'append', success: true, data: i }
          : { type: 'append', success: false, errors: [FAILURES[turn]] },
      )
    }
    return results
  }

  #answers(copy: Copy, turns: Turns): void {
    const results = this.#run(copy, turns)
    const position = this.log.includes(true) ? { shard: 0, offset: this.log.length } : null
    copy.reply = { outcome: 'answered', actorId: ID, keys: [], results, position }
  }

  #replies(copy: Copy, reply: WireReply): void {
    copy.hasRun = true
    copy.reply = reply
  }

  /** Its owner steps down with it in a group that is in the log, or not. */
  #movesWithIt(copy: Copy, turns: Turns): void {
    if (turns.length > 0) this.#run(copy, turns)
    this.isDoubtful = true
    this.#replies(copy, { outcome: 'moved', shard: 0, taken: true })
  }

  /** The owner dies, with one copy in the log of which nobody is told. */
  #dies(copy: Copy | null, turns: Turns): void {
    if (copy) this.#run(copy, turns)
    this.isDoubtful = true
    const incarnation = `incarnation ${this.#incarnation++}`
    for (const one of this.copies) if (one.to === incarnation) one.ended = true
    this.#edge.died(incarnation)
  }

  #arrives(copy: Copy): void {
    copy.ended = true
    const reply = copy.reply!
    if (reply.outcome === 'answered') {
      for (const [i, result] of reply.results.entries()) if (result.success) this.told.add(i)
    }
    copy.respond(reply)
  }

  /** Runs the clock until the edge has sent the next copy or has said something. */
  wait(): void {
    const sent = this.copies.length
    const mayGo = (): boolean => this.said === null && this.copies.length === sent
    while (mayGo()) {
      const due = this.#due.shift()
      if (due === undefined) throw new Error('the edge waits for nothing')
      this.#nowMs = Math.max(this.#nowMs, due.at)
      due.run()
    }
  }

  get isQuiet(): boolean {
    return this.copies.every(({ ended }) => ended)
  }

  /** What is wrong with what the edge has said; null: nothing. */
  get fault(): string | null {
    const { said, log, told, couldRun } = this
    if (said === null) return 'nothing was said'
    if (said.outcome === 'unknown') {
      return this.isDoubtful || !this.isQuiet ? null : 'unknown, though all copies were heard of'
    }
    if (said.outcome === 'refused') {
      if (log.includes(true)) return 'refused, and part of it is in the log'
      return couldRun ? 'refused, and a copy can still run' : null
    }
    for (const [i, result] of said.results.entries()) {
      if (result.success) {
        if (!log[i]) return `message ${i} is said to be done, and is not`
      } else if (log[i]) return `message ${i} is said not to be done, and is in the log`
      else if (couldRun) return `message ${i} is said not to be done, and a copy can still run`
      else if (told.has(i)) return `the answer to message ${i} was thrown away`
    }
    return null
  }
}

function isAway(result: MessageResult): boolean {
  return !result.success && result.errors[0]!.code === 'UNAVAILABLE'
}

function envelope(): Envelope {
  const messages = [0, 1, 2].map(() => ({ type: 'append', body: {} }))
  return {
    messageId: { id: 'id', kind: 'edge' },
    to: { type: 'ledger', id: ID },
    virtual: false,
    copy: 0,
    messages,
    bodyHash: '',
    budgetMs: BUDGET_MS,
    by: '',
    preview: false,
    crashes: 0,
    trace: '',
  }
}

/** Plays one way through; `choose` picks the next step of so many, or -1: time passes. */
function play(copiesMax: number, choose: (many: number) => number): Model {
  const model = new Model(copiesMax)
  for (;;) {
    const steps = model.steps()
    if (model.said !== null) return model
    if (steps.length === 0) {
      model.wait()
      continue
    }
    const chosen = choose(steps.length)
    if (chosen < 0) model.wait()
    else steps[chosen]!()
    // Beyond so many copies only time passes: what is on its way stays there.
    if (model.copies.length > copiesMax) {
      while (model.said === null) model.wait()
    }
  }
}

t.test('all that can become of two copies, in every order', async (t) => {
  // A path is the list of the choices made; the next path is the next list in their order.
  const path: { at: number; readonly of: number }[] = []
  let count = 0
  let fault: string | null = null
  do {
    let depth = 0
    const model = play(2, (of) => {
      if (depth === path.length) path.push({ at: 0, of })
      return path[depth++]!.at
    })
    count++
    if (model.fault !== null) fault = `${model.fault}: ${path.map(({ at }) => at).join(' ')}`
    while (path.length > 0 && path.at(-1)!.at + 1 === path.at(-1)!.of) path.pop()
    if (path.length > 0) path.at(-1)!.at++
  } while (path.length > 0 && fault === null)
  t.equal(fault, null)
  t.ok(count > 5_000, `${count} ways`)
})

t.test('three copies, and time that passes, by chance', async (t) => {
  let fault: string | null = null
  for (let seed = 1; seed <= 20_000 && fault === null; seed++) {
    const chance = seeded(seed)
    const model = play(3, (of) => Math.floor(chance() * (of + 1)) - 1)
    if (model.fault !== null) fault = `${model.fault}: seed ${seed}`
  }
  t.equal(fault, null)
})
