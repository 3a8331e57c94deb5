// One member's placement over rows that a test writes, for tests of what it makes of them: its
// shards do as they are told, the other members are rows that beat.

import type { Test } from 'tap'
import { seeded } from '../../testing/harness.ts'
import type { Inbox, Notice, Wire } from '../../wire.ts'
import { Placement } from '../placement.ts'
import { FakeHost, QUIET, makeRows } from './fake-host.ts'

const INBOX: Inbox = { receive: () => undefined, hear: () => undefined }
/** Between two looks of a member at the rows. */
export const LOOK_MS = 250

function drawn(seed: number): (bytes: Uint8Array) => void {
  const chance = seeded(seed)
  return (bytes) => {
    for (let i = 0; i < bytes.length; i++) bytes[i] = Math.floor(chance() * 256)
  }
}

/** The other members go on beating, but for those that are still. */
function beatOthers(rows: ReturnType<typeof makeRows>, silent: ReadonlySet<string>): void {
  const { members } = rows.state
  for (const row of members.values()) {
    const lives = row.member !== 'me' && (row.state === 'up' || row.state === 'leaving')
    if (lives && !silent.has(row.member)) members.set(row.member, { ...row, beat: row.beat + 1 })
  }
  rows.clock.after(LOOK_MS, () => beatOthers(rows, silent))
}

export function makePlacement(t: Test, shards = 3, log = QUIET) {
  const host = new FakeHost()
  const rows = makeRows(shards)
  const { clock, state } = rows
  const random = drawn(7)
  const told: (readonly [readonly string[], Notice, string])[] = []
  const wired: string[] = []
  let serving: Promise<void> | undefined
  const wire: Wire & { isUp: boolean } = {
    isUp: true,
    serve(incarnation) {
      wired.push(`serve ${incarnation}`)
      return serving
    },
    send: () => undefined,
    tell: (to, notice, from) => void told.push([to, notice, from]),
    close: (incarnation) => void wired.push(`close ${incarnation}`),
  }
  const placement = new Placement({
    control: rows.control,
    wire,
    world: { clock, random },
    log,
    member: 'me',
    address: 'http://me',
    version: '1',
    host,
    inbox: INBOX,
  })
  const silent = new Set<string>()
  beatOthers(rows, silent)
  const world = {
    placement,
    wire,
    host,
    rows,
    clock,
    told,
    wired,
    /** Names of those whose rows say `up`, and nobody beats there. */
    silent,
    owner: (shard: number, member: string, epoch: number) =>
      rows.set(shard, { owner: member, incarnation: `inc-${member}`, epoch }),
    /** Time goes on until it holds. */
    async until(what: string, holds: () => boolean, ms = 20_000): Promise<void> {
      for (let at = 0; !holds(); at += 25) {
        if (at > ms) throw new Error(`not within ${ms} ms: ${what}`)
        await clock.advance(25)
      }
    },
    async start(): Promise<void> {
      const starting = placement.start()
      await world.until('it takes part', () => placement.incarnation !== '')
      await starting
    },
    /** Inboxes are there only when this has come. */
    serveAfter: (opened: Promise<void>): void => void (serving = opened),
    /** Two looks are over. */
    look: () => clock.advance(2 * LOOK_MS),
    /** Everything is another's, which lives. */
    async startBeside(): Promise<void> {
      rows.member('other', 'inc-other', 'up')
      for (const shard of state.shards.keys()) world.owner(shard, 'other', 4)
      await world.start()
      await world.look()
      host.did.length = 0
      told.length = 0
    },
    serves: (shard: number): boolean => host.shards.get(shard)?.state === 'serving',
  }
  t.teardown(() => placement.stop())
  return world
}
