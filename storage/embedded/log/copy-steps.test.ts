// A copy of a log that is made again and again: what is in it belongs to the source as it is now,
// to the byte, and nothing else is there. What is written meanwhile: copy.test.ts.

import { mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import type { Group } from '../../journal.ts'
import type { Disk } from '../../segment-log/disk.ts'
import { endOf, fileName, readHeader } from '../../segment-log/header.ts'
import { readManifest } from '../../segment-log/manifest.ts'
import { NodeDisk } from '../../segment-log/node-disk.ts'
import { replaceSegments } from '../../segment-log/replace.ts'
import { readChain } from '../../segment-log/scan.ts'
import { SegmentLog } from '../../segment-log/segment-log.ts'
import { GENERATION } from '../../segment-log/testing/log-run.ts'
import { SimulatedDisk } from '../../segment-log/testing/simulated-disk.ts'
import { JournalDamage } from '../../damage.ts'
import type { EmbeddedIdentity } from '../journal/identity.ts'
import { JOURNAL_FORMAT } from '../../lmdb/layout.ts'
import { copyLog } from './copy.ts'

const SEGMENT_BYTES = 4_096
const IDENTITY = {
  ...{ format: JOURNAL_FORMAT, shards: 4, generation: 'a-generation', secret: 's' },
  ...{ log: GENERATION, gaps: [] },
}

class Copying {
  readonly source = new SimulatedDisk()
  readonly dir: string
  readonly pauses: number[] = []
  kept: EmbeddedIdentity | null = null
  onPause: () => unknown = () => undefined
  log!: SegmentLog
  #head = 0

  private constructor(t: Test, dir: string | null) {
    this.dir = dir ?? mkdtempSync(join(tmpdir(), 'kontor-copy-'))
    t.teardown(() => rmSync(this.dir, { recursive: true, force: true }))
  }

  /** `dir`: of another one, whose copy is there already. */
  static async of(t: Test, dir: string | null = null): Promise<Copying> {
    const it = new Copying(t, dir)
    await it.open()
    await it.log.append([], [{ shard: 1, epoch: 1 }])
    return it
  }

  async open(): Promise<void> {
    const options = { generation: GENERATION, onFatal: () => {}, frameBytesMax: 2_048 }
    this.log = await SegmentLog.open(this.source, { ...options, segmentBytes: [SEGMENT_BYTES] })
  }

  async append(count: number): Promise<void> {
    for (let i = 0; i < count; i++) {
      const head = this.#head++
      const body = Buffer.alloc(400, 1 + (head % 200))
      const group: Group = { shard: 1, epoch: 1, head, count: 1, commitId: `${head}`, body }
      await this.log.append([group])
    }
  }

  copy(source: Disk = this.source, identity: () => EmbeddedIdentity = () => IDENTITY) {
    return copyLog({
      source,
      identity,
      folder: this.folder,
      incoming: join(this.dir, 'log.new'),
      keep: (kept) => void (this.kept = kept),
      pause: async (ms) => {
        this.pauses.push(ms)
        this.onPause()
      },
    })
  }

  get folder(): string {
    return join(this.dir, 'log')
  }

  segments(): string[] {
    return readdirSync(this.folder)
      .filter((name) => name.endsWith('.seg'))
      .toSorted()
  }

  /** Writes the first two files anew, as one. */
  async rewrite(): Promise<void> {
    const [first, second, next] = this.chain()
    await replaceSegments(
      {
        ...{ disk: this.source, generation: GENERATION, sources: [first!, second!], next: next! },
        ...{ keep: (_, body) => body, throttle: async () => {} },
        ...{ frameBytesMax: 2_048, erasedMax: 8 },
      },
      { isTurned: () => true, turn: () => Promise.resolve() },
    )
  }

  chain() {
    const last = readHeader(this.source, this.log.end.file, GENERATION)!
    return readChain(this.source, GENERATION, { first: null, last })
  }

  /** The copy has the bytes of the source's files, each up to its end, and says where that is. */
  check(t: Test): void {
    const { end } = this.log
    const chain = this.chain()
    t.same(this.segments(), chain.map(({ key }) => fileName(key.file)).toSorted())
    for (const [i, header] of chain.entries()) {
      const name = fileName(header.key.file)
      const bytes = endOf(header, chain[i + 1] ?? null) ?? end.position
      const wanted = this.source.bytesOf(name).subarray(0, bytes)
      t.ok(readFileSync(join(this.folder, name)).equals(wanted), name)
    }
    const manifest = readManifest(new NodeDisk(this.folder), GENERATION)
    t.match(manifest, { generation: GENERATION, last: end.file, end: end.position })
    t.same(readdirSync(this.dir), ['log'], 'nothing is left of the way')
  }
}

t.test('a log that goes on in the same file, and in others', async (t) => {
  const it = await Copying.of(t)
  await it.append(2)
  t.match(await it.copy(), { files: 1, copied: { files: 1, groups: 2, entries: 2 } })
  it.check(t)
  t.match(await it.copy(), { copied: { files: 0, bytes: 0, groups: 0 } }, 'nothing is new')
  await it.append(2)
  t.match(await it.copy(), { files: 1, copied: { files: 1, groups: 4 }, end: it.log.end })
  it.check(t)
  await it.append(20)
  const report = await it.copy()
  t.equal(report.files, it.chain().length)
  t.ok(report.files > 3)
  it.check(t)
  await it.append(1)
  t.match(await it.copy(), { copied: { files: 1 } }, 'only the last one has become longer')
  it.check(t)
})

t.test('one that was broken off before its files were cut', async (t) => {
  const it = await Copying.of(t)
  await it.append(2)
  await it.copy()
  truncateSync(join(it.folder, it.segments()[0]!), SEGMENT_BYTES)
  await it.append(12)
  await it.copy()
  it.check(t)
})

t.test('files that others stand for now go, once those have come', async (t) => {
  const it = await Copying.of(t)
  await it.append(20)
  await it.copy()
  const before = it.segments()
  await it.rewrite()
  t.match(await it.copy(), { files: before.length - 1, copied: { files: 1 } })
  it.check(t)
  t.notOk(it.segments().includes(before[0]!))
})

t.test('a damage is looked at again, so many times', async (t) => {
  const it = await Copying.of(t)
  await it.append(20)
  const bytes = it.source.bytesOf(fileName(it.chain()[0]!.key.file))
  const flip = (): void => void (bytes[1_500]! ^= 255)
  flip()
  const error: unknown = await it.copy().catch((failure: unknown) => failure)
  t.ok(error instanceof JournalDamage)
  t.same(
    it.pauses,
    Array.from(
      { length: LIMITS.embedded.backupAttemptsMax - 1 },
      () => LIMITS.embedded.backupRetryMs,
    ),
  )
  t.same(readdirSync(it.folder), [], 'and nothing of it was kept')
  it.pauses.length = 0
  it.onPause = () => it.pauses.length === 3 && flip()
  await it.copy()
  t.equal(it.pauses.length, 3)
  it.check(t)
})

t.test('what is read of the store is read behind what names the files', async (t) => {
  const it = await Copying.of(t)
  await it.append(20)
  let identity: EmbeddedIdentity = IDENTITY
  const source = new Proxy<Disk>(it.source, {
    get: (disk, name: keyof Disk) => {
      const found = disk[name]
      if (typeof found !== 'function') return found
      return (...args: never[]) => {
        // A loss is accepted in this moment: what comes behind it is in newer files.
        if (name === 'open') identity = { ...IDENTITY, generation: 'behind a loss' }
        return Reflect.apply(found, disk, args)
      }
    },
  })
  await it.copy(source, () => identity)
  t.equal(it.kept?.generation, 'behind a loss')
  it.check(t)
})

t.test('a copy that is not what was copied is told, and not kept', async (t) => {
  const it = await Copying.of(t)
  await it.append(2)
  const handle = await open(import.meta.filename)
  const handles = Object.getPrototypeOf(handle) as typeof handle
  await handle.close()
  const { writeFile } = handles
  handles.writeFile = async function (this: typeof handle, data: unknown) {
    const bytes = Buffer.from(data as Buffer)
    bytes[bytes.length - 100]! ^= 1
    await writeFile.call(this, bytes)
  } as typeof writeFile
  t.teardown(() => void (handles.writeFile = writeFile))
  await t.rejects(it.copy(), /what was copied can't be read back: .*00000001\.seg: position/)
  t.same(it.pauses, [], 'the source is as it was: it is not looked at again')
  t.same(it.segments(), [])
  handles.writeFile = writeFile
  await it.copy()
  it.check(t)
})

t.test('files that stand for those of another timeline are refused', async (t) => {
  const one = await Copying.of(t)
  await one.append(8)
  t.equal(one.chain().length, 2)
  await one.copy()
  const before = one.segments().map((name) => readFileSync(join(one.folder, name)))
  const other = await Copying.of(t, one.dir)
  await other.append(20)
  await other.rewrite()
  await t.rejects(other.copy(), /what came after, or another timeline/)
  const after = one.segments().map((name) => readFileSync(join(one.folder, name)))
  t.same(after, before)
})
