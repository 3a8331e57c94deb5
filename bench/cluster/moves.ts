// `npm run bench -- handoff` and `takeover`: how long a shard is silent when it moves as planned,
// and how long until every shard answers when its owner is killed, under a steady load. They stand
// between the members and the figures. Source: PROTOCOL 3.8, 4.2 (F24); ARCHITECTURE 8.

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
  readonly pausesMs: readonly number[]
  /** What the members say: p99 of the time that a shard was sealed. */
  readonly sealedP99Ms: number
  readonly looks: number
  /** Looks and orders that were refused, or lost their connection. */
  readonly failed: number
}

const MEMBERS = 3
/** What began before a move is over by then. */
const AFTER_MS = 500
const VARIETY = 500
const CONNECTIONS = 16

/** A member joins and leaves again, `rounds` times. */
export async function handoffs(options: MovesOptions): Promise<readonly HandoffRound[]> {
  const members = new Members({ ...options, quotas: null })
  const done: HandoffRound[] = []
  try {
    await members.add(MEMBERS)
    const watch = await ShardWatch.make(members)
    const load = new Steady(members, options.rate)
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
  const failedBefore = load.failed
  const before = watch.looks.length
  if (change === 'join') await members.add(1)
  else await members.shrink(MEMBERS)
  const seconds = (performance.now() - from) / 1_000
  await delay(AFTER_MS)
  const looks = watch.looks.slice(before)
  const sealed = await Promise.all(
    members.all.map(async ({ installation }) => {
      return (await installation.metrics())?.get('kontor_handoff_pause_seconds_p99') ?? 0
    }),
  )
  return {
    change,
    seconds,
    pausesMs: pausesMs(looks, from),
    sealedP99Ms: Math.max(...sealed) * 1_000,
    looks: looks.length,
    failed: looks.filter(({ status }) => status !== 200).length + load.failed - failedBefore,
  }
}

export function handoffText({ change, seconds, pausesMs: all, ...rest }: HandoffRound): string {
  const at = (share: number): string => (all[Math.floor((all.length - 1) * share)] ?? 0).toFixed(0)
  return (
    `${change}: ${seconds.toFixed(1)} s; longest look of a shard: median ${at(0.5)} ms, ` +
    `p99 ${at(0.99)} ms; sealed p99 ${rest.sealedP99Ms.toFixed(0)} ms; ` +
    `${rest.looks} looks, ${rest.failed} failed`
  )
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
