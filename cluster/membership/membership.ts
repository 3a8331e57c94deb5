// Membership of one process in the cluster: it joins, beats, holds a lease, watches for deaths and
// leaves, one incarnation after another. The control store alone decides who lives. Source:
// PROTOCOL 3.3, 3.5.

import { LIMITS } from '../../config/limits.ts'
import { assert } from '../../protocol/errors.ts'
import { uuidMaker } from '../../protocol/ids.ts'
import type { Log } from '../../protocol/log.ts'
import type { ControlStore, MemberRow, MemberState } from '../../storage/control.ts'
import { NEVER, isWithin } from '../clock.ts'
import type { Moment, World } from '../clock.ts'
import { BeatLoop } from './beat.ts'
import type { BeatSender } from './beat.ts'
import { DeathWatch } from './death-watch.ts'
import type { FormerIncarnations } from './former-incarnations.ts'
import { hedged } from './hedge.ts'
import { takeRow } from './joining.ts'
import { isAlive } from './view.ts'
import type { ClusterView } from './view.ts'
import { OwnWire } from './wire-states.ts'

export interface MembershipOptions {
  readonly control: ControlStore
  /** Name of the member; another process of this name waits until this one is over. */
  readonly member: string
  /** Address of its HTTP service. */
  readonly address: string
  readonly version: string
  readonly world: World
  readonly log: Log
  /** Whether others can be reached over the wire now; absent: always. */
  readonly isWireUp?: () => boolean
  /** What is known of earlier processes of this name; without it each is waited for. */
  readonly former?: FormerIncarnations
  /** Sends the beats; without it they are sent from this thread. */
  readonly beat?: BeatSender
  /**
   * This incarnation is over: every shard is lost, nothing may be answered any more. Called once a
   * incarnation, after `mayServe` has turned false. The next incarnation begins with `join`.
   */
  readonly onLost: (why: string) => void
  /** This member has declared another's incarnation dead: whoever does so clears its inbox. */
  readonly onDeclaredDead?: (row: MemberRow) => void
}

type Listener = (view: ClusterView) => void

export class Membership {
  readonly #options: MembershipOptions
  readonly #beat: BeatSender
  readonly #watch: DeathWatch
  readonly #listeners = new Set<Listener>()
  readonly #newUuid: () => string
  #incarnation: string | null = null
  #joining = false
  #closed = false
  #view: ClusterView | null = null
  /** When the last applied beat was sent. */
  #leaseFrom: Moment = NEVER
  /** What earlier beats have leased, milliseconds. */
  #leasedMs = 0
  #closers: (() => void)[] = []
  #wire = new OwnWire(true)
  #isTelling = false

