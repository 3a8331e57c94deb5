// The mutants of the log of segment files: one rule of it broken each, as patches of the sources.
// mutants.test.ts has each of them caught.

import type { Mutant } from '../../../test/simulation/mutants/mutant.ts'

/** What catches it: random runs with crashes, a stale writer or files replaced; or a test. */
export interface LogMutant extends Mutant {
  readonly by: 'crashes' | 'stale writers' | 'replaced files' | 'test'
}

const LOG = 'storage/segment-log/segment-log.ts'
const OPENING = 'storage/segment-log/opening.ts'
const SCAN = 'storage/segment-log/scan.ts'
const FRAME = 'storage/segment-log/frame.ts'
const HEADER = 'storage/segment-log/header.ts'
const REPLACE = 'storage/segment-log/replace.ts'
const REWRITE = 'storage/segment-log/rewrite.ts'
const NODE_DISK = 'storage/segment-log/node-disk.ts'
const SIMULATED = 'storage/segment-log/testing/simulated-disk.ts'
const FRAME_TEST = 'storage/segment-log/frame.test.ts'
const LOG_TEST = 'storage/segment-log/segment-log.test.ts'
const DISK_TEST = 'storage/segment-log/node-disk.test.ts'

const WRITE = '    await spare.file.writeSynced(position, chunks)\n'
const WRITE_AND_SYNC =
  "        inode.now = now\n        await this.#operation('sync')\n        this.#sync(inode)\n"
const FDATASYNC = `    await new Promise<void>((resolve, reject) => {
      fs.fdatasync(this.#fd, (error) => (error ? reject(error) : resolve()))
    })
`

const SYNCS: readonly LogMutant[] = [
  {
    name: 'no-sync',
    by: 'crashes',
    why: 'what was acknowledged is in the memory of the system alone',
    patches: [
      {
        file: SIMULATED,
        find: WRITE_AND_SYNC,
        replace: "        inode.now = now\n        await this.#operation('sync')\n",
      },
    ],
  },
  {
    name: 'sync-before-write',
    by: 'crashes',
    why: 'the sync has nothing to write, and what is written afterwards waits for the next one',
    patches: [
      {
        file: SIMULATED,
        find: WRITE_AND_SYNC,
        replace:
          "        this.#sync(inode)\n        inode.now = now\n        await this.#operation('sync')\n",
      },
    ],
  },
  {
    name: 'answer-before-sync',
    by: 'crashes',
    why: 'the answer leaves while the frame is on its way',
    patches: [{ file: LOG, find: WRITE, replace: WRITE.replace('await', 'void') }],
  },
  {
    name: 'no-sync-of-the-real-file',
    by: 'test',
    test: DISK_TEST,
    why: 'as no-sync, where the simulated disk does not come',
    patches: [{ file: NODE_DISK, find: FDATASYNC, replace: '' }],
  },
  {
    name: 'real-answer-before-sync',
    by: 'test',
    test: DISK_TEST,
    why: 'as answer-before-sync, where the simulated disk does not come',
    patches: [
      {
        file: NODE_DISK,
        find: FDATASYNC,
        replace: FDATASYNC.replace('await new', 'void new'),
      },
    ],
  },
  {
    name: 'names-unsynced',
    by: 'test',
    test: DISK_TEST,
    why: 'a file that was begun may have no name after a crash, with all that was put into it',
    patches: [
      {
        file: NODE_DISK,
        find: '      await change()\n      await folder.sync()\n',
        replace: '      await change()\n',
      },
    ],
  },
  {
    name: 'manifest-unsynced',
    by: 'test',
    test: DISK_TEST,
    why: 'a manifest is renamed into its place before what is in it is on the disk',
    patches: [
      {
        file: NODE_DISK,
        find: '      await file.writeFile(text)\n      await file.sync()\n',
        replace: '      await file.writeFile(text)\n',
      },
    ],
  },
]

