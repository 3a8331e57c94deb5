// Actors that are forgotten, in the log and in the rows of it: the end of one goes last, whichever
// file is written anew first, and only when what it has told others was taken. Source: PROTOCOL
// 3.12 "Forgotten actors".

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import { decodeEntry, encodeEntry, joinEntries } from '../../../protocol/entry/entry.ts'
import { splitEntries, type Entry } from '../../../protocol/entry/entry.ts'
import { freshUuid, group } from '../../conformance/journal-samples.ts'
import type { DerivedRow } from '../../journal.ts'
import { DATA_FILE } from '../../lmdb/environment.ts'
import { openEmbeddedJournal, type EmbeddedJournal } from '../journal/journal.ts'
import { journalOptions } from '../testing/journal-options.ts'
import { findings, HOUR_MS, smallSteps } from '../testing/upkeep-world.ts'

const OVER_MS = LIMITS.storage.derivedTtlSeconds * 1_000 + HOUR_MS
const FROM_FIRST = { order: 'ascending', after: 0, bytesMax: 1e9 } as const
/** What a group that fills a file takes. */
const FILL_BYTES = 5_000
smallSteps(t)

/** A store of one shard whose files take little more than one large entry. */
class Scene {
  readonly t: Test
  readonly options
  journal!: EmbeddedJournal
  clock = HOUR_MS
  relayed: number | null = null
  #head = 0
  #epoch = 0

  constructor(t: Test) {
    this.t = t
    this.options = { ...journalOptions(t), shards: 1, segmentBytes: [8_192, 8_192, 8_192] }
  }

  async open(): Promise<void> {
    this.journal = await openEmbeddedJournal(this.options)
    this.#epoch = (await this.journal.log.claim(0)).epoch
  }

