// A shard in the hands of its owner: takes envelopes, finds their actor, commits groups, and
// steps down when the store says that another owns it. States: claiming -> serving -> stopped,
// with `held` while an append's outcome is unknown or the disk is full. It stands between the wire
// and the parts that run turns, hold keys, flush and relay. Source: PROTOCOL 3.1-3.6, 3.16.

import { createHash } from 'node:crypto'
import { LIMITS } from '../../config/limits.ts'
import { assert, errorItem } from '../../protocol/errors.ts'
import { joinEntries } from '../../protocol/entry.ts'
import { formatUuid, placeOfActor, shardOf } from '../../protocol/ids.ts'
import type { Envelope, WireReply } from '../../protocol/message.ts'
import { LostTenure } from '../../storage/journal.ts'
import type { AliasRow, AppendOutcome, Group, Maybe, Tenure } from '../../storage/journal.ts'
import { Activation, load } from './activation.ts'
import type { LoadedEntry } from './activation.ts'
import { isKeyMessage, onKeyMessage } from './claims.ts'
import type { Committing } from './committer.ts'
import { refused } from './core.ts'
import type { Joining, Reservation, ShardContext, ShardCore } from './core.ts'
import { Flusher } from './flusher.ts'
import { NEW_MEMORY } from './memory.ts'
import type { ShardMemory } from './memory.ts'
import { Gate } from './gate.ts'
import type { OpenEntry } from './gate.ts'
import { CREATE_KEY_SUFFIX, KeyTable, holderOf } from './keys.ts'
import { Numbers } from './numbers.ts'
import { Outbox } from './outbox.ts'
import { lostBehind, replayTail } from './recovery.ts'
import { TurnRunner } from './turns.ts'
import { resolveUnknown } from './unknown.ts'
import { makeWork } from './work.ts'

export type ShardState = 'claiming' | 'serving' | 'stopped'

type Respond = (reply: WireReply) => void

/** Where in the shard an envelope goes. */
interface Delivery {
  readonly id: string
  /** Natural key of an actor of the `system` shard. */
  readonly key: string | null
  /** The alias that a create with a caller's key takes, with its present row. */
  readonly createKey?: { readonly key: string; readonly base: AliasRow | null }
}

/** UUID of an actor of the `system` shard, told by type and key (PROTOCOL 3.0). */
export function systemActorId(type: string, key: string): string {
  const hash = createHash('sha256').update(`${type}\0${key}`).digest()
  hash[6] = (hash[6]! & 0x0f) | 0x80
  hash[8] = (hash[8]! & 0x3f) | 0x80
  return formatUuid(hash)
}

export class Shard implements ShardCore, Committing {
  readonly number: number
  readonly context: ShardContext
  readonly keys: KeyTable
  readonly numbers: Numbers
  readonly reserved = new Map<string, Reservation>()
  gate = new Gate(0)
  life = 0
  epoch = 0
  state: ShardState = 'claiming'
  outbox: Outbox
  flusher: Flusher
  readonly activations = new Map<string, Activation>()
  readonly turns: TurnRunner
  /** Creates under way by their key: a second copy goes to the first one's actor. */
  readonly #creating = new Map<string, string>()
  #flying: Group | null = null
  #clockBase = 0
  #clockFrom: number
  #memory: ShardMemory = NEW_MEMORY
  #weight = 0
  #sinceSweep = 0

  constructor(number: number, context: ShardContext) {
    this.number = number
    this.context = context
    this.keys = new KeyTable(context.journal.derived)
    this.numbers = new Numbers(number, context.shards)
    this.turns = new TurnRunner(this)
    this.outbox = new Outbox(number, context, 0)
    this.flusher = this.#newFlusher(0)
    this.#clockFrom = context.clock.monotonicMs()
  }