const FRAMES: readonly LogMutant[] = [
  {
    name: 'checksum-without-position',
    by: 'test',
    test: FRAME_TEST,
    why: 'a frame that lies elsewhere than it was written is taken for the one that belongs there',
    patches: [{ file: FRAME, find: '  place.writeDoubleLE(position, 8)\n', replace: '' }],
  },
  {
    name: 'checksum-without-file-number',
    by: 'test',
    test: FRAME_TEST,
    why: 'a file in the place of another one is read as that one',
    patches: [{ file: FRAME, find: '  place.writeDoubleLE(file, 0)\n', replace: '' }],
  },
  {
    name: 'checksum-without-salt',
    by: 'test',
    test: FRAME_TEST,
    why: 'what a caller sends can look like a frame, and so can the same file of another generation',
    patches: [{ file: FRAME, find: 'crc32(place, crc32(salt))', replace: 'crc32(place)' }],
  },
  {
    name: 'tail-cut-too-early',
    by: 'crashes',
    why: 'the last frame, which was acknowledged, goes with what was cut off behind it',
    patches: [
      {
        file: SCAN,
        find: "      if (found.is !== 'frame') {\n        const behind = frameBehind(opened, key, position)\n",
        replace:
          '      const isLast = frameBehind(opened, key, position) === null && position > header.end\n' +
          "      if (found.is !== 'frame' || isLast) {\n        const behind = frameBehind(opened, key, position)\n",
      },
      {
        file: SCAN,
        find: "        if (found.is === 'damaged' || behind !== null || position < synced) {\n          const what = found.is === 'damaged' ? found.what",
        replace:
          "        const isDamaged = found.is === 'damaged' || behind !== null\n" +
          "        if (isDamaged || (found.is !== 'frame' && position < synced)) {\n          const what = found.is === 'damaged' ? found.what",
      },
    ],
  },
  {
    name: 'tail-not-cut',
    by: 'crashes',
    why: 'a frame of which only some sectors were written is taken for whole',
    patches: [
      {
        file: FRAME,
        find: "  if (what === null) return { is: 'frame', frame }",
        replace: "  if (what === null || position > 0) return { is: 'frame', frame }",
      },
    ],
  },
  {
    name: 'torn-in-the-middle',
    by: 'test',
    test: LOG_TEST,
    why: 'a frame whose sectors were lost long after is taken for the end, with others behind it',
    patches: [
      {
        file: SCAN,
        find: "if (found.is === 'damaged' || behind !== null || position < synced) {",
        replace: "if (found.is === 'damaged' || position < synced) {",
      },
    ],
  },
]

