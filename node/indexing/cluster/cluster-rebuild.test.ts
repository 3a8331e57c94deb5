// Who asks for the cluster's index to be made anew, what is written of it, and what is told of how
// far it is; registers and logs are numbers here.

import t from 'tap'
import { ClusterRebuild } from './cluster-rebuild.ts'

function stage(numbers: { live: number; next: number }, own: readonly number[] = [3]) {
  const gone = new Map<number, number>()
  const offsets = new Map<string, number>()
  const s = { numbers, own, gone, offsets, nowMs: 5, isLost: false }
  const rebuild = new ClusterRebuild({
    registers: {
      numbers: () => Promise.resolve(s.numbers),
      offset: (generation, shard) => Promise.resolve(offsets.get(`${generation}:${shard}`) ?? null),
      gone: (shard) => Promise.resolve(gone.get(shard) ?? 0),
      setGone: (generation, shard) => {
        if (!s.isLost) gone.set(shard, generation)
        return Promise.resolve()
      },
    },
    journal: {
      status: (shard) => ({ head: 10 + shard, epoch: 1, lastCommit: null }),
    },
    shards: 1,
    own: () => s.own,
    nowMs: () => s.nowMs,
  })
  return { ...s, s, rebuild }
}

t.test('a shard of its own says that the live one is not gone on with', async (t) => {
  const { rebuild, gone } = stage({ live: 4, next: 4 })
  await rebuild.rebuild()
  t.strictSame([...gone], [[3, 4]])
  t.match(await rebuild.rebuildProgress(), { state: 'filling', done: 0, total: 0, startedAt: 5 })
})

t.test('one that is on its way is let be, also by who could not ask for it', async (t) => {
  const { rebuild, gone } = stage({ live: 4, next: 5 }, [])
  await rebuild.rebuild()
  t.equal(gone.size, 0)
  const none = stage({ live: 0, next: 0 }, [])
  await none.rebuild.rebuild()
  t.equal(none.gone.size, 0, 'the first one is made anyhow')
})

t.test('a shard that moves meanwhile, and a member without one', async (t) => {
  const { rebuild, s } = stage({ live: 4, next: 4 })
  s.isLost = true
  await t.rejects(rebuild.rebuild(), /a shard has just moved/)
  t.equal((await rebuild.rebuildProgress()).state, 'idle')
  s.own = []
  await t.rejects(rebuild.rebuild(), /has no shard yet/)
})

t.test('how far it is: of what the live one has, all shards', async (t) => {
  const { rebuild, offsets, s } = stage({ live: 4, next: 5 })
  for (const [at, offset] of Object.entries({ '4:-1': 7, '4:0': 100, '5:-1': 9, '5:0': 30 })) {
    offsets.set(at, offset)
  }
  const filling = { state: 'filling', done: 37, total: 107, startedAt: 5 }
  t.strictSame(await rebuild.rebuildProgress(), filling)
  s.nowMs = 8
  t.strictSame(await rebuild.rebuildProgress(), filling, 'it began when it was seen first')
  s.numbers = { live: 5, next: 5 }
  t.equal((await rebuild.rebuildProgress()).state, 'idle')
  s.numbers = { live: 5, next: 6 }
  t.match(await rebuild.rebuildProgress(), { done: 0, total: 39, startedAt: 8 })
  s.numbers = { live: 0, next: 6 }
  t.match(await rebuild.rebuildProgress(), { done: 0, total: 19 }, 'none is read: of the log')
})

t.test(
  'what one member was asked for another tells, also one that was started since',
  async (t) => {
    const { rebuild, s } = stage({ live: 4, next: 4 }, [])
    t.equal((await rebuild.rebuildProgress()).state, 'idle')
    s.gone.set(0, 3)
    t.equal((await rebuild.rebuildProgress()).state, 'idle', 'of the one before')
    s.gone.set(0, 4)
    const filling = { state: 'filling', done: 0, total: 0, startedAt: 5 }
    t.strictSame(await rebuild.rebuildProgress(), filling)
    s.nowMs = 9
    t.strictSame(await rebuild.rebuildProgress(), filling)
    s.numbers = { live: 4, next: 5 }
    t.match(await rebuild.rebuildProgress(), { startedAt: 5 })
    s.numbers = { live: 5, next: 5 }
    t.equal((await rebuild.rebuildProgress()).state, 'idle')
  },
)