  clockMs(): number {
    return Math.floor(this.#clockBase + this.context.clock.monotonicMs() - this.#clockFrom)
  }

  /**
   * Takes the shard over and serves: fences every older owner, replays what lies behind flush.
   * `tenure` comes from the control rows; embedded there is none and the store raises the epoch.
   * Rejects with LostTenure when somebody newer has it, else with what the store said; either way
   * this object has stopped, and another attempt needs another Shard.
   */
  async claim(tenure?: Tenure): Promise<void> {
    assert(this.state === 'claiming' && this.epoch === 0, 'a shard object serves one tenure')
    try {
      await this.#claim(tenure)
    } catch (error) {
      this.stepDown('it could not be claimed')
      throw error
    }
  }

  async #claim(tenure: Tenure | undefined): Promise<void> {
    const { log } = this.context.journal
    const claimed = await log.claim(this.number, tenure)
    this.epoch = claimed.epoch
    this.gate = new Gate(claimed.head)
    const found = await replayTail(this, claimed)
    this.#memory = found.memory
    this.#clockBase = found.memory.clockMs
    this.#clockFrom = this.context.clock.monotonicMs()
    this.flusher = this.#newFlusher(claimed.head)
    this.outbox = new Outbox(this.number, this.context, claimed.head)
    if (this.state !== 'claiming') throw new LostTenure(this.number, this.epoch)
    for (const { entry, offset } of found.effects) this.outbox.committed(entry, offset)
    this.state = 'serving'
  }

