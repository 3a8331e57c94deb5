// A shard in the hands of its owner, for one tenure: takes envelopes, commits groups, hands over
// to the next owner, and steps down when the store says that another has it. Answers are held while
// an append's outcome is unknown or the disk is full. Source: PROTOCOL 3.1-3.16.

import { LIMITS } from '../../config/limits.ts'
import { assert } from '../../protocol/errors.ts'
import type { Envelope, WireReply } from '../../protocol/message.ts'
import { LostTenure } from '../../storage/journal.ts'
import type { AliasRow, ClaimedShard, Group, Tenure } from '../../storage/journal.ts'
import { Account } from './account.ts'
import type { Activation } from './turn/activation.ts'
import type { LoadSource, LoadedEntry } from './turn/loading.ts'
import type { Arrivals } from './turn/arrivals.ts'
import type { Joining, NextOwner, Reservation, ShardContext, ShardState } from './core.ts'
import { Flusher } from './commit/flusher.ts'
import { OutputGate } from './commit/output-gate.ts'
import type { OpenEntry } from './commit/output-gate.ts'
import { GroupCommits } from './commit/group-commits.ts'
import type { CommitHost } from './commit/group-commits.ts'
import { Stash } from './turn/stash.ts'
import { KeyTable } from './keys/keys.ts'
import { SpilledMarks } from './turn/marks.ts'
import type { LastSnapshot, ShardSnapshot } from './recovery/shard-snapshot.ts'
import { Numbers } from './keys/numbers.ts'
import { Outbox } from './commit/outbox.ts'
import { DeadLetters } from './turn/dead-letters.ts'
import { releaseRead } from './commit/read-release.ts'
import { readAhead, recover, relayOlder, storedEntries } from './recovery/recovery.ts'
import type { Ahead, Prefetched } from './recovery/recovery.ts'
import { replayLong } from './recovery/replay.ts'
import { Passivation } from './turn/passivation.ts'
import { Seal } from './handoff/seal.ts'
import { transition } from './states.ts'
import { Suspect } from './turn/suspect.ts'
import type { TurnRunner } from './turn/turns.ts'
import { wire } from './turn/wiring.ts'
import type { WiringHost } from './turn/wiring.ts'

export type { ShardState } from './core.ts'
export type { Prefetched } from './recovery/recovery.ts'

type Respond = (reply: WireReply) => void

/*
 *                                seal()
 *             claim()        ------------->
 *  claiming ----------> serving           sealed     any of them, once: stepDown()
 *     |                   |  <-------------  |       sealed, for the next owner: signedOver()
 *     |                   |     unseal()     |
 *     +-------------------+------------------+--> stopped
 */
export class Shard implements WiringHost, CommitHost {
  readonly number: number
  readonly context: ShardContext
  readonly keys: KeyTable
  readonly numbers: Numbers
  readonly spilled = new SpilledMarks()
  readonly deadLetters = new DeadLetters()
  /** Keys that a turn under way has taken; another that asks for one waits for its end. */
  readonly reserved = new Map<string, Reservation>()
  gate = new OutputGate(0)
  /** Counts how often the speculative state was dropped: a resumed turn of before is void. */
  speculation = 0
  epoch = 0
  outbox: Outbox
  flusher: Flusher
  readonly passivation: Passivation
  readonly turns: TurnRunner
  readonly account: Account
  readonly loadSource: LoadSource
  readonly #arrivals: Arrivals
  readonly #stash: Stash
  readonly #suspect: Suspect
  #state: ShardState = 'claiming'
  readonly #commits: GroupCommits
  /** The control rows issue this shard's epochs; embedded, the store does. */
  #hasTenures = false
  #reclaiming = false
  readonly #seal: Seal
  #nextOwner: NextOwner | null = null

