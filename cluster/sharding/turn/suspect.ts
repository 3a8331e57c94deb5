// A suspect: a message during which its owner's process has ended twice. It runs alone: what was
// begun in its shard before is committed and answered first, what arrives meanwhile waits, and one
// suspect runs at a time, the others are sent back. So if the process ends again, hardly anything
// but the culprit is outstanding with it, and an innocent one is not given up. Source: PROTOCOL
// 3.11.

import { LIMITS } from '../../../config/limits.ts'
import type { Envelope, WireReply } from '../../../protocol/message.ts'
import type { ShardContext, ShardState } from '../core.ts'
import type { Activation } from './activation.ts'
import type { Arrivals } from './arrivals.ts'
import type { OutputGate } from '../commit/output-gate.ts'

type Respond = (reply: WireReply) => void

/** Between two looks whether what was begun before has ended. */
const LOOK_MS = 5

/** What a suspect looks at before it runs. */
export interface SuspectHost {
  readonly state: ShardState
  readonly context: Pick<ShardContext, 'clock'>
  readonly gate: Pick<OutputGate, 'hasOpen' | 'isFlying'>
  readonly activations: ReadonlyMap<string, Pick<Activation, 'running' | 'mailbox'>>
  moved(): WireReply
}

export class Suspect {
  readonly #shard: SuspectHost
  readonly #arrivals: Pick<Arrivals, 'receive'>
  readonly #onEnd: () => void
  isRunning = false

  /** `onEnd`: others may go on. */
  constructor(shard: SuspectHost, arrivals: Pick<Arrivals, 'receive'>, onEnd: () => void) {
    this.#shard = shard
    this.#arrivals = arrivals
    this.#onEnd = onEnd
  }

  /** Runs it when it may be alone. One that is given up anyway needs no care: it doesn't run. */
  receive(envelope: Envelope, respond: Respond): void {
    if (envelope.crashes >= LIMITS.sharding.crashesMax) {
      this.#arrivals.receive(envelope, respond)
      return
    }
    this.isRunning = true
    this.#whenAlone(this.#shard.context.clock.monotonicMs(), () => {
      if (this.#shard.state !== 'serving') {
        this.#end()
        respond(this.#shard.moved())
        return
      }
      this.#run(envelope, respond)
    })
  }

  /** Others wait for it no longer than they may: a turn that waits itself has done no harm yet. */
  #run(envelope: Envelope, respond: Respond): void {
    let isOver = false
    const end = (): void => {
      if (isOver) return
      isOver = true
      cancel()
      this.#end()
    }
    const cancel = this.#shard.context.clock.after(LIMITS.sharding.sealedHeldMs, end)
    this.#arrivals.receive(envelope, (reply) => {
      respond(reply)
      end()
    })
  }

  #end(): void {
    this.isRunning = false
    if (this.#shard.state === 'serving') this.#onEnd()
  }

  #whenAlone(sinceMs: number, run: () => void): void {
    const { clock } = this.#shard.context
    const isLate = clock.monotonicMs() - sinceMs >= LIMITS.sharding.sealedHeldMs
    if (isLate || this.#shard.state !== 'serving' || this.#isAlone) run()
    else clock.after(LOOK_MS, () => this.#whenAlone(sinceMs, run))
  }

  get #isAlone(): boolean {
    const { gate, activations } = this.#shard
    if (gate.hasOpen || gate.isFlying) return false
    for (const { running, mailbox } of activations.values()) {
      if (running !== null || mailbox.length > 0) return false
    }
    return true
  }
}