  /** Entries of actors; their rows. */
  async append(...entries: readonly Partial<Entry>[]): Promise<void> {
    const bodies = entries.map((one) => encodeEntry({ ...this.#plain(), ...one } as Entry))
    const [head, count] = [this.#head, bodies.length]
    const of = group({ shard: 0, epoch: this.#epoch, head, count, body: joinEntries(bodies) })
    this.t.same(await this.journal.log.append([of]), ['committed'])
    this.#head += count
    await this.rows(bodies.map((body, i) => rowOf(body, head + 1 + i)))
  }

  #plain(): Omit<Entry, 'p'> {
    const a = { type: 'x', success: true } as const
    return { y: 'x', v: 0, n: 1, r: [], m: freshUuid(), l: 0, t: 0, c: this.clock, b: 'x', a }
  }

  /** With how far the shard is. */
  async rows(rows: readonly DerivedRow[]): Promise<void> {
    const offset = this.#head
    const body = Buffer.from(JSON.stringify({ relayed: this.relayed ?? offset }))
    const flush = { kind: 'consumer', consumer: 'flush', offset } as const
    const all: DerivedRow[] = [...rows, { kind: 'shard', offset, body }, flush]
    this.t.equal(await this.journal.derived.write(0, this.#epoch, all), 'committed')
  }

  /** Two days on, the log gives back what it can. */
  async later(): Promise<number> {
    this.clock += OVER_MS
    await this.journal.derived.expire!(() => this.clock)
    return (await this.journal.giveBack(() => this.clock)).replaced
  }

  /** The data file is made anew from what is in the log. */
  async remade(): Promise<void> {
    await this.journal.close()
    for (const name of [DATA_FILE, 'lock.mdb']) rmSync(join(this.options.dir, name))
    await this.open()
    const rows: DerivedRow[] = []
    for (const { offset, count, body } of await this.journal.log.read(0, 0, 1e9)) {
      for (const [i, bytes] of splitEntries(body).entries()) {
        if (decodeEntry(bytes).n > 0) rows.push(rowOf(bytes, offset - count + 1 + i))
      }
    }
    await this.rows(rows)
  }

  async numbers(actorId: string): Promise<number[]> {
    return (await this.journal.derived.entries(actorId, FROM_FIRST)).map(({ n }) => n)
  }

  async close(): Promise<void> {
    await this.journal.close()
    this.t.same(await findings(this.options.dir), [])
  }
}

function rowOf(body: Buffer, offset: number): DerivedRow {
  const { p: actorId, n, f } = decodeEntry(body)
  const passing = f === undefined ? null : { passesFrom: f }
  return { kind: 'entry', actorId, n, offset, body, ...passing }
}

const records = (bytes = 1): Entry['r'] => [{ t: 'changed', text: 'x'.repeat(bytes) }] as never
/** Fills a file with what stays. */
const stays = () => ({ p: freshUuid(), r: records(FILL_BYTES) })

t.test('what is in one file goes at once, and nothing of it is left anywhere', async (t) => {
  const scene = new Scene(t)
  await scene.open()
  const [p, other] = [freshUuid(), freshUuid()]
  await scene.append({ p, r: records(FILL_BYTES) }, { p: other, r: records() })
  await scene.append({ p, n: 2, v: 1, r: records(), f: scene.clock })
  const snapshot = { kind: 'snapshot', actorId: p, offset: 1, body: Buffer.of(1) } as const
  await scene.rows([snapshot, { ...snapshot, actorId: other }])
  await scene.append(stays())
  await scene.append(stays())
  t.equal(await scene.journal.giveBack(() => scene.clock).then((one) => one.replaced), 0)
  t.same(await scene.numbers(p), [1, 2])
  t.ok((await scene.later()) > 0)
  t.same(await scene.numbers(p), [])
  t.equal(await scene.journal.derived.snapshot(p), null)
  t.same(await scene.numbers(other), [1])
  t.ok(await scene.journal.derived.snapshot(other), 'of another')
  await scene.remade()
  t.same(await scene.numbers(p), [], 'nor in the log')
  await scene.close()
})

/** An actor with its end in another file than what was before it, and one that has ended too. */
async function endedInTwoFiles(t: Test) {
  const scene = new Scene(t)
  await scene.open()
  const [p, q] = [freshUuid(), freshUuid()]
  // Little of the first file is of it, most of the second one.
  await scene.append(stays(), { p, r: records() })
  await scene.append(stays())
  await scene.append({ p: q, r: records(FILL_BYTES) })
  const end = { r: records(), f: scene.clock }
  await scene.append({ p: q, n: 2, v: 1, ...end }, { p, n: 2, v: 1, ...end })
  return { scene, p, q }
}

t.test('an end stays while something before it is in a file that stays', async (t) => {
  const { scene, p, q } = await endedInTwoFiles(t)
  await scene.append(stays())
  await scene.append(stays())
  t.ok((await scene.later()) > 0)
  t.same(await scene.numbers(q), [])
  t.same(await scene.numbers(p), [1, 2])
  await scene.remade()
  t.same(await scene.numbers(p), [1, 2], 'and in the log')
  await scene.close()
})

t.test('its beginning may go first, however it is read then', async (t) => {
  const scene = new Scene(t)
  await scene.open()
  const p = freshUuid()
  await scene.append({ p, r: records(FILL_BYTES) })
  await scene.append(stays(), { p, n: 2, v: 1, r: records() })
  await scene.append(stays(), { p, n: 3, v: 2, r: records(), f: scene.clock })
  await scene.append(stays())
  await scene.append(stays())
  t.ok((await scene.later()) > 0)
  t.same(await scene.numbers(p), [2, 3])
  await scene.remade()
  t.same(await scene.numbers(p), [2, 3])
  await scene.close()
})

t.test('nothing goes before what it has told others was taken', async (t) => {
  const scene = new Scene(t)
  await scene.open()
  const p = freshUuid()
  const e = [{ to: { type: 'x', id: freshUuid() }, messages: [] }] as unknown as Entry['e']
  scene.relayed = 0
  await scene.append({ p, r: records(FILL_BYTES), e: e! })
  await scene.append({ p, n: 2, v: 1, r: records(), f: scene.clock })
  await scene.append(stays())
  await scene.append(stays())
  await scene.later()
  t.same(await scene.numbers(p), [1, 2])
  await scene.close()
})

t.test('a file that was read through long ago is looked at again', async (t) => {
  const scene = new Scene(t)
  await scene.open()
  const p = freshUuid()
  await scene.append({ p, r: records(FILL_BYTES) })
  await scene.append(stays())
  await scene.append(stays())
  t.equal(await scene.later(), 0)
  await scene.append({ p, n: 2, v: 1, r: records(), f: scene.clock + 9 * HOUR_MS })
  await scene.append(stays())
  await scene.append(stays())
  t.equal(await scene.later(), 0, 'not before what it was could count no more')
  t.same(await scene.numbers(p), [1, 2])
  t.equal(await scene.later(), 1)
  t.same(await scene.numbers(p), [2])
  await scene.close()
})

t.test('an end goes last also where something was told to it afterwards', async (t) => {
  const { scene, p, q } = await endedInTwoFiles(t)
  await scene.append({ p, n: 3, v: 2, f: scene.clock, s: [7, 1, 0] })
  await scene.append(stays())
  await scene.append(stays())
  t.ok((await scene.later()) > 0)
  t.same(await scene.numbers(q), [])
  t.same(await scene.numbers(p), [1, 2, 3])
  await scene.remade()
  t.same(await scene.numbers(p), [1, 2, 3], 'and in the log')
  await scene.close()
})

t.test('what came after an end is no part of it', async (t) => {
  const scene = new Scene(t)
  await scene.open()
  const p = freshUuid()
  await scene.append({ p, r: records(FILL_BYTES) })
  // As no actor does: were it to, nothing that was acknowledged goes.
  const end = { p, n: 2, v: 1, r: records(), f: scene.clock }
  await scene.append(end, { p, n: 3, v: 2, r: records() })
  await scene.append(stays())
  await scene.append(stays())
  t.ok((await scene.later()) > 0)
  t.same(await scene.numbers(p), [3])
  await scene.journal.close()
})
