// One batch by itself: an actor of which a part can't be shown leaves nothing behind in it.

import t from 'tap'
import type { Entry } from '../../protocol/entry/entry.ts'
import type { FoldedActor } from './actor-states.ts'
import { ProjectionBatch } from './projection-batch.ts'
import type { ParkedActor } from './projection-batch.ts'
import { notebookBehaviour } from './testing/notebook.ts'
import type { Notebook } from './testing/notebook.ts'
import { A, C } from './testing/scene.ts'

const behaviour = notebookBehaviour({ fold: false, project: false })

/** A notebook with two notes; the one named `bad` can't be shown. */
function actorOf(actorId: string, note: string): FoldedActor {
  const project: typeof behaviour.project = (state, ref) => {
    if (ref.id === 'bad') throw new Error('not this one')
    return behaviour.project(state, ref)
  }
  let state: Notebook | null = null
  for (const record of [
    { t: 'opened', title: actorId },
    { t: 'noted', id: 'good', text: '1' },
    { t: 'noted', id: note, text: '2' },
  ]) {
    state = behaviour.evolve(state, record, { actorId } as never)
  }
  return { actorId, behaviour: { ...behaviour, project }, state, version: 3, bytes: 0, measured: 0 }
}

for (const placed of [false, true]) {
  t.test(`a part that can not be shown takes its actor alone, placed: ${placed}`, (t) => {
    const batch = new ProjectionBatch(placed)
    const parked: ParkedActor[] = []
    for (const [i, [actorId, note]] of [
      [A, 'bad'],
      [C, 'fine'],
    ].entries()) {
      const at = { shard: 0, offset: i + 1, bytes: 10 }
      const entry = { v: 0, r: [] } as unknown as Entry
      batch.touch(actorOf(actorId!, note!), entry, at, null)
    }
    const writes = batch.writes((one) => void parked.push(one))
    t.match(parked, [{ actorId: A, offset: 1, reason: 'Error: not this one' }])
    t.same(
      writes.map(({ actorId, id }) => [actorId, id]),
      [C, 'good', 'fine'].map((id) => [C, id]),
    )
    t.end()
  })
}
