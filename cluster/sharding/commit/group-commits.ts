// The commits of one shard: one group in flight at a time, what became of it, and the groups that
// wait until more has been flushed. Source: PROTOCOL 3.1, 3.2.

import { errorItem } from '../../../protocol/errors.ts'
import { joinEntries } from '../../../protocol/entry/entry.ts'
import type { Group } from '../../../storage/journal.ts'
import type { WireReply } from '../../../protocol/message.ts'
import type { Committing } from './committer.ts'
import { refused } from '../core.ts'
import type { ShardContext } from '../core.ts'
import type { Flusher } from './flusher.ts'
import type { OutputGate } from './output-gate.ts'
import { outcomeUnknown, resolveUnknown } from './unknown.ts'
import type { Resolved, UnknownHost } from './unknown.ts'

/** What its commits have from a shard, and do to it. */
export interface CommitHost extends UnknownHost {
  readonly context: Pick<ShardContext, 'clock' | 'committer' | 'journal' | 'log' | 'newUuid'>
  readonly epoch: number
  readonly gate: OutputGate
  readonly flusher: Pick<Flusher, 'isBehind'>
  moved(): WireReply
  /** The group in flight is in the log. */
  committed(group: Group): void
  /** Lets out the answers that the outcome has freed. */
  release(): void
  /** Back to the committed state. */
  rollBack(reply: WireReply): void
  stepDown(why: string): void
}

export class GroupCommits implements Committing {
  readonly #shard: CommitHost
  #flying: Group | null = null
  /** A copy of the group in flight was sent without an answer. */
  #unsure = false
  /** A group waits until more has been flushed. */
  #throttled = false

  constructor(shard: CommitHost) {
    this.#shard = shard
  }

  /** A group is on its way, and may be in the log. */
  get isFlying(): boolean {
    return this.#flying !== null
  }

  /** The open group may go. */
  ready(): void {
    this.#shard.context.committer.ready(this)
  }

  /** More has been flushed. */
  flushed(): void {
    if (!this.#throttled) return
    this.#throttled = false
    this.ready()
  }

  /** The group in flight is rolled back. */
  drop(): void {
    this.#flying = null
  }

  /** No group goes any more. */
  stop(): void {
    this.#shard.context.committer.forget(this)
  }

  /** Groups wait while too much is committed but not flushed: back-pressure, not memory. */
  takeGroup(): Group | null {
    const { state, gate, flusher, number, epoch, context } = this.#shard
    if (state !== 'serving' && state !== 'sealed') return null
    if (gate.isFlying || !gate.hasOpen) return null
    if (flusher.isBehind) {
      this.#throttled = true
      return null
    }
    const group = gate.take()
    this.#unsure = false
    this.#flying = {
      shard: number,
      epoch,
      head: gate.head,
      count: group.length,
      commitId: context.newUuid(),
      body: joinEntries(group.map((open) => open.bytes)),
    }
    return this.#flying
  }

  onOutcome(outcome: Resolved): void {
    const shard = this.#shard
    const group = this.#flying
    if (group === null) return
    switch (outcome) {
      case 'committed':
        this.#flying = null
        shard.committed(group)
        if (shard.gate.hasOpen) this.ready()
        return
      case 'full': {
        const text = 'the disk is full; nothing was done; free some space and repeat the request'
        shard.rollBack(refused(errorItem('STORAGE_FULL', text)))
        return
      }
      case 'void':
        shard.failHeld(outcomeUnknown())
        shard.rollBack(shard.moved())
        return
      case 'fenced':
        // Refused at its first copy: nothing of it is in.
        if (!this.#unsure) this.#flying = null
        shard.stepDown('another owner has this shard')
        return
      case 'unknown':
        this.#unsure = true
        this.#resolve(group)
    }
  }

  release(): void {
    this.#shard.release()
  }

  #resolve(group: Group): void {
    const shard = this.#shard
    resolveUnknown(shard, group).then(
      (resolved) => {
        if (shard.state === 'stopped') return
        this.onOutcome(resolved)
        shard.release()
      },
      (error: unknown) => {
        shard.context.log.error({ err: error, shard: shard.number }, 'an outcome stays unknown')
        shard.stepDown('the outcome of an append could not be resolved')
      },
    )
  }
}
