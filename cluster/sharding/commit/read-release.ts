// The way out of answers that commit nothing: what they were computed on is committed, and nobody
// else can have committed since. Source: PROTOCOL 3.6.5.

import { errorItem } from '../../../protocol/errors.ts'
import type { WireReply } from '../../../protocol/message.ts'
import type { Maybe } from '../../../storage/journal.ts'
import { refused } from '../core.ts'
import type { ShardContext } from '../core.ts'
import type { OutputGate } from './output-gate.ts'

/** What a read needs of its shard. */
export interface Readable {
  readonly number: number
  readonly epoch: number
  readonly context: Pick<ShardContext, 'mayRead'>
  readonly gate: Pick<OutputGate, 'wait'>
  /** Whether the tenure lasts, as far as this member knows. */
  readonly mayRelease: boolean
  /** "Not mine (any more)", with the owner where it is known. */
  moved(): WireReply
}

/** Releases the answer behind the gate, when the lease allows it then. */
export function releaseRead(
  shard: Readable,
  offset: number,
  reply: WireReply,
  respond: (reply: WireReply) => void,
): void {
  shard.gate.wait(offset, (lost) => {
    if (lost) {
      respond(lost.outcome === 'moved' ? shard.moved() : lost)
      return
    }
    const may: Maybe<boolean> = shard.mayRelease && shard.context.mayRead(shard.number, shard.epoch)
    if (may === true) respond(reply)
    else if (may === false) respond(shard.moved())
    else {
      may.then(
        (yes) => respond(yes && shard.mayRelease ? reply : shard.moved()),
        () => respond(refused(errorItem('UNAVAILABLE', 'the journal is away; try again'))),
      )
    }
  })
}
