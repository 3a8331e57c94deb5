// The one owner of a store: it has every shard, and the store alone ends that.

import t from 'tap'
import { SYSTEM_SHARD } from '../../protocol/ids.ts'
import type { LogStore } from '../../storage/journal.ts'
import { SoleOwnership } from './sole.ts'
import { FakeHost, makeRows } from './testing/fake-host.ts'

function makeSole(epochNow: LogStore['epochNow']) {
  const host = new FakeHost()
  const lost: string[] = []
  const { clock } = makeRows()
  const log = { epochNow } as LogStore
  const named = { member: 'me', incarnation: 'inc-me', address: '', version: '1' }
  const onLost = (shard: number, why: string): void => void lost.push(`${shard} ${why}`)
  const sole = new SoleOwnership({ ...named, shards: 2, log, clock, onLost }, host)
  return { host, lost, sole }
}

for (const how of ['at once', 'later'] as const) {
  t.test(`a read: the store says ${how} whose the shard is now`, async (t) => {
    let epoch = 3
    const { host, sole, lost } = makeSole(() =>
      how === 'at once' ? epoch : Promise.resolve(epoch),
    )
    const shard = host.served(1, 3)
    t.equal(await sole.mayRead(1, 3), true)
    t.equal(shard.state, 'serving')
    epoch = 4
    t.equal(await sole.mayRead(1, 3), false)
    t.equal(shard.state, 'stopped', 'another process has the store: nobody else would tell')
    t.equal(await sole.mayRead(0, 3), false, 'nor is anything wrong with one that has gone')
    sole.steppedDown(1, 'as asked')
    t.same(lost, ['1 as asked'])
  })
}

t.test('every shard is opened, and then served', async (t) => {
  const { host, sole } = makeSole(() => 1)
  host.script.claim = async () => {
    t.equal(host.shards.size, 3, 'one that is not claimed yet holds what comes for it')
  }
  for (const shard of [SYSTEM_SHARD, 0, 1]) t.equal(host.tenure(shard), null)
  // Embedded, the store issues the epochs.
  const fake = host.open.bind(host)
  host.open = (number) => {
    const opened = fake(number)
    const claim = opened.claim.bind(opened)
    opened.claim = (tenure) => claim(tenure ?? { epoch: 1, segment: 0 })
    return opened
  }
  await sole.start()
  const did = [SYSTEM_SHARD, 0, 1].map((shard) => `serving ${shard}`)
  t.same(host.did.filter((what) => what.startsWith('serving')).toSorted(), did.toSorted())
})
