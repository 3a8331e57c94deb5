// The turn runner: takes the works of a mailbox one after the other, each message of a work once,
// in order; runs decide, plays its calls, and makes an entry of what it decided. Source: PROTOCOL
// 3.6 (owner, steps 2-5), 3.14.

import { LIMITS } from '../../../config/limits.ts'
import { errorItem } from '../../../protocol/errors.ts'
import type { Decision } from '../../../protocol/behaviour.ts'
import { encodeEntry } from '../../../protocol/entry/entry.ts'
import type { Message, WireReply } from '../../../protocol/message.ts'
import type { Maybe } from '../../../storage/journal.ts'
import type { Activation } from './activation.ts'
import type { RuntimeCalls } from './runtime-calls.ts'
import type { OutputGate } from '../commit/output-gate.ts'
import { doubted, type ShardContext } from '../core.ts'
import type { Dedup, Recalled } from './dedup.ts'
import { entryOf, tooLarge } from './entry-maker.ts'
import type { EntryHost } from './entry-maker.ts'
import { isQuestion } from '../keys/holds.ts'
import type { Holds } from '../keys/holds.ts'
import { failure, refusalAt, replyOf, resultFrom } from './message-result.ts'
import { KILLED, deadLetterItem } from './dead-letters.ts'
import { Refusals } from './refusals.ts'
import type { Refusing } from './refusals.ts'
import { turnOf } from './turn-of.ts'
import { outcomeUnknown } from '../commit/unknown.ts'
import { ageOf, messageIdOf, resumed, TurnAgain } from './work.ts'
import type { Work } from './work.ts'

/** What turns have from their shard, and do to it. */
export interface TurnHost extends EntryHost, Refusing {
  readonly context: Pick<ShardContext, 'mayServe' | 'clock' | 'log' | 'hooks' | 'shards'>
  readonly gate: OutputGate
  moved(): WireReply
  releaseRead(offset: number, reply: WireReply, respond: (reply: WireReply) => void): void
}

/** Whom turns ask on their way. */
export interface TurnParts {
  readonly calls: RuntimeCalls
  readonly dedup: Dedup
  readonly holds: Holds
}

export class TurnRunner {
  readonly #shard: TurnHost
  readonly #calls: RuntimeCalls
  readonly #dedup: Dedup
  readonly #holds: Holds
  readonly #refusals: Refusals
  /** Turns that took longer than LIMITS.sharding.turnSlowMs. */
  slow = 0

  constructor(shard: TurnHost, { calls, dedup, holds }: TurnParts) {
    this.#shard = shard
    this.#calls = calls
    this.#dedup = dedup
    this.#holds = holds
    this.#refusals = new Refusals(shard)
  }

  /** Takes in what is for an actor. */
  take(activation: Activation, work: Work): void {
    // A question doesn't stand behind turns: they may wait for who asks.
    const isAsked = isQuestion(work)
    if (isAsked && activation.running !== null) return this.#answerBeside(activation, work)
    if (isAsked) activation.mailbox.unshift(work)
    else activation.mailbox.push(work)
    this.pump(activation)
  }

