// The stage of a directed schedule: a small cluster in a kind world, and verbs that take single
// statements out of the engine's hands. A schedule says what happens when. Seeds use the same
// world, and the same checkers judge what it ends in.

import { World } from '../world.ts' // the first: it makes bounds small
import type { SimulatedMember } from '../world.ts'
import { formatUuid, placeOfActor, placeOfKey, shardOf, stampUuid7 } from '../../../protocol/ids.ts'
import { targets } from '../../../cluster/ring.ts'
import { finalState, foldLog } from '../checkers/fold.ts'
import { Clients } from '../clients/clients.ts'
import type { Pending } from '../engines/engine.ts'
import { Faults } from '../faults.ts'
import type { Operation, OperationMessage } from '../clients/operation-history.ts'
import { judge, settle } from '../judge.ts'
import type { LedgerBody } from '../clients/ledger.ts'
import type { Process } from '../scheduler/scheduler.ts'
import { Trace } from '../scheduler/trace.ts'

/** A schedule: what is done to the stage, until it has nothing more to do. */
export type Play = (stage: Stage) => Promise<void>

/** What a file of this folder exports. */
export interface Schedule {
  readonly play: Play
  /** Members keep a graph index. */
  readonly hasGraph?: boolean
}

/** Statements of one process that wait until the schedule lets them land, or be heard. */
export class HeldBack {
  readonly pending: Pending[] = []
  isOver = false

  get first(): Pending {
    const [first] = this.pending
    if (first === undefined) throw new Error('nothing has been held back')
    return first
  }

  /** Nothing more is held back; what is, lands and is heard. */
  release(): void {
    this.isOver = true
    for (const pending of this.pending) void pending.land().then(() => pending.answer())
  }

  /** Nothing more is held back; what is, never happened. */
  forget(): void {
    this.isOver = true
  }
}

export interface AskOptions {
  readonly key?: string
  readonly preview?: boolean
  readonly budgetMs?: number
}

const PATIENCE_MS = 60_000

export class Stage {
  readonly world: World
  readonly clients: Clients
  #ledgers = 0

  constructor(trace: Trace, hasGraph: boolean) {
    this.world = new World({ seed: 1, trace, hasGraph })
    const none = { clients: 0, ledgers: 0, pauseMs: 0, numbers: 0, operationsMax: 0 }
    this.clients = new Clients(this.world, none)
  }

  /** Starts members, and waits until every shard is served where it belongs. */
  async start(...names: readonly string[]): Promise<SimulatedMember[]> {
    const started = names.map((name) => this.world.start(name))
    await this.until('all serve', () => started.every(({ isReady }) => isReady) && this.isServed())
    // Whoever was faster has the shares of the others at first.
    await this.until('all have their share', () => this.isShared())
    return started
  }

  isShared(): boolean {
    const names = this.world.living.map(({ name }) => name)
    const owners = targets([...this.world.engine.state.shards.keys()], names)
    return [...owners].every(([shard, name]) => this.ownerOf(shard)?.name === name)
  }

  isServed(): boolean {
    const { state } = this.world.engine
    return [...state.shards.keys()].every((shard) => this.ownerOf(shard) !== null)
  }

  /** The living member that serves a shard, its row agreeing. */
  ownerOf(shard: number): SimulatedMember | null {
    const row = this.world.engine.state.shards.get(shard)!
    const serves = ({ member }: SimulatedMember): boolean =>
      member.shards.get(shard)?.state === 'serving' &&
      member.ownership.incarnation === row.incarnation
    return this.world.living.find(serves) ?? null
  }

  isDead(name: string): boolean {
    return this.world.engine.state.members.get(name)?.state === 'dead'
  }

  /** Whether a member thinks that it serves a shard. */
  serves({ member }: SimulatedMember, shard: number): boolean {
    return member.shards.get(shard)?.state === 'serving'
  }

  /** A shard that this member serves. */
  shardOf({ member }: SimulatedMember): number {
    for (const [number, { state }] of member.shards) {
      if (number >= 0 && state === 'serving') return number
    }
    throw new Error('it serves none')
  }

  /** UUID of a ledger in a shard. */
  ledgerIn(shard: number): string {
    const bytes = new Uint8Array(16)
    bytes[9] = ++this.#ledgers
    const id = formatUuid(stampUuid7(bytes, Date.UTC(2026, 0, 1), shard))
    if (shardOf(placeOfActor(id), this.world.shards) !== shard) throw new Error('not its shard')
    this.clients.ledgers.push(id)
    return id
  }

  shardOfNumber(number: string): number {
    return shardOf(placeOfKey('ledger', number), this.world.shards)
  }

  /** A number whose key lies in a shard. */
  numberIn(shard: number): string {
    return this.numbersIn(shard)[0]
  }

  /** Two such numbers. */
  numbersIn(shard: number): readonly [string, string] {
    const found: string[] = []
    for (let i = 1; found.length < 2; i++) {
      if (this.shardOfNumber(`N${i}`) === shard) found.push(`N${i}`)
    }
    return [found[0]!, found[1]!]
  }

  /** Who gets a shard when its owner dies. */
  heirOf(shard: number, dead: SimulatedMember): SimulatedMember {
    const left = this.world.living.filter((one) => one !== dead)
    const shards = [...this.world.engine.state.shards.keys()]
    const heir = targets(
      shards,
      left.map(({ name }) => name),
    ).get(shard)
    return left.find(({ name }) => name === heir)!
  }

