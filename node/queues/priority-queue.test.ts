// The priority queue against a sorted list, over random additions and removals.

import t from 'tap'
import { PriorityQueue } from './priority-queue.ts'
import type { Queued } from './priority-queue.ts'

t.test('the lowest rank is first, whatever was added and removed before', async (t) => {
  let seed = 7
  const random = (below: number): number => {
    seed = (seed * 69_069 + 1) >>> 0
    return Math.floor((seed / 2 ** 32) * below)
  }
  const queue = new PriorityQueue<string>()
  let model: Queued<string>[] = []
  let wrong = 0
  for (let step = 0; step < 20_000; step++) {
    const kind = random(3)
    const queued = kind === 0 ? model[random(model.length)] : queue.first
    if (kind === 1 || queued === undefined) {
      const rank = random(50)
      model.push(queue.add(rank, `${step}`))
    } else {
      if (!queue.remove(queued) || queue.remove(queued)) wrong++
      model = model.filter((other) => other !== queued)
    }
    const least = model.reduce((least, { rank }) => Math.min(least, rank), Infinity)
    if ((queue.first?.rank ?? Infinity) !== least || queue.size !== model.length) wrong++
    if (step % 500 === 499) while (model.length > 200) queue.remove(model.pop()!)
  }
  t.equal(wrong, 0)
  const ranks: number[] = []
  for (let next = queue.first; next !== undefined; next = queue.first) {
    ranks.push(next.rank)
    queue.remove(next)
  }
  t.same(
    ranks,
    model.map(({ rank }) => rank).toSorted((a, b) => a - b),
  )
})
