// Nodes of changed actors are the same whether the state behind an entry is at hand or has to be
// folded, however the two take turns, and what is the runtime's stays as it is. Source: PROTOCOL
// 3.15, 3.18.

import { deepStrictEqual } from 'node:assert'
import fc from 'fast-check'
import t from 'tap'
import type { FeedEntry } from '../../../cluster/feed/log-follower.ts'
import {
  FeedStore,
  actorIdOf,
  decodeTestSnapshot,
} from '../../../cluster/feed/testing/feed-store.ts'
import { notebookBehaviour } from '../../../cluster/feed/testing/notebook.ts'
import { overrideLimits } from '../../../config/testing/override-limits.ts'
import type { ActorRecord, Behaviour } from '../../../protocol/behaviour.ts'
import { decodeEntry, type Entry, splitEntries } from '../../../protocol/entry/entry.ts'
import type { LogRow } from '../../../storage/journal.ts'
import { type NodeChange, NodeChanges } from './node-changes.ts'

interface Pile {
  readonly id: string
  readonly items: number[]
}

/** A state that is changed in place, and begins as a part of its first record. */
const PILES: Behaviour<Pile> = {
  ...(notebookBehaviour({ fold: false, project: false }) as unknown as Behaviour<Pile>),
  evolve(state, record, { actorId }) {
    const items = record['items'] as number[]
    if (state === null) return { id: actorId, items }
    state.items.push(...items)
    return state
  },
  isDeleted: () => false,
  toSnapshot: (state) => state,
  fromSnapshot: (snapshot) => snapshot as Pile,
  nodes: ({ id }) => [{ node: 'notebook', id }],
  project: ({ items }, ref) => ({ ...ref, doc: { items: [...items] } }),
}

const ACTORS = [actorIdOf(1, 0), actorIdOf(2, 0)]

const STEP = fc.record({
  actor: fc.nat(ACTORS.length - 1),
  items: fc.array(fc.nat(9), { minLength: 1, maxLength: 3 }),
  /** What its owner has of it still. */
  has: fc.constantFrom('state', 'state', 'state', 'entry', 'nothing'),
  /** It is taken before the next is committed, with all before. */
  isTaken: fc.nat(3).map((n) => n === 0),
  snapshots: fc.boolean(),
})
type Step = typeof STEP extends fc.Arbitrary<infer T> ? T : never

class Scene {
  readonly store = new FeedStore(PILES, { shards: 1, generation: 'g' })
  readonly states = new Map<string, Pile>()
  readonly matches
  /** Sizes of the actors as they were told last. */
  readonly told = new Map<string, number>()
  readonly #untaken: { readonly taken: FeedEntry; readonly items: readonly number[] }[] = []
  readonly #runtimes: (readonly [value: unknown, text: string])[] = []

  constructor() {
    const changes = new NodeChanges({
      behaviours: new Map([[PILES.type, PILES as Behaviour]]),
      derived: this.store.journal.derived,
      decodeSnapshot: decodeTestSnapshot,
      clock: {
        after() {
          throw new Error('all rows are there')
        },
      },
    })
    this.matches = changes.matcher({ types: ['notebook'] })!
  }

  async commit({ actor, items, has, snapshots }: Step): Promise<void> {
    const actorId = ACTORS[actor]!
    const record = (): ActorRecord => ({ t: 'piled', items: [...items] })
    const { shard, offset } = await this.store.commit([actorId, record()])
    const [{ body }] = (await this.store.journal.log.read(shard, offset - 1, 1)) as [LogRow]
    const bytes = splitEntries(body)[0]!
    await this.store.flush()
    if (snapshots) await this.store.snapshot(actorId)
    const state = { id: actorId, items: [...(this.states.get(actorId)?.items ?? []), ...items] }
    this.states.set(actorId, state)
    const entry = { ...decodeEntry(bytes), r: [record()] } as Entry
    const fresh = { entry, bytes, state: has === 'state' ? state : undefined, stateBytes: 1 }
    for (const one of [state, entry]) this.#runtimes.push([one, JSON.stringify(one)])
    const at = { shard, offset, bytes: bytes.length }
    const taken =
      has === 'nothing'
        ? { ...at, entry: decodeEntry(bytes), fresh: null }
        : { ...at, entry, fresh }
    this.#untaken.push({ taken, items: [...state.items] })
  }

  async takeAll(): Promise<void> {
    for (const { taken, items } of this.#untaken.splice(0)) {
      const actorId = taken.entry.p
      const [change] = (await this.matches(taken)) as [NodeChange]
      const [[type, id, doc]] = change.nodes as [NodeChange['nodes'][number]]
      const found = doc['items'] as number[]
      deepStrictEqual([change.actorId, type, id], [actorId, 'notebook', actorId])
      // Its newest state, or one between.
      deepStrictEqual(found, this.states.get(actorId)!.items.slice(0, found.length))
      const least = Math.max(items.length, this.told.get(actorId) ?? 0)
      if (found.length < least) throw new Error(`${found.length} items where ${least} were told`)
      this.told.set(actorId, found.length)
    }
    for (const [value, text] of this.#runtimes) deepStrictEqual(JSON.stringify(value), text)
  }
}

t.test('nodes do not depend on what is at hand, and never go back', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.array(STEP, { maxLength: 40 }), async (steps) => {
      const scene = new Scene()
      for (const step of steps) {
        await scene.commit(step)
        if (step.isTaken) await scene.takeAll()
      }
      await scene.takeAll()
    }),
    { numRuns: 300 },
  )
  t.pass()
})

t.test('where the state is at hand nothing is read or folded', async (t) => {
  t.teardown(overrideLimits({ 'live.queryActorsMax': 1 }))
  let folds = 0
  const evolve = PILES.evolve.bind(PILES)
  const scene = new Scene()
  for (const items of [[1], [2], [3]]) {
    const step = { actor: 0, items, has: 'state', isTaken: true, snapshots: false } as const
    await scene.commit(step)
    Object.assign(PILES, {
      evolve: (...of: Parameters<typeof evolve>) => {
        folds++
        return evolve(...of)
      },
    })
    await scene.takeAll()
    Object.assign(PILES, { evolve })
  }
  t.equal(folds, 0)
  t.equal(scene.told.get(ACTORS[0]!), 3)
})