  /** Runs what waits in the mailbox until it is empty or a turn has to wait. */
  pump(activation: Activation): void {
    while (activation.running === null && activation.loaded && activation.mailbox.length > 0) {
      if (!this.#shard.context.mayServe()) {
        this.abandon(activation, this.#shard.moved())
        return
      }
      const work = activation.mailbox.shift()!
      activation.running = work
      if (work.envelope.preview) {
        work.preview = {
          state: activation.state,
          version: activation.version,
          timeMs: activation.lastTimeMs,
        }
      }
      if (!this.#go(activation, work)) return
      activation.running = null
    }
  }

  /** Goes on with a work; false when it has to wait for an answer. */
  #go(activation: Activation, work: Work): boolean {
    const { messages } = work.envelope
    while (work.i < messages.length && work.refusal === null) {
      const message = messages[work.i]!
      try {
        if (work.generator === null) {
          const ready = this.#begin(activation, work, message)
          if (ready instanceof Promise) {
            work.isLooking = true
            this.#resume(activation, work, ready, (is) => {
              work.isLooking = false
              if (!is) this.#next(work)
            })
            return false
          }
          if (!ready) {
            this.#next(work)
            continue
          }
        }
        const decision = this.#drive(activation, work)
        if (decision === null) return false
        this.#settle(activation, work, message, decision)
      } catch (error) {
        if (error instanceof TurnAgain) {
          this.#again(activation, work, error.until)
          return false
        }
        this.#refusals.failed(activation, work, message, error)
      }
      this.#next(work)
    }
    this.#finish(activation, work)
    return true
  }

  #next(work: Work): void {
    work.isLooking = false
    if (work.generator !== null) {
      const tookMs = this.#shard.context.clock.monotonicMs() - work.startedMs
      if (tookMs > LIMITS.sharding.turnSlowMs) this.slow++
      work.generator = null
      work.input = undefined
      this.#calls.endReservations(work)
    }
    work.i++
  }

  /** Starts the turn of a message; false: the message has its result without one. */
  #begin(activation: Activation, work: Work, message: Message): Maybe<boolean> {
    if (isQuestion(work)) {
      const answered = this.#answerHolds(activation, work)
      return answered instanceof Promise ? answered.then(() => false) : false
    }
    const other = work.i === 0 ? this.#dedup.otherBody(activation, work) : null
    if (other instanceof Promise) {
      return other.then(
        resumed(work, (is) => (is ? this.#alike(work, is) : this.#look(activation, work, message))),
        (error: unknown) => this.#unlooked(activation, work, error),
      )
    }
    return other ? this.#alike(work, other) : this.#look(activation, work, message)
  }

  /** One answer to all that the work has, reads included. */
  #alike(work: Work, { result, gate }: Recalled): false {
    const { messages } = work.envelope
    for (const { type } of messages) work.results.push({ ...result, type })
    work.gate = Math.max(work.gate, gate)
    work.i = messages.length - 1
    return false
  }

  #look(activation: Activation, work: Work, message: Message): Maybe<boolean> {
    if (work.preview !== null || activation.behaviour.isRead(message.type)) {
      const refusal = refusalAt(work)
      if (refusal !== null) {
        work.results.push(refusal)
        return false
      }
      if (work.envelope.crashes < LIMITS.sharding.crashesMax)
        return this.#start(activation, work, message)
      work.results.push(failure(message, [deadLetterItem(messageIdOf(work), KILLED)]))
      return false
    }
    const known = this.#dedup.recall(activation, work)
    if (known instanceof Promise) {
      return known.then(
        resumed(work, (recalled) => this.#startNew(activation, work, message, recalled)),
        (error: unknown) => this.#unlooked(activation, work, error),
      )
    }
    return this.#startNew(activation, work, message, known)
  }

  /**
   * Whether the message took effect before can't be read now: nobody may say that nothing was done.
   * Its edge sends it again.
   */
  #unlooked(activation: Activation, work: Work, error: unknown): false {
    const { log } = this.#shard.context
    log.warn({ err: error, actor: activation.id }, 'could not read whether a message is known')
    const moved: WireReply = { outcome: 'moved', shard: this.#shard.number }
    work.refusal = work.position > 0 ? { ...moved, taken: true } : moved
    return false
  }

  #startNew(activation: Activation, work: Work, message: Message, known: Recalled | null): boolean {
    if (known) {
      if (known.isOther && work.i === 0) return this.#alike(work, known)
      work.results.push(known.result)
      work.keys = known.keys
      work.position = Math.max(work.position, known.offset)
      work.gate = Math.max(work.gate, known.gate)
      return false
    }
    if (activation.quarantined !== null) {
      const text = `this actor can only be read: ${activation.quarantined}`
      this.#refusals.refuse(activation, work, message, [errorItem('QUARANTINED', text)])
      return false
    }
    if (work.envelope.crashes >= LIMITS.sharding.crashesMax) {
      this.#refusals.giveUp(activation, work, message, KILLED)
      return false
    }
    const refusal = refusalAt(work)
    if (refusal !== null) {
      this.#refusals.record(activation, work, refusal)
      return false
    }
    return this.#start(activation, work, message)
  }

  #start(activation: Activation, work: Work, message: Message): true {
    const { clock, hooks } = this.#shard.context
    const from = work.preview ?? activation
    const lastMs = work.preview ? work.preview.timeMs : activation.lastTimeMs
    work.nowMs = Math.max(clock.nowMs(), lastMs)
    work.startedMs = clock.monotonicMs()
    if (work.age === '') work.age = ageOf(clock.nowMs(), activation.id)
    work.keys = NO_KEYS
    const turn = turnOf(activation, work, hooks)
    work.generator = activation.behaviour.decide(from.state, message, turn)
    return true
  }

  /** Runs the generator until it decides; null when an answer has to be waited for. */
  #drive(activation: Activation, work: Work): Decision<unknown> | null {
    for (;;) {
      const step = work.generator!.next(work.input)
      if (step.done) return step.value
      const answer = this.#calls.answer(activation, work, step.value)
      if (answer instanceof Promise) {
        this.#resume(activation, work, answer, (value) => (work.input = value))
        return null
      }
      work.input = answer
    }
  }

  /** Goes on when a promise ends, unless the work was dropped meanwhile. */
  #resume<T>(activation: Activation, work: Work, wait: Promise<T>, use: (value: T) => void): void {
    this.#limit(activation, work)
    const goOn = (): void => {
      if (!this.#go(activation, work)) return
      activation.running = null
      this.pump(activation)
    }
    wait.then(
      resumed(work, (value) => {
        use(value)
        goOn()
      }),
      resumed(work, (error: unknown) => {
        if (error instanceof TurnAgain) {
          this.#again(activation, work, error.until)
          return
        }
        this.#refusals.failed(activation, work, work.envelope.messages[work.i]!, error)
        this.#next(work)
        goOn()
      }),
    )
  }

  #limit(activation: Activation, work: Work): void {
    const { clock } = this.#shard.context
    work.endDeadline ??= clock.after(LIMITS.sharding.turnMs, () => this.#expire(activation, work))
  }

  /** It has waited for too long: it is answered, and the actor goes on. What comes is late. */
  #expire(activation: Activation, work: Work): void {
    const message = work.envelope.messages[work.i]!
    const { trace } = work.envelope
    const fields = { actor: activation.id, message: message.type, trace }
    this.#shard.context.log.warn(fields, 'a turn has waited for too long')
    work.isOver = true
    work.generator?.return(undefined as never)
    if (work.isLooking || isQuestion(work)) work.refusal = outcomeUnknown()
    else this.#refusals.late(activation, work, message)
    this.#next(work)
    this.#finish(activation, work)
    activation.questions.delete(work)
    if (activation.running !== work) return
    activation.running = null
    this.pump(activation)
  }

  /** Gives back what the turn has reserved, so that others can end, and starts it once one has. */
  #again(activation: Activation, work: Work, until: () => Promise<unknown>): void {
    work.generator = null
    work.input = undefined
    this.#calls.giveBack(work)
    this.#resume(activation, work, until(), () => undefined)
  }

  /** A question that came while a turn waits, which may be for the turn that asks. */
  #answerBeside(activation: Activation, work: Work): void {
    const { questions } = activation
    if (!this.#shard.context.mayServe()) return work.respond(this.#shard.moved())
    const finish = (): void => {
      questions.delete(work)
      this.#finish(activation, work)
    }
    const fail = (error: unknown): void => {
      this.#refusals.failed(activation, work, work.envelope.messages[0]!, error)
      finish()
    }
    try {
      const answered = this.#answerHolds(activation, work)
      if (!(answered instanceof Promise)) return finish()
      questions.add(work)
      this.#limit(activation, work)
      answered.then(resumed(work, finish), resumed(work, fail))
    } catch (error) {
      fail(error)
    }
  }

  #answerHolds(activation: Activation, work: Work): Maybe<void> {
    return this.#holds.answer(activation, work, (error) => {
      this.#unlooked(activation, work, error)
    })
  }

  #settle(activation: Activation, work: Work, message: Message, decision: Decision<unknown>): void {
    const result = resultFrom(message, decision)
    if (work.preview || activation.behaviour.isRead(message.type)) {
      if (work.preview && decision.ok) {
        work.preview.state = decision.state
        work.preview.version += decision.records.length
        work.preview.timeMs = work.nowMs
      }
      work.gate = Math.max(work.gate, activation.newest)
      work.results.push(result)
      return
    }
    const entry = entryOf(this.#shard, activation, work, { result, decision })
    const bytes = encodeEntry(entry, activation.behaviour.shapes)
    const state = decision.ok ? decision.state : activation.state
    const over = tooLarge(activation, bytes.length, state)
    if (over !== null) {
      this.#refusals.refuse(activation, work, message, [errorItem('TOO_LARGE', over)])
      return
    }
    this.#shard.join({ entry, bytes, activation, state, bases: work.bases })
    work.position = activation.newest
    work.gate = activation.newest
    work.results.push(result)
  }

  #finish(activation: Activation, work: Work): void {
    work.endDeadline?.()
    if (work.refusal !== null) return work.respond(work.refusal)
    const { number, gate } = this.#shard
    const reply = replyOf(number, activation, work)
    const { respond } = work
    if (work.position > 0 && work.position >= work.gate) {
      const isOne = work.envelope.messages.length === 1
      gate.wait(work.gate, (lost) => respond(lost ? (isOne ? lost : doubted(lost)) : reply))
    } else this.#shard.releaseRead(work.gate, reply, respond)
  }

  /** Answers everything that waits in an activation that is dropped. */
  abandon(activation: Activation, reply: WireReply): void {
    for (const work of this.drop(activation)) {
      const partly = work.position > 0 && work.position <= this.#shard.gate.head
      work.respond(partly ? doubted(reply) : reply)
    }
  }

  /** Ends all works of an activation without an answer, and hands them out, oldest first. */
  drop(activation: Activation): readonly Work[] {
    const { running, mailbox, questions } = activation
    const works = [...questions, ...(running ? [running] : []), ...mailbox]
    for (const work of works) {
      work.isOver = true
      work.endDeadline?.()
      work.generator?.return(undefined as never)
    }
    mailbox.length = 0
    questions.clear()
    activation.running = null
    return works
  }
}

const NO_KEYS: readonly string[] = []
