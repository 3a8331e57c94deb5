// A store that is written to, gives room back and is harmed, beside the plainest oracle: a list of
// what was written. For the tests of the log's upkeep.

import { cpSync, rmSync, statSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import type { Test } from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import { overrideLimits } from '../../../config/testing/override-limits.ts'
import { decodeEntry, encodeEntry, isErased } from '../../../protocol/entry/entry.ts'
import { joinEntries, splitEntries, type Entry } from '../../../protocol/entry/entry.ts'
import { freshUuid, group } from '../../conformance/journal-samples.ts'
import type { DerivedRow, EntryRow } from '../../journal.ts'
import { DATA_FILE } from '../../lmdb/environment.ts'
import { LOG_FOLDER, openEmbeddedJournal } from '../journal/journal.ts'
import type { EmbeddedJournal, EmbeddedJournalOptions } from '../journal/journal.ts'
import { verifyLog } from '../verify/store.ts'
import { randomFrom } from './damaged-store.ts'
import { journalOptions, optionsIn } from './journal-options.ts'

export const HOUR_MS = 3_600_000
export const EXPIRY_MS = LIMITS.storage.derivedTtlSeconds * 1_000 + HOUR_MS
const SHARDS = 2

/** Files are small, and every one of them is worked at in many steps. */
export function smallSteps(t: Test): void {
  t.teardown(
    overrideLimits({
      'lmdb.tailTransactions': 0,
      'lmdb.derivedWaitMs': 1,
      'lmdb.turnRowsMax': 3,
      'embedded.upkeepStepBytes': 700,
      'embedded.rewriteFrameBytes': 1_500,
      'embedded.erasedEntriesMax': 20,
    }),
  )
}

export interface Written {
  readonly shard: number
  readonly offset: number
  readonly actorId: string
  readonly n: number
  readonly body: Buffer
  /** Shard's clock, where it may go. */
  readonly passesAt: number | null
  /** Of one behind which its actor is forgotten. */
  readonly passesFrom?: number
}

/** An actor that is forgotten after its end. */
interface Mortal {
  readonly id: string
  readonly shard: number
  readonly written: Written[]
  version: number
  /** 0: it lives. */
  forgottenFrom: number
  /** What its end says. */
  endsFrom: number
}

/** A store that is written to, and what was. */
export class World {
  readonly t: Test
  readonly options: EmbeddedJournalOptions
  readonly written: Written[] = []
  clock = 1_000 * HOUR_MS
  /** Share of entries of actors that are forgotten after their end. */
  mortals = 0
  /** Their end is told to nobody yet: effects of before have not been taken. */
  isRelayStuck = false
  readonly #mortals: Mortal[] = []
  /** Between two steps of the upkeep. */
  onPause: () => void = () => {}
  journal!: EmbeddedJournal
  readonly #draw: () => number
  /** Of the group that is being made. */
  #waiting: Written[] = []
  readonly #heads = [0, 0]
  readonly #epochs = [0, 0]
  readonly #actors: { id: string; n: number; version: number; shard: number }[] = []
  readonly freed = { bytes: 0, files: 0 }

  constructor(t: Test, seed: number, segmentBytes: readonly number[] = [4_096, 8_192, 16_384]) {
    this.t = t
    this.#draw = randomFrom(seed)
    const pause = async (): Promise<void> => {
      this.onPause()
      await turn()
    }
    this.options = { ...journalOptions(t), shards: SHARDS, segmentBytes, pause }
  }

  get draw(): () => number {
    return this.#draw
  }

  async open(): Promise<void> {
    this.journal = await openEmbeddedJournal(this.options)
    for (let shard = 0; shard < SHARDS; shard++) {
      const { epoch, head } = await this.journal.log.claim(shard)
      this.t.equal(head, this.#heads[shard])
      this.#epochs[shard] = epoch
    }
  }

  async reopen(): Promise<void> {
    await this.journal.close()
    await this.open()
  }

  /** The next entry of one: it begins, goes on, ends, or refuses what is told to it later. */
  #mortalEntry(shard: number, offset: number): Written {
    const own = this.#mortals.filter((one) => one.shard === shard)
    let mortal = own[Math.floor(this.#draw() * own.length)]
    if (mortal === undefined || this.#draw() < 0.4) {
      mortal = { id: freshUuid(), shard, written: [], version: 0, forgottenFrom: 0, endsFrom: 0 }
      this.#mortals.push(mortal)
    }
    const { id, written, version } = mortal
    // What was forgotten begins with its first number again.
    const there = written.filter((one) => this.#isThere(one))
    const n = (there.at(-1)?.n ?? 0) + 1
    const isOver = mortal.forgottenFrom > 0
    const ends = !isOver && version > 0 && this.#draw() < 0.5
    if (isOver || ends) {
      const from = this.clock + Math.floor(this.#draw() * 20) * HOUR_MS
      mortal.forgottenFrom = Math.max(mortal.forgottenFrom, isOver ? this.clock : from)
      if (ends) mortal.endsFrom = mortal.forgottenFrom
    }
    const passing = mortal.forgottenFrom > 0 ? { f: mortal.forgottenFrom } : null
    const text = `${id} ${'x'.repeat(Math.floor(this.#draw() * 600))}`
    const body = encodeEntry({
      ...{ y: 'mortal', p: id, v: there.length === 0 ? 0 : version, n, m: freshUuid(), l: 0, t: 0 },
      ...{ c: this.clock, b: text, ...passing, ...(isOver && { s: [7, offset, 0] }) },
      r: isOver ? [] : ([{ type: ends ? 'ended' : 'changed', data: text }] as never),
      a: { type: 'change', success: !isOver, ...(isOver && { errors: [] }) },
    } as unknown as Entry)
    if (!isOver) mortal.version++
    const passesFrom = mortal.forgottenFrom
    const one = {
      ...{ shard, offset, actorId: id, n, body },
      get passesAt(): number | null {
        const from = passesFrom || mortal.endsFrom
        return from > 0 ? from + EXPIRY_MS : null
      },
      ...(passesFrom > 0 && { passesFrom }),
    }
    written.push(one)
    return one
  }

  /** Whether its row is there, as an owner sees it that loads its actor. */
  #isThere({ actorId, n, body }: Written): boolean {
    const derived = this.journal.derived.entries(actorId, FROM_FIRST) as readonly EntryRow[]
    const waiting = this.#waiting.some((one) => one.body.equals(body))
    return waiting || derived.some((row) => row.n === n && body.equals(row.body))
  }

  #entry(shard: number, offset: number, mayRefuse: number): Written {
    if (this.mortals > 0 && this.#draw() < this.mortals) return this.#mortalEntry(shard, offset)
    const isRefused = this.#draw() < mayRefuse
    const isNew = isRefused || this.#actors.length === 0 || this.#draw() < 0.5
    const own = this.#actors.filter((actor) => actor.shard === shard)
    let actor = own[Math.floor(this.#draw() * own.length)]
    if (isNew || actor === undefined) {
      actor = { id: freshUuid(), n: 0, version: 0, shard }
      if (!isRefused) this.#actors.push(actor)
    }
    actor.n++
    const text = `${actor.id} ${'x'.repeat(Math.floor(this.#draw() * 400))}`
    const body = encodeEntry({
      ...{ y: 'order', p: actor.id, v: actor.version, n: actor.n, m: freshUuid(), l: 0, t: 0 },
      ...{ c: this.clock, b: text },
      r: isRefused ? [] : ([{ type: 'changed', data: text }] as never),
      a: { type: 'create', success: !isRefused, ...(isRefused && { errors: [] }) },
    } as unknown as Entry)
    if (!isRefused) actor.version++
    const passesAt = isRefused ? this.clock + EXPIRY_MS : null
    return { shard, offset, actorId: actor.id, n: actor.n, body, passesAt }
  }

  /** A group, with its derived rows and the flush offset behind it. */
  async append(mayRefuse: number): Promise<void> {
    const shard = Math.floor(this.#draw() * SHARDS)
    const [head, epoch] = [this.#heads[shard]!, this.#epochs[shard]!]
    const count = 1 + Math.floor(this.#draw() * 4)
    const made: Written[] = (this.#waiting = [])
    for (let i = 0; i < count; i++) made.push(this.#entry(shard, head + 1 + i, mayRefuse))
    const body = joinEntries(made.map((one) => one.body))
    const appended = await this.journal.log.append([group({ shard, epoch, head, count, body })])
    if (appended[0] !== 'committed') throw new Error(`append: ${appended[0]}`)
    this.#heads[shard] = head + count
    this.#waiting = []
    const rows: DerivedRow[] = made.map((one) => ({ kind: 'entry', ...one }))
    rows.push(this.#memoryOf(head + count))
    rows.push({ kind: 'consumer', consumer: 'flush', offset: head + count })
    const outcome = await this.journal.derived.write(shard, epoch, rows)
    if (outcome !== 'committed') throw new Error(`rows: ${outcome}`)
    this.written.push(...made)
  }

  #memoryOf(offset: number): DerivedRow {
    const relayed = this.isRelayStuck ? 0 : offset
    return { kind: 'shard', offset, body: Buffer.from(JSON.stringify({ relayed })) }
  }

  async giveBack(): Promise<void> {
    const clockOf = (): number => this.clock
    // Rows that have had their time may be there still.
    if (this.#draw() < 0.5) await this.journal.derived.expire!(clockOf)
    const { replaced, freed } = await this.journal.giveBack(clockOf)
    this.freed.bytes += freed
    this.freed.files += replaced
  }

  /** The data file is gone: what is derived of the log is written again, as an owner would. */
  async loseDataFile(): Promise<void> {
    await this.journal.close()
    for (const name of [DATA_FILE, 'lock.mdb']) rmSync(join(this.options.dir, name))
    await this.open()
    for (let shard = 0; shard < SHARDS; shard++) {
      const rows: DerivedRow[] = []
      for (const { offset, count, body } of await this.journal.log.read(shard, 0, 1e9)) {
        for (const [i, bytes] of splitEntries(body).entries()) {
          const { p: actorId, n, f } = decodeEntry(bytes)
          const at = offset - count + 1 + i
          const passing = f === undefined ? null : { passesFrom: f }
          if (n > 0) rows.push({ kind: 'entry', actorId, n, offset: at, body: bytes, ...passing })
        }
      }
      rows.push(this.#memoryOf(this.#heads[shard]!))
      rows.push({ kind: 'consumer', consumer: 'flush', offset: this.#heads[shard]! })
      await this.journal.derived.write(shard, this.#epochs[shard]!, rows)
    }
  }

  /** Gives room back; the directory as it is between some of its steps is a store, too. */
  async giveBackWithKills(): Promise<void> {
    const images: string[] = []
    this.onPause = () => {
      if (images.length === 4 || this.#draw() < 0.8) return
      const { dir } = journalOptions(this.t)
      cpSync(this.options.dir, dir, { recursive: true })
      images.push(dir)
    }
    await this.giveBack()
    this.onPause = () => {}
    for (const dir of images) {
      await restored(this, dir)
      const journal = await openEmbeddedJournal({ ...this.options, dir })
      await journal.giveBack(() => this.clock)
      await this.check(journal)
      await journal.close()
      this.t.strictSame(await findings(dir), [])
    }
  }

  /** Closed while it gives room back: it goes on from there. */
  async giveBackInPart(): Promise<void> {
    let steps = Math.floor(this.#draw() * 30)
    const { promise: reached, resolve } = Promise.withResolvers<void>()
    this.onPause = () => void (steps-- === 0 && resolve())
    const done = this.journal
      .giveBack(() => this.clock)
      .then(
        () => resolve(),
        () => resolve(),
      )
    await reached
    await this.reopen()
    await done
    this.onPause = () => {}
  }

  /** Everything is there that must be, to the byte; answers how many entries are gone. */
  async check(journal: Pick<EmbeddedJournal, 'log' | 'derived'> = this.journal): Promise<number> {
    let gone = 0
    for (let shard = 0; shard < SHARDS; shard++) gone += await this.#checkLog(journal, shard)
    const rows = new Map<string, Written[]>()
    for (const one of this.written) {
      rows.set(one.actorId, [...(rows.get(one.actorId) ?? []), one])
    }
    for (const [id, all] of rows) {
      const found = await journal.derived.entries(id, FROM_FIRST)
      const [there, must] = [found.values(), all.values()]
      let next = there.next()
      for (const one of must) {
        if (next.value?.n === one.n && one.body.equals(next.value.body)) next = there.next()
        else if (one.passesAt === null) throw new Error(`${id}: entry ${one.n} is not there`)
      }
      if (!next.done) throw new Error(`${id}: has what was never written`)
    }
    await this.#checkMortals(journal)
    return gone
  }

  /** Nothing of an actor that has ended is there without its end, in rows or in the log. */
  async #checkMortals(journal: Pick<EmbeddedJournal, 'log' | 'derived'>): Promise<void> {
    const logged = new Set<string>()
    for (let shard = 0; shard < SHARDS; shard++) {
      for (const { body } of await journal.log.read(shard, 0, 1e9)) {
        for (const bytes of splitEntries(body)) logged.add(bytes.toString('latin1'))
      }
    }
    for (const { id, written, forgottenFrom } of this.#mortals) {
      if (forgottenFrom === 0) continue
      const rows = await journal.derived.entries(id, FROM_FIRST)
      const end = written.find(({ passesFrom }) => passesFrom !== undefined)!
      const isBefore = (one: Written): boolean => one.offset < end.offset
      const inLog = (one: Written): boolean => logged.has(one.body.toString('latin1'))
      const inRows = (one: Written): boolean => rows.some(({ body }) => one.body.equals(body))
      for (const is of [inLog, inRows]) {
        const isLeft = written.some((one) => isBefore(one) && is(one))
        if (isLeft && !is(end)) throw new Error(`${id}: is there, but for its end`)
      }
    }
  }

  async #checkLog(journal: Pick<EmbeddedJournal, 'log'>, shard: number): Promise<number> {
    const own = this.written.filter((one) => one.shard === shard)
    let [at, gone] = [0, 0]
    for (let rows = await journal.log.read(shard, 0, 2_000); rows.length > 0;) {
      for (const { offset, count, body } of rows) {
        if (offset - count !== at) throw new Error(`shard ${shard}: a hole behind ${at}`)
        for (const entry of splitEntries(body)) {
          const one = own[at++]!
          if (one.body.equals(entry)) continue
          const mayGo = one.passesAt !== null && one.passesAt <= this.clock
          if (!mayGo || !isErased(decodeEntry(entry))) throw new Error(`${shard}/${at}: is another`)
          gone++
        }
      }
      rows = await journal.log.read(shard, at, 2_000)
    }
    if (at !== own.length) throw new Error(`shard ${shard}: ends at ${at}, not ${own.length}`)
    return gone
  }

  /** Bytes of the log's files. */
  logBytes(): number {
    const folder = join(this.options.dir, LOG_FOLDER)
    return readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0)
  }
}

const FROM_FIRST = { order: 'ascending', after: 0, bytesMax: 1e9 } as const

export async function findings(dir: string): Promise<string[]> {
  const found: string[] = []
  await verifyLog(dir, (line) => found.push(line))
  return found
}

export async function restored(world: World, from: string): Promise<number> {
  const { dir } = journalOptions(world.t)
  cpSync(from, dir, { recursive: true })
  world.t.strictSame(await findings(dir), [], 'a copy is whole')
  const journal = await openEmbeddedJournal({ ...optionsIn(dir), shards: null })
  const { written } = world
  let gone = 0
  for (let shard = 0; shard < SHARDS; shard++) {
    const own = written.filter((one) => one.shard === shard)
    const rows = await journal.log.read(shard, 0, 1e9)
    const entries = rows.flatMap(({ body }) => splitEntries(body))
    world.t.equal(entries.length, own.length, `shard ${shard} of a copy`)
    for (const [i, entry] of entries.entries()) {
      if (own[i]!.body.equals(entry)) continue
      if (own[i]!.passesAt === null) throw new Error('a copy lacks an entry')
      gone++
    }
  }
  await journal.close()
  return gone
}
