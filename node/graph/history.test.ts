// History out of the derived rows, which may go: what is remembered of an actor is of an entry, not
// of a number that another may get. Source: PROTOCOL 3.12 "Reading an actor", CONTRACT 1.4.

import t from 'tap'
import { decodeTestSnapshot } from '../../cluster/feed/testing/feed-store.ts'
import { notebookBehaviour } from '../../cluster/feed/testing/notebook.ts'
import type { ActorRecord } from '../../protocol/behaviour.ts'
import { type Entry, encodeEntry } from '../../protocol/entry/entry.ts'
import type { DerivedRow, EntryRange } from '../../storage/journal.ts'
import { MemoryRegisters } from '../../storage/memory/registers.ts'
import { derivedHistory, remoteHistory } from './history.ts'

const ID = '019b76da-a800-7aea-8f20-3101f073f8bb'
const behaviour = notebookBehaviour({ fold: true, project: true })

function entry(n: number, offset: number, v: number, ...r: ActorRecord[]): DerivedRow {
  const a = { type: 'test', success: r.length > 0, errors: [] }
  const made: Entry = {
    y: 'notebook',
    p: ID,
    v,
    n,
    r,
    m: `m${offset}`,
    l: 0,
    a,
    t: 0,
    c: 0,
    b: 'x',
  }
  return { kind: 'entry', actorId: ID, n, offset, body: encodeEntry(made) }
}

t.test('a deleted actor shows no history, whose number its last entry has', async (t) => {
  const rows = new MemoryRegisters()
  const options = {
    behaviours: new Map([[behaviour.type, behaviour]]),
    derived: {
      entries: rows.entries.bind(rows),
      snapshot: rows.snapshot.bind(rows),
    },
    decodeSnapshot: decodeTestSnapshot,
  }
  const [atHand, remote] = [derivedHistory(options), remoteHistory(options)]
  const shown = async () => {
    const far = await remote.read(ID, 'notebookRecord', null)
    return [[...atHand.read(ID, 'notebookRecord')].length, far.nodes.length]
  }
  rows.put(0, entry(1, 1, 0, { t: 'opened', title: 'a' }))
  rows.put(0, entry(2, 2, 1))
  t.same(await shown(), [1, 1])
  rows.expire(() => Number.MAX_SAFE_INTEGER)
  rows.put(0, entry(2, 3, 1, { t: 'closed', notes: [] }))
  t.same(await shown(), [0, 0])
})

t.test('a long history is read in pages of bytes', async (t) => {
  const rows = new MemoryRegisters()
  const pages: number[] = []
  const options = {
    behaviours: new Map([[behaviour.type, behaviour]]),
    derived: {
      entries(id: string, range: EntryRange) {
        const page = rows.entries(id, range)
        pages.push(page.reduce((sum, { body }) => sum + body.length, 0))
        return page
      },
      snapshot: rows.snapshot.bind(rows),
    },
    decodeSnapshot: decodeTestSnapshot,
  }
  const title = 'x'.repeat(400_000)
  rows.put(0, entry(1, 1, 0, { t: 'opened', title }))
  for (let n = 2; n <= 12; n++) rows.put(0, entry(n, n, n - 1, { t: 'opened', title }))
  const remote = remoteHistory(options)
  let far = await remote.read(ID, 'notebookRecord', null)
  let count = far.nodes.length
  for (; far.rest !== null; count += far.nodes.length) {
    far = await remote.read(ID, 'notebookRecord', far.rest)
  }
  const atHand = [...derivedHistory(options).read(ID, 'notebookRecord')]
  t.same([count, atHand.length], [12, 12])
  t.ok(Math.max(...pages) <= 1024 * 1024 + title.length, `${Math.max(...pages)} bytes at a time`)
})