const FILES: readonly LogMutant[] = [
  {
    name: 'no-look-for-a-newer-writer',
    by: 'stale writers',
    why: 'a writer acknowledges what it appended behind the end that a newer one goes on from',
    patches: [
      {
        file: LOG,
        find: '    return this.#disk.exists(fileName(this.#segment.file + 1))\n',
        replace: '    return false\n',
      },
    ],
  },
  {
    name: 'look-before-the-sync',
    by: 'stale writers',
    why: 'between the look and the sync a newer writer may read the end',
    patches: [
      {
        file: LOG,
        find: WRITE + '    if (this.#hasNewer())',
        replace: '    const isOld = this.#hasNewer()\n' + WRITE + '    if (isOld)',
      },
    ],
  },
  {
    name: 'end-read-before-the-file-is-taken',
    by: 'stale writers',
    why: 'what the writer before appends meanwhile is acknowledged, and is behind the end',
    patches: [
      {
        file: OPENING,
        find: '    await disk.link(spare.name, fileName(file))\n    isUnused = true\n',
        replace:
          '    const before = readBefore(disk, files, manifest, options)\n' +
          '    await disk.link(spare.name, fileName(file))\n    isUnused = true\n',
      },
      {
        file: OPENING,
        find: '    const before = readBefore(disk, files, manifest, options)\n    // Not those',
        replace: '    // Not those',
      },
    ],
  },
  {
    name: 'manifest-before-header',
    by: 'crashes',
    why: 'after a crash between them the manifest names a file that has no header',
    patches: [
      {
        file: OPENING,
        find: '    isUnused = false\n    const segment',
        replace:
          '    isUnused = false\n' +
          '    await writeManifest(disk, { generation, last: file, end: null })\n    const segment',
      },
    ],
  },
  {
    name: 'commits-before-the-manifest',
    by: 'test',
    test: LOG_TEST,
    why: 'a last file that goes missing is not missed, with what was acknowledged in it',
    patches: [
      {
        file: OPENING,
        find: '    const segment = await beginSegment({ file, spare }, from)\n    await writeManifest(disk, { generation, last: file, end: null })\n',
        replace: '    const segment = await beginSegment({ file, spare }, from)\n',
      },
    ],
  },
  {
    name: 'header-without-previous-end',
    by: 'test',
    test: LOG_TEST,
    why: 'a file before the last that was cut short is not missed',
    patches: [
      {
        file: HEADER,
        find: 'JSON.stringify({ format: FORMAT, ...header })',
        replace:
          'JSON.stringify({ format: FORMAT, ...header, previous: ' +
          'header.previous && { ...header.previous, end: 0 } })',
      },
    ],
  },
  {
    name: 'places-ahead-of-the-log',
    by: 'crashes',
    why: 'what is derived has a frame that a crash takes, and the start is refused for ever',
    patches: [
      {
        file: LOG,
        find: WRITE,
        replace:
          '    const end = { file, position: position + bytes }\n' +
          '    this.#options.onCommitted({ groups: [], claims: [], end })\n' +
          WRITE,
      },
    ],
  },
  {
    name: 'cut-before-the-manifest',
    by: 'crashes',
    why: 'the file is shorter than it was made, and nothing says that its end is known',
    patches: [
      {
        file: OPENING,
        find: '    isUnused = false\n    const segment',
        replace:
          '    giveBack(disk, files, before?.end ?? null)\n    isUnused = false\n    const segment',
      },
    ],
  },
]

const TURN = '    if (!keeper.isTurned(header)) await keeper.turn(header)\n'
const REMOVE = '    for (const file of left) remove(disk, file)\n'

const REPLACED: readonly LogMutant[] = [
  {
    name: 'removed-before-turned',
    by: 'replaced files',
    why: 'a place leads to a file that is gone',
    patches: [{ file: REPLACE, find: TURN + REMOVE, replace: REMOVE + TURN }],
  },
  {
    name: 'removed-while-turned',
    by: 'replaced files',
    why: 'places are on their way when what they lead to goes',
    patches: [{ file: REPLACE, find: TURN, replace: TURN.replace('await', 'void') }],
  },
  {
    name: 'turned-before-its-sync',
    by: 'replaced files',
    why: 'the file has its name, and places, while it is on its way to the disk',
    patches: [
      {
        file: REWRITE,
        find: '    await this.#file.writeSynced(0, header)\n',
        replace: '    void this.#file.writeSynced(0, header)\n',
      },
    ],
  },
  {
    name: 'turned-again-from-what-is-gone',
    by: 'replaced files',
    why: 'a crash while files go leaves zeros in them, and nothing is finished ever after',
    patches: [{ file: REPLACE, find: TURN, replace: '    await keeper.turn(header)\n' }],
  },
  {
    name: 'never-finished',
    by: 'replaced files',
    why: 'what an earlier process had begun stays, and is taken for turned by the next one',
    patches: [{ file: REPLACE, find: TURN, replace: '' }],
  },
  {
    name: 'a-claim-behind-its-groups',
    by: 'replaced files',
    why: 'entries that are gone are of an epoch that was not claimed yet',
    patches: [
      {
        file: REWRITE,
        find: '    if (held.gone !== null) held.gone = { ...held.gone, epoch }\n',
        replace: '',
      },
    ],
  },
]

export const LOG_MUTANTS: readonly LogMutant[] = [...SYNCS, ...FRAMES, ...FILES, ...REPLACED]