  constructor(options: MembershipOptions) {
    this.#options = options
    const { control, log, member } = options
    const { clock, random } = options.world
    const makeUuid = uuidMaker(random)
    this.#newUuid = () => makeUuid(clock.nowMs())
    this.#beat = options.beat ?? new BeatLoop({ control, clock, log })
    this.#watch = new DeathWatch({
      control,
      clock,
      log,
      member,
      mayJudge: () => this.mayServe(),
      onView: (view) => this.#saw(view),
      onDeclared: (row) => options.onDeclaredDead?.(row),
    })
  }

  /** UUID of the present incarnation; null between two of them. */
  get incarnation(): string | null {
    return this.#incarnation
  }

  /** The newest view; null before the first. It may be old: `readAtMs` says how old. */
  get view(): ClusterView | null {
    return this.#view
  }

  /** Tells every newer view as it comes, four times a second; returns the way to end that. */
  onView(listener: Listener): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** A view read after this call. Rejects when the engine can't answer. */
  refresh(): Promise<ClusterView> {
    return this.#watch.refresh()
  }

  /**
   * Begins a new incarnation: takes the row of this member's name, beats, and resolves to the
   * incarnation once its first beat is applied. While an earlier process of this name may still be
   * alive, and while the engine is away, it waits. Rejects when it is closed meanwhile.
   */
  async join(): Promise<string> {
    assert(
      this.#incarnation === null && !this.#joining,
      'an incarnation is over before the next begins',
    )
    this.#joining = true
    try {
      this.#watch.start()
      for (;;) {
        this.#mustBeOpen()
        const incarnation = this.#newUuid()
        const { control, world, log, member, address, version, former } = this.#options
        this.#wire = new OwnWire(this.#isWireUp())
        const { said: wire } = this.#wire
        const fixed = { member, address, version, wire }
        const row: MemberRow = { ...fixed, incarnation, state: 'up', beat: 0 }
        const isOver = (): boolean => this.#closed
        const { clock } = world
        const known = former && { former }
        const taken = await takeRow({ control, clock, log, row, isOver, ...known })
        this.#mustBeOpen()
        if (taken && (await this.#firstBeat(incarnation))) return incarnation
      }
    } finally {
      this.#joining = false
    }
  }

  /** Resolves to false when the incarnation was over before its first beat. */
  #firstBeat(incarnation: string): Promise<boolean> {
    const { member } = this.#options
    return new Promise((resolve, reject) => {
      this.#closers.push(() => reject(closed()))
      this.#beat.start(
        { member, incarnation },
        {
          applied: (sent) => {
            // It may have slept: what was seen before its lease was over says nothing of now.
            if (!this.mayServe()) this.#watch.restart()
            this.#leasedMs = this.leasedMs(sent.monotonicMs)
            this.#leaseFrom = sent
            if (this.#incarnation !== null) return
            this.#incarnation = incarnation
            this.#closers = []
            resolve(true)
          },
          failed: () => this.#watch.restart(),
          lost: (why) => {
            const began = this.#incarnation !== null
            this.#closers = []
            this.#end()
            if (!began) resolve(false)
            else this.#options.onLost(why)
          },
        },
      )
    })
  }

  /**
   * Whether an incarnation was seen to beat since this lease began, with reads that didn't pause:
   * only then is something given to it (PROTOCOL 3.8). A row alone may be that of a dead one. False
   * without a lease: this machine may have slept.
   */
  isBeating(incarnation: string): boolean {
    return this.mayServe() && this.#watch.isBeating(incarnation)
  }

  /**
   * True while this incarnation's lease stands: nobody can have declared it dead, so nobody else
   * has committed in its shards. Cheap enough for every read that is released. Needs monotonic
   * clocks whose rates differ by less than a quarter, and a wall clock that is not set back, within
   * one lease, by as much as the machine was suspended.
   */
  mayServe(): boolean {
    return isWithin(this.#options.world.clock, LIMITS.membership.leaseMs, this.#leaseFrom)
  }

  /**
   * Milliseconds for which a lease of this member has stood, on its monotonic clock; never falls.
   * What happens without one counts for nothing: nobody may have been there to declare an edge dead
   * whose machine slept meanwhile.
   */
  leasedMs(atMs: number = this.#options.world.clock.monotonicMs()): number {
    if (this.#leaseFrom === NEVER) return this.#leasedMs
    const sinceMs = atMs - this.#leaseFrom.monotonicMs
    return this.#leasedMs + Math.max(0, Math.min(sinceMs, LIMITS.membership.leaseMs))
  }

  /**
   * Writes that this member leaves: it is nobody's target any more, beats and lease go on. Resolves
   * when the row says so, when this incarnation is over, or after LIMITS.membership.leaveMs.
   */
  async startLeaving(): Promise<void> {
    await this.#write('leaving')
  }

  /**
   * Ends this incarnation: no lease from now on, then the row says `left` and others may take what
   * is left at once. Resolves like `startLeaving`; if the row couldn't be written, others see a
   * death.
   */
  async left(): Promise<void> {
    this.#endLease()
    this.#beat.stop()
    await this.#write('left')
    this.#incarnation = null
  }

  async #write(state: 'leaving' | 'left'): Promise<void> {
    const { control, member, log } = this.#options
    const { clock } = this.#options.world
    const incarnation = this.#incarnation
    if (incarnation === null) return
    const until = clock.monotonicMs() + LIMITS.membership.leaveMs
    let from: MemberState = 'up'
    while (clock.monotonicMs() < until && !this.#closed) {
      const where = { incarnation, state: from }
      const outcome = await this.#soon(() => control.updateMember(member, { state }, where))
      if (outcome === 'applied') return
      const row = await this.#soon(() => control.member(member))
      if (row === undefined || outcome !== 'refused') {
        await new Promise<void>(
          (resolve) => void clock.after(LIMITS.membership.beatRetryMs, resolve),
        )
      }
      if (row === undefined) continue
      const isMine = row?.incarnation === incarnation && row.state !== 'dead'
      if (!isMine || row.state === state || row.state === 'left') return
      from = row.state
    }
    log.warn({ member, state }, 'the row of this member could not be written in time')
  }

  /** Returns one answer, or undefined when none comes in time. */
  #soon<T>(attempt: () => Promise<T>): Promise<T | undefined> {
    const hedge = {
      clock: this.#options.world.clock,
      everyMs: LIMITS.membership.beatAnswerMs,
      times: 1,
    }
    return hedged(hedge, attempt).catch(() => undefined)
  }

  #endLease(): void {
    this.#leasedMs = this.leasedMs()
    this.#leaseFrom = NEVER
  }

  #end(): void {
    this.#endLease()
    this.#incarnation = null
  }

  #isWireUp(): boolean {
    return this.#options.isWireUp?.() ?? true
  }

  /** What this incarnation says of its wire; `wasUp`: it was up once. */
  get wire(): Pick<OwnWire, 'said' | 'wasUp'> {
    return this.#wire
  }

  /** Writes into the row what is said of the wire; until it is there, with each view once more. */
  #tellWire(view: ClusterView): void {
    const { control, member, world, log } = this.#options
    const incarnation = this.#incarnation
    const row = view.members.get(member)
    if (incarnation === null || row?.incarnation !== incarnation || !isAlive(row)) return
    const before = this.#wire.said
    const wire = this.#wire.look(this.#isWireUp(), world.clock.monotonicMs())
    if (wire !== before)
      log.warn({ member, wire }, 'this member tells the others another state of its wire')
    if ((row.wire ?? 'up') === wire || this.#isTelling) return
    this.#isTelling = true
    void this.#soon(() => control.updateMember(member, { wire }, { incarnation })).finally(
      () => (this.#isTelling = false),
    )
  }

  #saw(view: ClusterView): void {
    if (this.#closed) return
    this.#view = view
    this.#tellWire(view)
    for (const listener of this.#listeners) listener(view)
  }

  #mustBeOpen(): void {
    if (this.#closed) throw closed()
  }

  /** Ends everything at once, without a word to anybody: others will see a death. */
  close(): void {
    this.#closed = true
    this.#end()
    this.#beat.close()
    this.#watch.stop()
    for (const close of this.#closers) close()
  }
}

function closed(): Error {
  return new Error('the membership was closed')
}
