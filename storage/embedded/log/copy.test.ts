// A log copied while it is written to: at any moment of random runs (rolls, closes, starts, crashes
// that cut a frame off) the copy holds everything that was acknowledged before it was begun, in its
// order, and nothing that wasn't sent; and one that is broken off leaves what was there a log that
// can be started on, with all that it had.

import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { contents, GENERATION, isSame, openLog } from '../../segment-log/testing/log-run.ts'
import type { Written } from '../../segment-log/testing/log-run.ts'
import { drawsOf, SimulatedDisk } from '../../segment-log/testing/simulated-disk.ts'
import { JOURNAL_FORMAT } from '../../lmdb/layout.ts'
import { copyLog, type LogCopyReport } from './copy.ts'
import { recordRun, RacingDisk, type RecordedRun } from '../testing/racing-disk.ts'

const SEEDS = 30
const COPIES = 6
/** So often the source is read for a file that is there. */
const READS_OF_ONE = 3

const IDENTITY = {
  ...{ format: JOURNAL_FORMAT, shards: 4, generation: 'a-generation', secret: 's' },
  ...{ log: GENERATION, gaps: [] },
}

function folderFor(t: Test): string {
  const dir = mkdtempSync(join(tmpdir(), 'kontor-copy-'))
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

function copy(source: RacingDisk, dir: string, endsAfter: number): Promise<LogCopyReport> {
  return copyLog({
    source,
    identity: () => IDENTITY,
    folder: join(dir, 'log'),
    incoming: join(dir, 'log.new'),
    keep: () => void (source.readsLeft = endsAfter),
    pause: async () => source.wait(7),
  })
}

/** Everything in a copy, as a log that is started on it has it; the copy itself stays. */
async function contentsOf(dir: string): Promise<Written[]> {
  const disk = new SimulatedDisk()
  for (const name of readdirSync(join(dir, 'log'))) {
    const bytes = readFileSync(join(dir, 'log', name))
    if (name.endsWith('.seg')) {
      await (await disk.create(name, bytes.length)).writeSynced(0, [bytes])
    } else await disk.replace(name, bytes.toString())
  }
  return contents(disk, await openLog(disk))
}

function filesIn(dir: string): number {
  return existsSync(join(dir, 'log')) ? readdirSync(join(dir, 'log')).length : 0
}

/** What is found is at least so much of one of the runs, and nothing else. */
function isOf({ sent }: RecordedRun, found: readonly Written[], least: number): boolean {
  return sent.some((run) => {
    const isWhole = found.length >= least && found.length <= run.length
    return isWhole && found.every((part, i) => isSame(part, run[i]))
  })
}

interface Ran {
  files: number
  brokenOff: number
}

/** Copies at moments of one run, each into what the one before has left. */
async function seedHolds(t: Test, seed: number): Promise<Ran> {
  const draw = drawsOf(seed)
  const recorded = await recordRun(draw)
  const { moments } = recorded
  const dir = folderFor(t)
  const ran = { files: 0, brokenOff: 0 }
  let least: number | null = null
  let at = 0
  for (let i = 0; i < COPIES; i++) {
    at += 30 + Math.floor((draw() * moments.length) / COPIES)
    if (at >= moments.length) break
    const begun = at
    const stepsMax = draw() < 0.3 ? 1 : 1 + Math.floor(draw() * 4)
    const endsAfter =
      draw() < 0.6 ? filesIn(dir) * READS_OF_ONE + Math.floor(draw() * 15) : Infinity
    const disk = new RacingDisk({ recorded, draw, at, stepsMax })
    try {
      const { copied } = await copy(disk, dir, endsAfter)
      least = moments[begun]!.acknowledged
      ran.files += copied.files
    } catch (error) {
      if ((error as Error).message !== 'the reader was ended') throw error
      ran.brokenOff++
    }
    at = disk.at
    if (least === null) continue
    const found = await contentsOf(dir)
    if (!isOf(recorded, found, least)) {
      throw new Error(`seed ${seed}, copy ${i}: ${found.length} found, of ${least} at least`)
    }
  }
  return ran
}

t.test('a copy begun at any moment has all that was acknowledged before it', async (t) => {
  const all = { files: 0, brokenOff: 0 }
  for (let seed = 1; seed <= SEEDS; seed++) {
    const { files, brokenOff } = await seedHolds(t, seed)
    all.files += files
    all.brokenOff += brokenOff
  }
  t.ok(all.files > SEEDS * COPIES, `${all.files} files were copied`)
  t.ok(all.brokenOff > SEEDS / 2, `${all.brokenOff} copies were broken off`)
})