  constructor(number: number, context: ShardContext) {
    const { journal, clock, shards, activationMemory: memory } = context
    this.number = number
    this.context = context
    this.keys = new KeyTable(journal.derived)
    const random = (): number => Number.parseInt(context.newUuid().slice(-12), 16) / 2 ** 48
    this.numbers = new Numbers({ shard: number, shards, derived: journal.derived, random })
    this.#commits = new GroupCommits(this)
    this.account = new Account(this)
    const head = (): number => this.gate.head
    this.passivation = new Passivation({ clock, memory, head })
    this.loadSource = {
      ...storedEntries(journal, number),
      tail: (id) => this.flusher.tail(id),
      alarm: (actor, what) => context.log.error({ actor, shard: number }, what),
    }
    this.outbox = new Outbox(this, 0)
    this.flusher = this.#newFlusher(0)
    const { turns, arrivals } = wire(this)
    this.turns = turns
    this.#arrivals = arrivals
    this.#stash = new Stash(clock, () => this.moved())
    this.#suspect = new Suspect(this, this.#arrivals, () => this.#deliverHeld())
    this.#seal = new Seal(clock)
  }

  get state(): ShardState {
    return this.#state
  }

  #enter(state: ShardState): void {
    this.#state = transition(this.#state, state)
  }

  get activations(): ReadonlyMap<string, Activation> {
    return this.passivation.activations
  }

  clockMs(): number {
    return this.account.clockMs()
  }

  // --- the tenure -------------------------------------------------------------------------

  /** Reads ahead what a claim will need; counts only when handed to that claim. */
  prefetch(): Promise<Prefetched> {
    return readAhead(this.number, this.context)
  }

  /**
   * Takes the shard over and serves: fences every older owner, replays what lies behind flush. What
   * arrives meanwhile waits. `tenure` comes from the control rows; embedded there is none and the
   * store raises the epoch. Rejects with LostTenure when somebody newer has it, else with what the
   * store said; either way this object has stopped, and another attempt needs another Shard.
   */
  async claim(tenure?: Tenure, ahead?: Ahead): Promise<void> {
    assert(this.state === 'claiming' && this.epoch === 0, 'a shard object serves one tenure')
    this.#hasTenures = tenure !== undefined
    try {
      await this.#claim(tenure, ahead)
    } catch (error) {
      this.stepDown('it could not be claimed')
      throw error
    }
  }

  async #claim(tenure: Tenure | undefined, ahead: Ahead | undefined): Promise<void> {
    const claimed = await this.context.journal.log.claim(this.number, tenure)
    this.epoch = claimed.epoch
    this.gate = new OutputGate(claimed.head)
    const left = await replayLong(this, claimed)
    // What was read ahead is of the whole tail.
    const found = await recover(this, left, left === claimed ? ahead : undefined)
    if (this.state !== 'claiming') throw new LostTenure(this.number, this.epoch)
    this.account.inherit(found.snapshot)
    this.outbox = new Outbox(this, found.flush, found.behind)
    this.flusher = this.#newFlusher(found.flush)
    this.#enter('serving')
    this.flusher.replayed(found.tail, found.marks, claimed.head)
    for (const { entry, offset } of found.tail) {
      if (offset > found.snapshot.relayed) this.outbox.committed(entry, offset)
    }
    this.outbox.sees(claimed.head)
    if (found.behind !== null) void relayOlder(this, found.behind, found.flush)
    this.#deliverHeld()
  }

  #newFlusher(flush: number): Flusher {
    return new Flusher({
      shard: this,
      deadLetters: this.deadLetters,
      flush,
      onRefused: (outcome) => {
        // While it is claimed again the store may know the new epoch before the shard does.
        if (outcome === 'fenced' && !this.#reclaiming) this.stepDown('another owner has this shard')
      },
      onDurable: () => this.#commits.flushed(),
    })
  }

  snapshot(offset: number): ShardSnapshot {
    return this.account.at(offset)
  }

  /** For the next owner, once the log is closed where it ends now. */
  lastSnapshot(): LastSnapshot {
    return { memory: this.snapshot(this.gate.head), poisoned: this.deadLetters.all().length > 0 }
  }

  get kept(): ShardSnapshot {
    return this.account.kept
  }

  // --- handoff (PROTOCOL 3.8) -------------------------------------------------------------

  /**
   * While it serves: brings the flush offset that the store has to what is committed now, so that
   * the next owner replays little. Snapshots aren't needed for that: replay is bounded by weight.
   */
  prepareHandoff(): Promise<void> {
    return this.flusher.storedTo(this.gate.head, LIMITS.sharding.handoffPrepareMs)
  }

  /**
   * No more turns, and what has been decided is committed and answered; what arrives, and turns
   * that were under way, are kept for whoever serves next. Resolves to true once nothing is decided
   * any more and no read will be released: it may be signed over. False: it could not be sealed
   * within LIMITS.sharding.sealedHeldMs and serves again, or its tenure is over.
   */
  seal(): Promise<boolean> {
    if (this.state !== 'serving') return Promise.resolve(false)
    this.#enter('sealed')
    this.speculation++
    this.#endReservations()
    // Turns that have not decided begin again later, here or elsewhere: their ids stay the same.
    for (const activation of this.activations.values()) {
      for (const work of this.turns.drop(activation)) this.#stash.addBegun(work)
      if (!activation.loaded) this.passivation.forget(activation)
    }
    const sealed = this.#seal.begin(() => this.unseal())
    this.#seal.look(this.gate)
    return sealed
  }

  /** Called off before a signature has left: serves again, with what it has kept. */
  unseal(): void {
    if (this.state !== 'sealed') return
    this.#enter('serving')
    this.#seal.end(false)
    this.#deliverHeld()
  }

  /** The shard is another tenure's: what was kept is sent there. */
  signedOver(owner: NextOwner): void {
    if (this.state === 'stopped') return
    const isSealed = this.state === 'sealed' && !this.#seal.isPending
    assert(isSealed, 'a shard is sealed, then signed over')
    this.#nextOwner = owner
    this.#stop()
  }

  // --- in ---------------------------------------------------------------------------------

  receive(envelope: Envelope, respond: Respond): void {
    if (this.state === 'serving' && !this.#suspect.isRunning) {
      if (envelope.crashes < LIMITS.sharding.crashesAlone) this.#arrivals.receive(envelope, respond)
      else this.#suspect.receive(envelope, respond)
    } else if (this.state === 'stopped') respond(this.moved())
    else if (envelope.crashes >= LIMITS.sharding.crashesAlone) respond(this.moved())
    else this.#stash.add(envelope, respond)
  }

  #deliverHeld(): void {
    if (this.#stash.size === 0) return
    for (const { envelope, respond } of this.#stash.take()) this.receive(envelope, respond)
  }

  /** "Not mine (any more)", with the owner where it is known. */
  moved(): WireReply {
    const owner = this.#nextOwner
    return { outcome: 'moved', shard: this.number, ...(owner ? { owner } : null) }
  }

  /** The same for what is rolled back: a group on its way may be in the log (PROTOCOL 3.2.2). */
  #rolledBack(): WireReply {
    const moved = this.moved()
    return this.#commits.isFlying ? ({ ...moved, taken: true } as WireReply) : moved
  }

  // --- out --------------------------------------------------------------------------------

  join(joining: Joining): number {
    assert(this.state === 'serving', 'nothing is decided in a shard that is not served')
    const { entry, bytes, activation, state, bases } = joining
    assert(bytes.length <= LIMITS.protocol.entryBytesMax, 'an entry is within its bound')
    const offset = this.gate.newest + 1
    if (entry.g) this.numbers.heard(entry.g, offset)
    const aliases = entry.k ? this.keys.apply(entry, offset, bases) : NO_ALIASES
    let spilled: OpenEntry['spilled'] = []
    let snapshot: OpenEntry['snapshot'] = null
    if (activation) {
      spilled = activation.decided(entry, offset, bytes.length, state)
      if (spilled.length > 0) this.spilled.add(activation.id, spilled, offset)
      snapshot = activation.snapshotDue()
      this.passivation.count(activation)
    }
    const kept = this.gate.keeps(activation) ? state : undefined
    const stateBytes = kept === undefined ? 0 : activation!.stateBytesBound
    const open = { entry, bytes, offset, activation, aliases, spilled, snapshot, waiters: null }
    this.gate.join({ ...open, state: kept, stateBytes })
    if (!this.gate.isFlying) this.#commits.ready()
    return offset
  }

  /** The tenure goes on in a new epoch: what was sent in the old one is false for ever. */
  async reclaim(): Promise<ClaimedShard | null> {
    this.#reclaiming = true
    try {
      const tenure = await this.context.reclaim(this.number)
      if (tenure === null && this.#hasTenures) return null
      const claimed = await this.context.journal.log.claim(this.number, tenure ?? undefined)
      this.epoch = claimed.epoch
      return claimed
    } catch (error) {
      if (error instanceof LostTenure) return null
      throw error
    } finally {
      this.#reclaiming = false
    }
  }

  committed({ body }: Group): void {
    this.account.appended(body.length)
    const group = this.gate.committed()
    const first = group[0]!.offset
    this.context.onCommitted(this.number, group, first, body)
    for (const { entry, offset } of group) this.outbox.committed(entry, offset)
    this.flusher.committed(group)
    for (const { activation } of group) if (activation) this.passivation.settled(activation)
  }

  release(): void {
    this.gate.release()
    this.#seal.look(this.gate)
  }

  /** Until a seal has ended nobody else can have committed: reads of before it may still leave. */
  get mayRelease(): boolean {
    return this.state === 'serving' || this.#seal.isPending
  }

  releaseRead(offset: number, reply: WireReply, respond: Respond): void {
    releaseRead(this, offset, reply, respond)
  }

  /** Answers held while an outcome is unknown for too long (PROTOCOL 3.2.6). */
  failHeld(reply: WireReply): void {
    this.gate.failWaiters(reply)
  }

  unflushed(actorId: string): readonly LoadedEntry[] {
    const open = this.gate.openOf(actorId)
    const tail = this.flusher.tail(actorId)
    return open.length === 0 ? tail : [...tail, ...open]
  }

  // --- going back -------------------------------------------------------------------------

  /** Back to the committed state: what was decided above it never happened. */
  rollBack(reply: WireReply): void {
    this.speculation++
    this.#commits.drop()
    this.#endReservations()
    this.gate.drop(reply)
    this.keys.dropAbove(this.gate.head)
    this.spilled.dropAbove(this.gate.head)
    for (const activation of this.passivation.clear()) this.turns.abandon(activation, reply)
  }

  #endReservations(): void {
    const all = [...this.reserved.values()]
    this.reserved.clear()
    for (const { waiting } of all) for (const wake of waiting) wake(true)
  }

  /** This tenure is over; without a word to the log. Callers are told `moved`. */
  stepDown(why: string): void {
    if (this.state === 'stopped') return
    const served = this.state !== 'claiming'
    this.#stop()
    if (served) this.context.onStepDown(this.number, why)
  }

  #stop(): void {
    this.#enter('stopped')
    this.flusher.stop()
    this.outbox.stop()
    this.#commits.stop()
    this.rollBack(this.#rolledBack())
    this.#stash.answer(this.moved())
    this.#seal.end(false)
  }

  /** Nothing decided, nothing unflushed, nothing on its way out. */
  get quiet(): boolean {
    return (
      !this.gate.hasOpen && !this.gate.isFlying && this.flusher.idle && this.reserved.size === 0
    )
  }

  /** Puts actors to rest (PROTOCOL 3.12); `idle`: looks for them though memory isn't short. */
  sweep(idle = false): void {
    this.passivation.sweep(idle)
  }
}

const NO_ALIASES: readonly AliasRow[] = []
