// Every byte of a small log is changed, one at a time. Each time the log is refused with file and
// position, or all of it is there: never less, and never anything else.

import t from 'tap'
import { JournalDamage } from '../damage.ts'
import { Appends, contents, isSame, openLog, type Written } from './testing/log-run.ts'
import { drawsOf, SimulatedDisk } from './testing/simulated-disk.ts'

/** A log of some files. Its bodies have no zeros: see the exception in opening.ts. */
async function writeLog(disk: SimulatedDisk, isClosed: boolean): Promise<Written[]> {
  const appends = new Appends(drawsOf(7))
  const log = await openLog(disk)
  const all: Written[] = []
  while (log.end.file < 3 || log.end.position < 1_500) {
    const { claims, groups } = appends.next()
    for (const { body } of groups) body.forEach((byte, i) => void (body[i] = byte || 1))
    await log.append(groups, claims)
    all.push(...claims, ...groups)
  }
  if (isClosed) await log.close()
  return all
}

/** What came of a log with one bit changed; throws where it came back otherwise. */
async function flipped(
  disk: SimulatedDisk,
  at: { readonly name: string; readonly byte: number },
  all: readonly Written[],
): Promise<'refused' | 'whole'> {
  const copy = disk.copy()
  copy.bytesOf(at.name)[at.byte]! ^= 1 << (at.byte % 8)
  try {
    const found = contents(copy, await openLog(copy))
    if (found.length !== all.length || !found.every((part, i) => isSame(part, all[i]))) {
      throw new Error(`${at.name}, byte ${at.byte}: ${found.length} parts of ${all.length}`)
    }
    return 'whole'
  } catch (error) {
    if (!(error instanceof JournalDamage)) throw error
    const names = `log/${at.name}: `
    if (error.message.startsWith(names) && /position \d/.test(error.message)) return 'refused'
    throw new Error(`${at.name}, byte ${at.byte}: ${error.message}`, { cause: error })
  }
}

for (const isClosed of [true, false]) {
  t.test(`any byte of a log that was ${isClosed ? 'closed' : 'not closed'}`, async (t) => {
    const disk = new SimulatedDisk()
    const all = await writeLog(disk, isClosed)
    const names = disk.list().filter((name) => !name.startsWith('spare-'))
    t.ok(names.length > 3 && names.includes('manifest.json'))
    const count = { refused: 0, whole: 0 }
    for (const name of names) {
      const { length } = disk.bytesOf(name)
      for (let byte = 0; byte < length; byte++) count[await flipped(disk, { name, byte }, all)]++
    }
    // Whole: only where nothing is written yet.
    t.ok(count.refused > 2 * count.whole && count.whole > 0, JSON.stringify(count))
  })
}
