// A file filled ahead: there when the log rolls, made then where it could not be made before, and
// gone from the disk when nobody takes it.

import t from 'tap'
import { SpareAhead, fillSpare, removeSpares } from './spare.ts'
import { failure, SimulatedDisk } from './testing/simulated-disk.ts'

t.test('what was filled ahead is taken, once', async (t) => {
  const disk = new SimulatedDisk()
  const made: number[] = []
  const ahead = new SpareAhead(disk, (bytes) => made.push(bytes) > 0)
  ahead.fill(1_000)
  ahead.fill(2_000)
  const first = await ahead.take(1_000)
  t.equal(first.bytes, 1_000, 'one at a time is filled')
  t.same(made, [1_000])
  t.equal(first.file.bytes(), 1_000)
  t.ok(disk.exists(first.name))
  t.match(first.name, first.salt.toString('hex'))
  const second = await ahead.take(1_000)
  t.not(second.name, first.name)
  t.same(disk.list().toSorted(), [first.name, second.name].toSorted())
})

t.test('one that is too small is made anew, and goes', async (t) => {
  const disk = new SimulatedDisk()
  const ahead = new SpareAhead(disk, () => true)
  ahead.fill(1_000)
  const taken = await ahead.take(1_001)
  t.equal(taken.bytes, 1_001)
  t.same(disk.list(), [taken.name])
  ahead.fill(2_000)
  t.equal((await ahead.take(1_000)).bytes, 2_000, 'a larger one will do')
})

t.test('what could not be made ahead is tried again when it is needed', async (t) => {
  const disk = new SimulatedDisk()
  let mayMake = false
  const asked: number[] = []
  const ahead = new SpareAhead(disk, (bytes) => asked.push(bytes) > 0 && mayMake)
  ahead.fill(1_000)
  await t.rejects(ahead.take(500), { code: 'ENOSPC' })
  t.same(asked, [1_000, 500])
  t.same(disk.list(), [])
  ahead.fill(1_000)
  mayMake = true
  t.equal((await ahead.take(500)).bytes, 500)
})

t.test('a disk that is full keeps nothing of it', async (t) => {
  const disk = new SimulatedDisk({ bytesMax: 1_500 })
  const spare = await fillSpare(disk, 1_000)
  await t.rejects(fillSpare(disk, 1_000), { code: 'ENOSPC' })
  t.same(disk.list(), [spare.name])
  const create = disk.create.bind(disk)
  disk.create = async (name, bytes) => {
    await create(name, bytes)
    throw failure('EIO')
  }
  await t.rejects(fillSpare(disk, 100), { code: 'EIO' })
  t.same(disk.list(), [spare.name], 'nor of one that fails half way')
})

t.test('nothing is left behind a close, and of writers before', async (t) => {
  const disk = new SimulatedDisk()
  const ahead = new SpareAhead(disk, () => true)
  ahead.fill(1_000)
  await ahead.close()
  await ahead.close()
  t.same(disk.list(), [])
  const { name } = await fillSpare(disk, 10)
  for (const other of ['rewrite-1', '00000001.seg', 'manifest.json']) {
    await disk.replace(other, 'text')
  }
  t.ok(disk.exists(name))
  removeSpares(disk)
  t.same(disk.list().toSorted(), ['00000001.seg', 'manifest.json'])
})
