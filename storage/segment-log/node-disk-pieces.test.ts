// A system that writes and reads less than it was asked for, as it may: nothing is left out, and
// nothing comes twice. And whose files these are.

import fs, { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import fsp from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { NodeDisk } from './node-disk.ts'

function folder(t: Test): string {
  const path = mkdtempSync(join(tmpdir(), 'kontor-segment-log-'))
  t.teardown(() => rmSync(path, { recursive: true, force: true }))
  return path
}

/** Until the test is over no call of the system gets further than so many bytes. */
function inPieces(t: Test, bytesMax: number): { readonly calls: () => number } {
  let calls = 0
  const { writev, readSync } = fs
  fs.writev = ((fd: number, chunks: readonly Uint8Array[], position: number, done: Done) => {
    calls++
    let left = bytesMax
    const some = chunks.flatMap((chunk) => {
      const part = chunk.subarray(0, left)
      left -= part.length
      return part.length > 0 ? [part] : []
    })
    writev(fd, some, position, done)
  }) as typeof writev
  fs.readSync = ((...[fd, into, at, length, position]: Read) => {
    calls++
    return readSync(fd, into, at, Math.min(length, bytesMax), position)
  }) as typeof readSync
  syncBuiltinESMExports()
  t.teardown(() => {
    Object.assign(fs, { writev, readSync })
    syncBuiltinESMExports()
  })
  return { calls: () => calls }
}

type Read = [fd: number, into: Buffer, at: number, length: number, position: number]
type Write = (buffer: Buffer, from: number, length: number, at: number) => Promise<unknown>
type Done = (error: NodeJS.ErrnoException | null, written: number) => void

t.test('what is written in pieces is there as a whole, and only there', async (t) => {
  const path = folder(t)
  const disk = new NodeDisk(path)
  const file = await disk.create('a', 2_000)
  const { calls } = inPieces(t, 7)
  const chunks = [0, 3, 10, 7, 1, 25, 0, 14].map((length, i) => Buffer.alloc(length, i + 1))
  const all = Buffer.concat(chunks)
  await file.writeSynced(100, chunks)
  t.ok(calls() >= all.length / 7)
  const whole = readFileSync(join(path, 'a'))
  t.same(whole.subarray(100, 100 + all.length), all)
  t.ok(whole.subarray(0, 100).every((byte) => byte === 0))
  t.ok(whole.subarray(100 + all.length).every((byte) => byte === 0))
  t.equal(whole.length, 2_000)
  file.close()
})

t.test('what is read in pieces is all that was asked for', async (t) => {
  const path = folder(t)
  const disk = new NodeDisk(path)
  const file = await disk.create('a', 300)
  const bytes = Buffer.from(Array.from({ length: 300 }, (_, i) => i % 251))
  await file.writeSynced(0, [bytes])
  inPieces(t, 11)
  t.same(file.read(0, 300), bytes)
  t.same(file.read(37, 100), bytes.subarray(37, 137))
  t.same(file.read(250, 100), bytes.subarray(250), 'to the end of the file')
  file.close()
})

t.test('a file that is filled in pieces is as long as it was to be', async (t) => {
  const path = folder(t)
  const handle = await fsp.open(import.meta.filename)
  const handles = Object.getPrototypeOf(handle) as typeof handle
  await handle.close()
  const { write } = handles
  handles.write = function (this: typeof handle, ...args: [Buffer, number, number, number]) {
    const [buffer, from, length, position] = args
    return (write as Write).call(this, buffer, from, Math.min(length, 33), position)
  } as typeof write
  t.teardown(() => void (handles.write = write))
  const file = await new NodeDisk(path).create('a', 1_000)
  t.equal(file.bytes(), 1_000)
  t.ok(readFileSync(join(path, 'a')).every((byte) => byte === 0))
  file.close()
})

t.test("a store's files are nobody else's to read", async (t) => {
  const path = folder(t)
  const disk = new NodeDisk(path)
  ;(await disk.create('a', 10)).close()
  await disk.replace('b', 'text')
  for (const name of ['a', 'b']) t.equal(statSync(join(path, name)).mode & 0o777, 0o600, name)
})
