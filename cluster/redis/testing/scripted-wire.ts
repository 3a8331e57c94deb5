// A wire beside a Redis that does as it is told, and what it has written there.

import type { Test } from 'tap'
import type { WireReply } from '../../../protocol/message.ts'
import { systemClock } from '../../clock.ts'
import { RecordingInbox, eventually, parcelOf } from '../../testing/wire-conformance.ts'
import { Seal } from '../seal.ts'
import { entryFields, packItem, readEntry, WIRE_FORMAT } from '../entry.ts'
import type { Item } from '../entry.ts'
import { ScriptedRedis } from './scripted-redis.ts'
import { redisWire } from '../wire.ts'

export const soon = (holds: () => boolean): Promise<boolean> => eventually(holds, 30_000)

export const ME = 'me'
export const MINE = `in:${ME}`
export const THERE = 'in:there'
export const ANSWERED: WireReply = { outcome: 'see', actorId: 'x' }
const SECRET = 'of the store'
export const UNSENT = { outcome: 'unsent' }
export const AWAY = { outcome: 'unsent', away: true }

const seal = new Seal({ secret: SECRET, nowMs: () => Date.now() })
export const sealed = (fields: string[]): string[] => seal.close(MINE, fields)

export async function makeWire(t: Test) {
  const redis = await ScriptedRedis.start()
  const clock = systemClock()
  const seen = { reconnects: 0, told: [] as string[], answers: [] as unknown[] }
  /** What waits for the end of the tick, while the test holds it. */
  const ticks = { held: null as (() => void)[] | null }
  const say = (_: object, text: string): void => void seen.told.push(text)
  const wire = redisWire({
    urls: [redis.url],
    secret: SECRET,
    clock: {
      ...clock,
      defer: (run) => (ticks.held ? void ticks.held.push(run) : clock.defer(run)),
    },
    log: { debug: say, info: say, warn: say, error: say },
    onReconnect: () => void seen.reconnects++,
  })
  t.teardown(async () => {
    redis.cut()
    await wire.stop()
    await redis.stop()
  })
  const inbox = new RecordingInbox()
  inbox.reply = null
  await wire.serve(ME, inbox)
  redis.add(THERE, ['v', '0'])
  const send = (to: string, trace = 'test', from = ME): void =>
    wire.send(to, parcelOf(from, trace), (reply) => void seen.answers.push([trace, reply]))
  const answers = (...wanted: unknown[]): Promise<boolean> =>
    soon(() => JSON.stringify(seen.answers) === JSON.stringify(wanted))
  /** Puts an entry of these items into the inbox served here, so long ago. */
  const arrive = (items: readonly Item[], ageMs = 0): void => {
    const copies = items.flatMap((item) => (item.kind === 'parcel' ? [item.copy] : []))
    const id = ageMs === 0 ? undefined : `${redis.nowMs - ageMs}-${1_000 + redis.commands.length}`
    redis.add(MINE, sealed(entryFields('there', copies, items.map(packItem), WIRE_FORMAT)), id)
  }
  const isAtRest = (): boolean => wire.figures.backlogBytes === 0 && wire.figures.unanswered === 0
  return { redis, wire, seen, ticks, inbox, send, answers, arrive, isAtRest }
}

/** What was written to a stream, entry by entry. */
export function written(redis: ScriptedRedis, key: string) {
  return redis.sentTo(key, 'xadd').map((command) => {
    const read = readEntry(command.slice(command.indexOf('*') + 1))
    if (read.state !== 'read') return read.state
    const items = read.items.map((item) => {
      if (item.kind === 'parcel') return item.envelope.trace
      return item.kind === 'notice' ? item.notice.kind : item.copy
    })
    return { from: read.from, items, noMake: command[2] === 'NOMKSTREAM' }
  })
}