  /** What the log has of a ledger by now. */
  tokensOf(id: string): readonly string[] {
    return finalState(foldLog(this.world.engine.witness.rows).actors.get(id))?.tokens ?? []
  }

  /** Everything that is committed in the shard has its rows. */
  isFlushed(shard: number): boolean {
    const tenure = this.ownerOf(shard)?.member.shards.get(shard)
    return tenure?.flusher.flushed === tenure?.gate.head && tenure?.flusher.idle === true
  }

  /** Every living member has brought the index to the heads of its shards. */
  isShown(): boolean {
    return this.world.living.every(({ member, index }) =>
      [...member.shards].every(
        ([shard, { gate }]) => shard < 0 || (index?.applied(shard) ?? -1) >= gate.head,
      ),
    )
  }

  /** Holds back what a process writes to the index, until it is let land. */
  holdBulks(process: Process): { readonly count: number; land(): Promise<void> } {
    const held: (() => Promise<unknown>)[] = []
    this.world.search!.onBulk = (of, land) => of === process && held.push(land) > 0
    return {
      get count() {
        return held.length
      },
      async land() {
        for (const land of held) await land()
      },
    }
  }

  /**
   * Starts two members; the first dies with the bulk of its newest change under way, which is held
   * back, and the second takes over.
   */
  async dieInBulk() {
    const [a, b] = await this.start('a', 'b')
    const shard = this.shardOf(a!)
    const id = this.ledgerIn(shard)
    await this.must(a!, id, [['open'], ['append', { token: 't0' }]])
    await this.until('it is shown', () => this.isShown())
    const bulks = this.holdBulks(a!.process)
    await this.must(a!, id, [['append', { token: 't1' }]])
    await this.until('a bulk is under way', () => bulks.count > 0)
    this.world.kill(a!)
    await this.until('b has the shard', () => this.ownerOf(shard) === b)
    return { id, heir: b!, bulks }
  }

  /** Copies of a request that have left an edge. */
  copiesOf({ id }: Operation): number {
    return this.world.redis.copiesOf(`${id}.1`)
  }

  /** Turns that wait for rules wait from now on until the returned function is called. */
  rulesWait(): () => void {
    const wakes: (() => void)[] = []
    this.world.onRules = () => new Promise((resolve) => wakes.push(() => resolve([])))
    return () => {
      this.world.onRules = null
      for (const wake of wakes) wake()
    }
  }

  /** Holds back what a process sends from now on, as far as its text fits. */
  hold(process: Process, text: RegExp, most = Infinity): HeldBack {
    const held = new HeldBack()
    this.world.engine.rules.push((pending) => {
      const fits = pending.process === process && text.test(pending.text)
      if (held.isOver || !fits || held.pending.length >= most) return false
      held.pending.push(pending)
      this.world.say(`holds back ${process.name}: ${pending.text}`)
      return true
    })
    return held
  }

  /** Begins a request over a member; `done` resolves when its client has an answer, or none. */
  ask(
    over: SimulatedMember,
    address: string,
    messages: readonly (readonly [type: string, body?: LedgerBody])[],
    { key, preview = false, budgetMs }: AskOptions = {},
  ): { readonly operation: Operation; readonly done: Promise<void> } {
    const all = messages.map(([type, body]): OperationMessage => ({ type, body: body ?? {} }))
    const what = { client: 'stage', type: 'ledger', address, messages: all }
    const more = { preview, ...(key === undefined ? null : { key }) }
    const operation = this.clients.begin(what, more)
    return { operation, done: this.clients.over(over, operation, budgetMs) }
  }

  /** The same request once more, over the same member or another. */
  repeat(over: SimulatedMember, operation: Operation): Promise<void> {
    return this.clients.over(over, operation)
  }

  /** Asks and waits for the answer, which has to be one. */
  async must(
    over: SimulatedMember,
    address: string,
    messages: readonly (readonly [type: string, body?: LedgerBody])[],
    options: AskOptions = {},
  ): Promise<Operation> {
    const { operation, done } = this.ask(over, address, messages, options)
    await done
    if (operation.outcome !== 'ok') throw new Error(`not answered: ${operation.why}`)
    // What begins at the moment at which this has ended would count as concurrent.
    await this.wait(1)
    return operation
  }

  wait(ms: number): Promise<void> {
    return this.clients.wait(ms)
  }

  /** Waits until something is so; throws when it takes too long. */
  async until(what: string, isSo: () => boolean): Promise<void> {
    const end = this.world.scheduler.nowMs + PATIENCE_MS
    while (!isSo()) {
      if (this.world.scheduler.nowMs > end) throw new Error(`never came: ${what}`)
      await this.wait(1)
    }
  }
}

/** Plays a schedule to its end and has the checkers look at it. */
export async function playDirected(
  { play, hasGraph = false }: Schedule,
  show: ((line: string) => void) | null = null,
): Promise<string[]> {
  const stage = new Stage(new Trace(show), hasGraph)
  const { world, clients } = stage
  let end: { readonly error: unknown } | null = null
  // Begins with the first event, not before.
  world.scheduler.at(0, 'the play', () => {
    play(stage).then(
      () => (end = { error: null }),
      (error: unknown) => (end = { error }),
    )
  })
  await world.scheduler.run(Infinity, () => end !== null)
  const found: string[] = []
  const { error } = end! as { error: unknown }
  if (error !== null) found.push(`the play went otherwise: ${(error as Error).message}`)
  world.engine.rules.length = 0
  new Faults(world, 'still').end()
  found.push(...(await settle(world, clients)))
  return [...found, ...judge(world, clients)]
}