  #newFlusher(flush: number): Flusher {
    return new Flusher({
      shard: this,
      epoch: this.epoch,
      flush,
      onRefused: (outcome) => {
        if (outcome === 'fenced') this.stepDown('another process owns this store')
      },
    })
  }

  memory(offset: number): ShardMemory {
    this.#memory = {
      ...this.#memory,
      counters: this.numbers.all(),
      clockMs: this.clockMs(),
      relayed: Math.min(this.outbox.relayed, offset),
    }
    return this.#memory
  }

  /** What the trimmer goes by, and its way to say what it did. */
  get kept(): ShardMemory {
    return this.#memory
  }

  trimmed(upTo: number, bytes: number): void {
    const trimmedBytes = this.#memory.trimmedBytes + bytes
    this.#memory = { ...this.#memory, trimmed: upTo, trimmedBytes }
  }

  // --- in ---------------------------------------------------------------------------------

  receive(envelope: Envelope, respond: Respond): void {
    if (this.state !== 'serving') {
      respond({ outcome: 'moved', shard: this.number })
      return
    }
    const behaviour = this.context.behaviours.get(envelope.to.type)
    if ('key' in envelope.to) {
      if (isKeyMessage(envelope)) onKeyMessage(this, envelope, respond)
      else if (behaviour?.home === 'system') {
        const { type, key } = envelope.to
        this.#deliver({ id: systemActorId(type, key), key }, envelope, respond)
      } else this.#byKey(envelope, envelope.to, respond)
    } else if (envelope.virtual && envelope.messageId.kind === 'caller' && !envelope.preview) {
      this.#create(envelope, respond)
    } else this.#deliver({ id: envelope.to.id, key: null }, envelope, respond)
  }

  #byKey(
    envelope: Envelope,
    to: { readonly type: string; readonly key: string },
    respond: Respond,
  ): void {
    const found = (row: AliasRow | null): void => {
      const holder = holderOf(row, this.clockMs())
      if (!holder) {
        const text = `there is no ${to.type} '${to.key}'`
        this.releaseRead(this.gate.newest, refused(errorItem('NOT_FOUND', text)), respond)
      } else if (this.#isMine(holder.actorId)) {
        this.#deliver({ id: holder.actorId, key: null }, envelope, respond)
      } else respond({ outcome: 'see', actorId: holder.actorId })
    }
    this.#looked(this.keys.lookup(to.type, to.key), found, respond)
  }

  #isMine(actorId: string): boolean {
    return shardOf(placeOfActor(actorId), this.context.shards) === this.number
  }

  /**
   * A create with a caller's key: a repeat finds the actor that the first one made, or tried to.
   */
  #create(envelope: Envelope, respond: Respond): void {
    const to = envelope.to as { readonly type: string; readonly id: string }
    const key = envelope.messageId.id
    const underWay = this.#creating.get(key)
    if (underWay !== undefined) {
      this.#deliver({ id: underWay, key: null }, { ...envelope, copy: 1 }, respond)
      return
    }
    const keyType = to.type + CREATE_KEY_SUFFIX
    this.#creating.set(key, to.id)
    const found = (base: AliasRow | null): void => {
      const holder = holderOf(base, this.clockMs())
      if (holder) {
        this.#creating.delete(key)
        this.#deliver({ id: holder.actorId, key: null }, { ...envelope, copy: 1 }, respond)
        return
      }
      const done: Respond = (reply) => {
        this.#creating.delete(key)
        respond(reply)
      }
      this.#deliver({ id: to.id, key: null, createKey: { key, base } }, envelope, done)
    }
    this.#looked(this.keys.lookup(keyType, key), found, (reply) => {
      this.#creating.delete(key)
      respond(reply)
    })
  }

  #looked(row: Maybe<AliasRow | null>, found: (row: AliasRow | null) => void, r: Respond): void {
    if (!(row instanceof Promise)) {
      found(row)
      return
    }
    const { life } = this
    row.then(
      (some) => (this.life === life ? found(some) : r({ outcome: 'moved', shard: this.number })),
      () => r(refused(errorItem('UNAVAILABLE', 'the journal could not be read; try again'))),
    )
  }

  #deliver(to: Delivery, envelope: Envelope, respond: Respond): void {
    const { id, key, createKey } = to
    let activation = this.activations.get(id)
    if (!activation) {
      const behaviour = this.context.behaviours.get(envelope.to.type)!
      activation = new Activation(behaviour, id, key)
      this.activations.set(id, activation)
      if (envelope.fresh && envelope.copy === 0) activation.loaded = true
      else this.#load(activation)
    } else if (activation.behaviour.type !== envelope.to.type) {
      const text = `${id} is not a ${envelope.to.type}`
      respond(refused(errorItem('NOT_FOUND', text)))
      return
    }
    if (activation.mailbox.length >= LIMITS.actorInFlightMax) {
      const text = `this actor has ${LIMITS.actorInFlightMax} requests waiting; try again`
      respond(refused(errorItem('TOO_BUSY', text)))
      return
    }
    const work = makeWork(envelope, respond)
    work.createKey = createKey ?? null
    activation.used = true
    activation.mailbox.push(work)
    this.turns.pump(activation)
    if (++this.#sinceSweep >= SWEEP_EVERY && this.#isCrowded(1)) this.sweep()
  }

  #load(activation: Activation): void {
    const { derived } = this.context.journal
    const { life } = this
    const loading = load(activation, {
      snapshot: (id) => derived.snapshot(id),
      entries: (id, after) =>
        derived.entries(id, { order: 'ascending', after, bytesMax: 1024 * 1024 }),
      tail: (id) => this.flusher.tail(id),
      lostBehind: lostBehind(this),
    })
    if (!(loading instanceof Promise)) return
    loading.then(
      () => {
        if (this.life === life) this.turns.pump(activation)
      },
      (error: unknown) => {
        this.context.log.error({ err: error, actor: activation.id }, 'an actor was not loaded')
        if (this.life !== life) return
        const text = 'the journal could not be read; nothing was done, try again'
        this.turns.abandon(activation, refused(errorItem('UNAVAILABLE', text)))
        this.activations.delete(activation.id)
      },
    )
  }

  // --- out --------------------------------------------------------------------------------

  join(joining: Joining): number {
    const { entry, bytes, activation, state, bases } = joining
    const offset = this.gate.newest + 1
    const aliases = entry.k ? this.keys.apply(entry, offset, bases) : NO_ALIASES
    let spilled: OpenEntry['spilled'] = []
    let snapshot: OpenEntry['snapshot'] = null
    if (activation) {
      spilled = activation.decided(entry, offset, bytes.length, state)
      snapshot = activation.snapshotDue()
      this.#count(activation)
    }
    this.gate.join({ entry, bytes, offset, activation, aliases, spilled, snapshot, waiters: null })
    if (!this.gate.isFlying) this.context.committer.ready(this)
    return offset
  }

  /** Groups wait while too much is committed but not flushed: back-pressure, not memory. */
  takeGroup(): Group | null {
    if (this.state !== 'serving' || this.gate.isFlying || !this.gate.hasOpen) return null
    if (this.flusher.tailBytes > LIMITS.unflushedBytesMax) {
      this.context.clock.after(LIMITS.flushRetryMs, () => this.context.committer.ready(this))
      return null
    }
    const group = this.gate.take()
    this.#flying = {
      shard: this.number,
      epoch: this.epoch,
      head: this.gate.head,
      count: group.length,
      commitId: this.context.newUuid(),
      body: joinEntries(group.map((open) => open.bytes)),
    }
    return this.#flying
  }

  onOutcome(outcome: AppendOutcome): void {
    const group = this.#flying
    if (group === null) return
    if (outcome === 'committed') {
      this.#committed()
      return
    }
    if (outcome === 'full') {
      const text = 'the disk is full; nothing was done; free some space and repeat the request'
      this.rollBack(refused(errorItem('STORAGE_FULL', text)))
      return
    }
    if (outcome === 'fenced') {
      this.stepDown('another owner has this shard')
      return
    }
    resolveUnknown(this, group).then(
      (resolved) => {
        this.onOutcome(resolved)
        this.release()
      },
      (error: unknown) => {
        this.context.log.error({ err: error, shard: this.number }, 'an outcome stays unknown')
        this.stepDown('the outcome of an append could not be resolved')
      },
    )
  }

  #committed(): void {
    const logBytes = this.#memory.logBytes + this.#flying!.body.length
    this.#memory = { ...this.#memory, logBytes }
    this.#flying = null
    const group = this.gate.committed()
    const first = group[0]!.offset
    this.context.onCommitted(
      this.number,
      group.map((open) => open.entry),
      first,
    )
    for (const { entry, offset } of group) this.outbox.committed(entry, offset)
    this.flusher.committed(group)
    for (const { activation } of group) if (activation) this.#settled(activation)
    if (this.gate.hasOpen) this.context.committer.ready(this)
  }

  release(): void {
    this.gate.release()
  }

  releaseRead(offset: number, reply: WireReply, respond: Respond): void {
    this.gate.wait(offset, (lost) => {
      if (lost) {
        respond(lost)
        return
      }
      const may = this.context.mayRead(this.number, this.epoch)
      if (may === true) respond(reply)
      else if (may === false) respond({ outcome: 'moved', shard: this.number })
      else {
        may.then(
          (yes) => respond(yes ? reply : { outcome: 'moved', shard: this.number }),
          () => respond(refused(errorItem('UNAVAILABLE', 'the journal is away; try again'))),
        )
      }
    })
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
    this.life++
    this.#flying = null
    this.#creating.clear()
    this.reserved.clear()
    this.gate.drop(reply)
    const dropped = [...this.activations.values()]
    this.activations.clear()
    this.#weight = 0
    this.keys.dropAbove(this.gate.head)
    for (const activation of dropped) this.turns.abandon(activation, reply)
  }

  stepDown(why: string): void {
    if (this.state === 'stopped') return
    const served = this.state === 'serving'
    this.state = 'stopped'
    this.flusher.stop()
    this.outbox.stop()
    this.context.committer.forget(this)
    this.rollBack({ outcome: 'moved', shard: this.number })
    if (served) this.context.onStepDown(this.number, why)
  }

  /** Nothing decided, nothing unflushed, nothing on its way out. */
  get quiet(): boolean {
    return (
      !this.gate.hasOpen && !this.gate.isFlying && this.flusher.idle && this.reserved.size === 0
    )
  }

  // --- passivation ------------------------------------------------------------------------

  /** Keeps the shard's account of how much memory its activations take. */
  #count(activation: Activation): void {
    const { weight } = activation
    this.#weight += weight - activation.counted
    activation.counted = weight
  }

  #isCrowded(share: number): boolean {
    const parts = this.context.shards + 1
    return (
      this.activations.size > (LIMITS.activationsMax / parts) * share ||
      this.#weight > (LIMITS.activationsBytesMax / parts) * share
    )
  }

  /**
   * An actor that was made and not asked again goes to rest with its commit: most orders come in by
   * the thousand and are next asked for much later. Keeping each for a while would cost more
   * (memory that outlives its generation) than loading the few that are needed.
   */
  #settled(activation: Activation): void {
    if (activation.n > 1 || !activation.isIdle || activation.newest > this.gate.head) return
    if (this.activations.get(activation.id) !== activation) return
    this.activations.delete(activation.id)
    this.#weight -= activation.counted
  }

  /** Puts actors to rest that were not used since they were last looked at, the oldest first. */
  sweep(idle = false): void {
    this.#sinceSweep = 0
    let looked = 0
    for (const [id, activation] of this.activations) {
      if (++looked > LIMITS.sweepMax || (!idle && !this.#isCrowded(0.9))) break
      this.activations.delete(id)
      // Never what has a turn, or is ahead of the log: it could not be loaded again.
      const resting = activation.isIdle && activation.newest <= this.gate.head
      if (resting && !activation.used) this.#weight -= activation.counted
      else {
        if (resting) activation.used = false
        this.activations.set(id, activation)
      }
    }
  }
}

const SWEEP_EVERY = 64
const NO_ALIASES: readonly AliasRow[] = []
