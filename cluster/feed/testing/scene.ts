// A projector on the twins with something to follow: the stage of its tests.

import type { ActorRecord } from '../../../protocol/behaviour.ts'
import type { ParkedActor } from '../projection-batch.ts'
import { Projector } from '../projector.ts'
import type { ProjectorLimits, Step } from '../projector-options.ts'
import { FeedStore, PlainIndex, actorIdOf, decodeTestSnapshot } from './feed-store.ts'
import { type Defects, notebookBehaviour } from './notebook.ts'

export const opened = (title: string): ActorRecord => ({ t: 'opened', title })
export const noted = (id: string, text: string): ActorRecord => ({ t: 'noted', id, text })
export const erased = (id: string): ActorRecord => ({ t: 'erased', id })

export const A = actorIdOf(1, 0)
export const B = actorIdOf(2, 1)
export const C = actorIdOf(3, 0)

export interface Scene {
  readonly store: FeedStore
  readonly index: PlainIndex
  readonly defects: Defects
  readonly parked: ParkedActor[]
  readonly unparked: string[]
  generation: string
  /** Somebody waits for the index. */
  isAwaited: boolean
  /** No row of a parked actor becomes durable. */
  refusesRows: boolean
  projector(limits?: Partial<ProjectorLimits>): Projector
}

export function scene(index = new PlainIndex()): Scene {
  const defects = { fold: true, project: true }
  const store = new FeedStore(notebookBehaviour(defects), { shards: 2, generation: 'g1' })
  const parked: ParkedActor[] = []
  const unparked: string[] = []
  const { log, derived } = store.journal
  const made: Scene = {
    store,
    index,
    defects,
    parked,
    unparked,
    generation: 'g1',
    isAwaited: false,
    refusesRows: false,
    projector: (limits = {}) =>
      new Projector({
        behaviours: new Map([['notebook', notebookBehaviour(defects)]]),
        log,
        derived,
        index,
        decodeSnapshot: decodeTestSnapshot,
        shards: 2,
        park: async (actor) => {
          if (made.refusesRows) throw new Error('not now')
          parked.push(actor)
        },
        unpark: async (actor) => {
          unparked.push(actor.actorId)
        },
        pause: () => Promise.resolve(),
        isAwaited: () => made.isAwaited,
        clock: () => 0,
        limits,
      }),
  }
  return made
}

export async function started(s: Scene, limits?: Partial<ProjectorLimits>): Promise<Projector> {
  const projector = s.projector(limits)
  await projector.start(s.store.heads, s.generation)
  return projector
}

/** Steps until there is nothing left to do; the index's rows must then be the actors' nodes. */
export async function follow(s: Scene, projector: Projector): Promise<Step[]> {
  const steps: Step[] = []
  for (let i = 0; i < 1_000; i++) {
    const step = await projector.step(s.store.heads)
    steps.push(step)
    if (step.next === 'idle') return steps
    if (step.next === 'later') return steps
  }
  throw new Error('the projector does not come to an end')
}
