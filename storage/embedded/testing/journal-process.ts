// A process of its own on a journal's directory, to be killed, to fence its parent, or to find its
// disk full. Says what happens as lines of JSON on its standard output, each written before
// anything else is done. For journal-processes.test.ts: `journal-process.ts <role> <dir>`.

import { writeSync } from 'node:fs'
import type { DerivedRow, Journal } from '../../journal.ts'
import { openEmbeddedJournal } from '../journal/journal.ts'
import { optionsIn } from './journal-options.ts'

const [role, dir] = process.argv.slice(2) as [string, string]
const SHARDS = 4
let made = 0

/** Written whole before it returns: whoever reads may be slow, and the pipe doesn't block. */
function say(what: object): void {
  const bytes = Buffer.from(`${JSON.stringify(what)}\n`)
  for (let at = 0; at < bytes.length;) {
    try {
      at += writeSync(1, bytes, at)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5)
    }
  }
}

/** A UUID that only this process gives. */
function freshUuid(): string {
  made++
  const expiry = process.hrtime.bigint().toString(16).slice(-8).padStart(8, '0')
  const pid = (process.pid & 0xffff).toString(16).padStart(4, '0')
  return `${expiry}-${pid}-7000-8000-${made.toString(16).padStart(12, '0')}`
}

/** Appends to all shards as fast as it goes, with derived rows on the way; says each commit. */
async function write(journal: Journal): Promise<void> {
  const shards = [...Array(SHARDS).keys()]
  const places = await Promise.all(shards.map((shard) => journal.log.claim(shard)))
  const heads = places.map((place) => place.head)
  for (;;) {
    const groups = shards.map((shard) => {
      const count = 1 + (made % 3)
      const body = Buffer.alloc(100 + ((made * 997) % 9_000), `${shard}`)
      const { epoch } = places[shard]!
      return { shard, epoch, head: heads[shard]!, count, commitId: freshUuid(), body }
    })
    const outcomes = await journal.log.append(groups)
    for (const [shard, group] of groups.entries()) {
      if (outcomes[shard] !== 'committed') return say({ end: outcomes[shard] })
      const offset = group.head + group.count
      heads[shard] = offset
      say({ shard, offset, commitId: group.commitId })
      const row: DerivedRow = { kind: 'consumer', consumer: 'index', offset }
      void journal.derived.write(shard, group.epoch, [row]).then((outcome) => {
        if (outcome === 'committed') say({ shard, index: row.offset })
      })
    }
  }
}

/** Appends until the data file has no room, then shows what still works. */
async function fill(journal: Journal): Promise<void> {
  const { epoch, head: from } = await journal.log.claim(0)
  let head = from
  for (;;) {
    const body = Buffer.alloc(1_024, 'f')
    const group = { shard: 0, epoch, head, count: 1, commitId: freshUuid(), body }
    const [outcome] = await journal.log.append([group])
    const image = Buffer.alloc(256 * 1024, 'i')
    const row = { kind: 'snapshot', actorId: freshUuid(), offset: head + 1, body: image } as const
    if (outcome === 'committed') await journal.derived.write(0, epoch, [row])
    if (outcome !== 'committed') {
      say({ outcome, head })
      break
    }
    head++
  }
  say({ status: (await journal.log.status(0)).head })
  say({ read: (await journal.log.read(0, from, 1e9)).length })
  const flush: DerivedRow = { kind: 'consumer', consumer: 'flush', offset: head }
  say({ flush: await journal.derived.write(0, epoch, [flush]) })
}

/** Claims a shard and has the directory open until it is killed. */
async function stay(journal: Journal): Promise<void> {
  say(await journal.log.claim(0))
  await new Promise((resolve) => setTimeout(resolve, 2 ** 31 - 1))
}

const shards = role === 'stay' ? null : SHARDS
const journal = await openEmbeddedJournal({ ...optionsIn(dir), shards })
say({ opened: journal.identity.generation })
if (role === 'write') await write(journal)
if (role === 'fill') await fill(journal)
if (role === 'stay') await stay(journal)
if (role === 'claim') say(await journal.log.claim(0))
await journal.close()
