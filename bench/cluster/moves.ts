// `npm run bench -- handoff` and `takeover`: how long a shard is silent when it moves as planned,
// and how long until every shard answers when its owner is killed, under a steady load. Source:
// PROTOCOL 3.8, 4.2 (F24); ARCHITECTURE 8.

import { setTimeout as delay } from 'node:timers/promises'
import { openLoop } from '../load/open-loop.ts'
import { inTurn, post } from '../load/requests.ts'
import { benchOrder, createMessages } from '../orders.ts'
import type { ClusterEngines } from './engines.ts'
import { Members } from './members.ts'
import { pausesMs, ShardWatch } from './shard-watch.ts'

export interface MovesOptions {
  readonly engines: ClusterEngines
  readonly shards: number
  readonly rounds: number
  /** Orders a second beside it. */
  readonly rate: number
  readonly tell: (line: string) => void
}

export interface HandoffRound {
  /** A member joins, or leaves. */
  readonly change: 'join' | 'leave'
  readonly seconds: number
  /** Longest look of each shard, sorted. */
  readonly looksMs: readonly number[]
  /** Of each shard that moved, as the members say: from sealed until it was served; sorted. */
  readonly pausesMs: readonly number[]
  readonly looks: number
  /** Looks and orders that were refused, or lost their connection. */
  readonly failed: number
}

const MEMBERS = 3
/** What began before a move is over by then. */
const AFTER_MS = 500
const VARIETY = 500
const CONNECTIONS = 16

/** As a multiple of the warm-up of one measured run. */
const ENGINES_WARM_UPS = 3

/** A member joins and leaves again, `rounds` times. */
export async function handoffs(
  options: MovesOptions & { readonly warmUpSeconds: number },
): Promise<readonly HandoffRound[]> {
  const members = new Members({ ...options, quotas: null, logLevel: 'info' })
  const done: HandoffRound[] = []
  try {
    await members.add(MEMBERS)
    const watch = await ShardWatch.make(members)
    const load = new Steady(members, options.rate)
    // Engines that have just been started compile for minutes, beside all that is measured.
    await delay(ENGINES_WARM_UPS * options.warmUpSeconds * 1_000)
    watch.start()
    for (let i = 0; i < options.rounds; i++) {
      done.push(await handoff({ members, watch, load, change: 'join' }))
      done.push(await handoff({ members, watch, load, change: 'leave' }))
      for (const round of done.slice(-2)) options.tell(handoffText(round))
    }
    await watch.stop()
    await load.stop()
    return done
  } finally {
    await members.stop()
  }
}

async function handoff(scene: {
  readonly members: Members
  readonly watch: ShardWatch
  readonly load: Steady
  readonly change: 'join' | 'leave'
}): Promise<HandoffRound> {
  const { members, watch, load, change } = scene
  const from = performance.now()
  const sinceMs = Date.now()
  const failedBefore = load.failed
  const before = watch.looks.length
  if (change === 'join') await members.add(1)
  else await members.shrink(MEMBERS)
  const seconds = (performance.now() - from) / 1_000
  await delay(AFTER_MS)
  const looks = watch.looks.slice(before)
  return {
    change,
    seconds,
    looksMs: pausesMs(looks, from),
    pausesMs: members.handoffPausesMs(sinceMs),
    looks: looks.length,
    failed: looks.filter(({ status }) => status !== 200).length + load.failed - failedBefore,
  }
}

export function handoffText(round: HandoffRound): string {
  const { change, seconds, pausesMs: pauses, looks, failed } = round
  return (
    `${change}: ${seconds.toFixed(1)} s, ${pauses.length} shards moved; ` +
    `served by nobody: ${spreadText(pauses)}; ` +
    `longest look of a shard: ${spreadText(round.looksMs)}; ${looks} looks, ${failed} failed`
  )
}

/** Of all rounds together. */
export function handoffsText(rounds: readonly HandoffRound[]): string {
  const all = rounds.flatMap(({ pausesMs: pauses }) => pauses).toSorted((a, b) => a - b)
  return `${all.length} shards moved; served by nobody: ${spreadText(all)}\n`
}

function spreadText(sorted: readonly number[]): string {
  const at = (share: number): string =>
    (sorted[Math.ceil(sorted.length * share) - 1] ?? 0).toFixed(0)
  return `median ${at(0.5)} ms, p99 ${at(0.99)} ms`
}

export interface TakeoverRound {
  /** Members that were left. */
  readonly left: number
  readonly ms: number
  /** From the start of the killed one until it serves with its shards. */
  readonly backMs: number
}

/** One is killed, of three and of two, and started again. */
export async function takeovers(options: MovesOptions): Promise<readonly TakeoverRound[]> {
  const members = new Members({ ...options, quotas: null })
  const done: TakeoverRound[] = []
  try {
    await members.add(MEMBERS)
    const watch = await ShardWatch.make(members)
    for (const count of [MEMBERS, MEMBERS - 1]) {
      if (members.all.length > count) await members.shrink(count)
      for (let i = 0; i < options.rounds; i++) {
        const victim = members.all.pop()!
        await victim.kill()
        const ms = await watch.allAnswer(members.all)
        const began = performance.now()
        await members.add(1)
        const backMs = performance.now() - began
        done.push({ left: count - 1, ms, backMs })
        options.tell(takeoverText(done.at(-1)!))
      }
    }
    return done
  } finally {
    await members.stop()
  }
}

export function takeoverText({ left, ms, backMs }: TakeoverRound): string {
  return (
    `killed, ${left} left: every shard answers over every member after ${ms.toFixed(0)} ms; ` +
    `level again ${backMs.toFixed(0)} ms after its start`
  )
}

/** Creates at a fixed rate over the oldest member, second by second. */
class Steady {
  failed = 0
  readonly #end = new AbortController()
  readonly #running: Promise<void>

  constructor(members: Members, rate: number) {
    this.#running = this.#run(members, rate)
  }

  async #run(members: Members, rate: number): Promise<void> {
    const to = await members.all[0]!.installation.destination()
    const bytes = Array.from({ length: VARIETY }, (_, n) => ({
      kind: 'create' as const,
      bytes: post(to, '/resources/actors/order/new', createMessages(benchOrder(n))),
    }))
    const readings = { started: () => undefined, ended: () => undefined }
    const load = { to, connections: CONNECTIONS, rate, seconds: 1, warmUpSeconds: 0, readings }
    while (!this.#end.signal.aborted) {
      const { failures } = await openLoop({ ...load, next: inTurn(bytes) })
      for (const n of failures.values()) this.failed += n
    }
  }

  async stop(): Promise<void> {
    this.#end.abort()
    await this.#running
  }
}
