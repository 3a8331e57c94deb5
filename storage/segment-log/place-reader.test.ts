// Bodies by their places: so many files are open at most, those that were used last, and none that
// was let go of.

import t from 'tap'
import { crc32 } from 'node:zlib'
import { LIMITS } from '../../config/limits.ts'
import { JournalDamage } from '../damage.ts'
import type { DiskFile } from './disk.ts'
import type { Place } from './frame.ts'
import { fileName } from './header.ts'
import { PlaceReader } from './place-reader.ts'
import { SimulatedDisk } from './testing/simulated-disk.ts'

/** A disk that knows what is open. */
class WatchedDisk extends SimulatedDisk {
  readonly opened: string[] = []
  readonly openNow = new Map<string, number>()

  override open(name: string): DiskFile {
    const file = super.open(name)
    this.opened.push(name)
    this.openNow.set(name, (this.openNow.get(name) ?? 0) + 1)
    const close = (): void => {
      const left = (this.openNow.get(name) ?? 0) - 1
      if (left < 0) throw new Error(`${name} is closed twice`)
      if (left === 0) this.openNow.delete(name)
      else this.openNow.set(name, left)
    }
    return { ...file, close }
  }
}

async function diskWith(files: number) {
  const disk = new WatchedDisk()
  const places: Place[] = []
  for (let file = 1; file <= files; file++) {
    const body = Buffer.from(`body of ${file}`)
    const written = await disk.create(fileName(file), 100)
    await written.writeSynced(10, [body])
    places.push({ file, position: 10, length: body.length, crc: crc32(body) })
  }
  return { disk, places, reader: new PlaceReader(disk) }
}

const { filesOpenMax } = LIMITS.segmentLog

t.test('so many files are open, those that were used last', async (t) => {
  const { disk, places, reader } = await diskWith(filesOpenMax + 3)
  for (const place of places.slice(0, filesOpenMax)) reader.read(place)
  t.equal(disk.openNow.size, filesOpenMax, 'as many as may be')
  t.equal(reader.read(places[0]!).toString(), 'body of 1')
  t.equal(disk.opened.length, filesOpenMax, 'one that is open is not opened again')
  for (const place of places.slice(filesOpenMax)) {
    t.equal(reader.read(place).toString(), `body of ${place.file}`)
    t.equal(disk.openNow.size, filesOpenMax)
  }
  t.ok(disk.openNow.has(fileName(1)), 'it was used')
  for (const file of [2, 3, 4]) t.notOk(disk.openNow.has(fileName(file)), 'the longest ago')
  t.equal(reader.read(places[1]!).toString(), 'body of 2')
  reader.close()
  t.equal(disk.openNow.size, 0)
})

t.test('one that is let go of is closed, and looked up again', async (t) => {
  const { disk, places, reader } = await diskWith(2)
  for (const place of places) reader.read(place)
  reader.forget(1)
  reader.forget(1)
  reader.forget(9)
  t.same([...disk.openNow.keys()], [fileName(2)])
  reader.read(places[0]!)
  t.equal(disk.opened.length, 3)
  reader.close()
  t.equal(disk.openNow.size, 0)
})

t.test('what is another is damage, and its file is not kept', async (t) => {
  const { disk, places, reader } = await diskWith(1)
  const [place] = places
  for (const wrong of [
    { ...place!, crc: place!.crc ^ 1 },
    { ...place!, position: 11 },
    { ...place!, position: 95 },
  ]) {
    t.throws(() => reader.read(wrong), JournalDamage)
    t.equal(disk.openNow.size, 0)
  }
  t.throws(() => reader.read({ ...place!, file: 7 }), JournalDamage)
  const opened = disk.opened.length
  t.equal(reader.read({ ...place!, file: 8, length: 0 }).length, 0, 'of nothing no file is read')
  t.equal(disk.opened.length, opened)
})
