// Members' graph indexes under everything at once: writes, late derived rows, trimming, shards that
// move, an engine that is away, refuses, is late or loses its indexes, in any order. In the end the
// index must be what the actors are, each list in its actor's order.

import { deepStrictEqual } from 'node:assert'
import t from 'tap'
import fc from 'fast-check'
import { overrideLimits } from '../../../config/testing/override-limits.ts'
import { SYSTEM_SHARD } from '../../../protocol/ids.ts'
import { actorIdOf } from '../../../cluster/feed/testing/feed-store.ts'
import { erased, noted, opened } from '../../../cluster/feed/testing/scene.ts'
import { ClusterScene } from '../testing/cluster-scene.ts'

// An index is filled an actor at a step, so that anything may come in between.
overrideLimits({ 'feed.projectorBatchEntries': 1, 'feed.refillReadsTogether': 1 })
overrideLimits({ 'feed.refillStepMs': 0, 'feed.refillKeptMs': 0, 'sharding.trimEveryMs': 0 })

const KINDS = [
  'write', 'write', 'write', 'write', 'time', 'time', 'flush', 'flush', 'snapshot', 'trim', 'move',
  'away', 'silent', 'late', 'busy', 'heal', 'lose',
] as const // prettier-ignore

interface Act {
  readonly kind: (typeof KINDS)[number]
  readonly actor: number
  readonly note: number
  readonly choice: number
}

const act: fc.Arbitrary<Act> = fc.record({
  kind: fc.constantFrom(...KINDS),
  actor: fc.nat(3),
  note: fc.nat(3),
  choice: fc.nat(9),
})

/** Actors and what became of them. */
class Play {
  readonly s = new ClusterScene()
  readonly late: (() => void)[] = []
  readonly #closed = new Map<string, boolean>()

  async act(a: Act): Promise<void> {
    const { s } = this
    const actorId = actorIdOf(a.actor, a.actor % 2)
    switch (a.kind) {
      case 'write':
        return this.#write(actorId, a)
      case 'time':
        return s.clock.advance(a.choice * 200)
      case 'flush':
        return s.store.flush(a.choice)
      case 'snapshot':
        await s.store.flush()
        return this.#closed.has(actorId) ? s.store.snapshot(actorId) : undefined
      case 'trim':
        return s.store.trim()
      case 'move':
        return s.gives(s.members[a.choice % 2]!, a.note === 3 ? SYSTEM_SHARD : a.note % 2)
      case 'lose':
        return a.choice < 3 ? this.#lose() : undefined
      default:
        return this.#fault(a.kind)
    }
  }

  async #write(actorId: string, { note, choice }: Act): Promise<void> {
    const { s } = this
    const closed = this.#closed.get(actorId)
    if (closed === true) return void (await s.commit([actorId]))
    this.#closed.set(actorId, closed !== undefined && choice === 0)
    if (closed === undefined) {
      await s.commit([actorId, opened('x'), noted('n2', 'first'), noted('n0', 'second')])
    } else if (choice === 0) {
      await s.commit([actorId, { t: 'closed', notes: ['n0', 'n1', 'n2', 'n3'] }])
    } else {
      const record = choice < 5 ? erased(`n${note}`) : noted(`n${note}`, `${choice}`)
      await s.commit([actorId, record], [actorId], [actorId, opened(`t${choice}`)])
    }
  }

  #lose(): void {
    this.s.memory.state.clear()
  }

  #fault(kind: Act['kind']): void {
    const { hooks } = this.s
    hooks.beforeBulk = undefined
    hooks.afterBulk = undefined
    hooks.beforeOther = undefined
    if (kind === 'away') {
      hooks.beforeBulk = () => 'away'
      hooks.beforeOther = () => 'away'
    } else if (kind === 'silent') hooks.afterBulk = () => 'away'
    else if (kind === 'busy') {
      hooks.beforeBulk = (items) => items.map((_, i) => (i % 2 === 0 ? 'busy' : null))
    } else if (kind === 'late') {
      hooks.beforeBulk = () => {
        hooks.beforeBulk = undefined
        const { promise, resolve } = Promise.withResolvers<void>()
        this.late.push(resolve)
        return { when: promise }
      }
    }
  }

  /** All is well again, and what was late comes at last. */
  async end(): Promise<void> {
    const { s } = this
    this.#fault('heal')
    await s.store.flush()
    await s.clock.advance(1_000)
    for (const resolve of this.late) resolve()
    const isLive = (): boolean => s.members.every(({ index }) => index.watch.generation > 0)
    const isOver = await s.until(() => s.isCaughtUp && isLive() && s.generations().length === 1)
    if (!isOver) throw new Error(`it does not come to an end: ${s.tell()}`)
    const expected = s.store.expected()
    deepStrictEqual(s.docs(), expected)
    for (const actorId of this.#closed.keys()) {
      const notes = [...expected.keys()].filter((key) => key.startsWith(`${actorId} note `))
      const ids = notes.map((key) => key.slice(`${actorId} note `.length))
      deepStrictEqual(s.order(actorId, 'note'), [...ids.entries()])
    }
    const parked = s.warnings.filter((text) => text.includes('parked'))
    if (parked.length > 0) throw new Error(parked[0])
    await s.close()
  }
}

t.setTimeout(290_000)

t.test('whatever fails on the way, the index ends as the actors are', async (t) => {
  t.setTimeout(280_000)
  await fc.assert(
    fc.asyncProperty(fc.boolean(), fc.array(act, { maxLength: 40 }), async (isReady, acts) => {
      const play = new Play()
      await play.s.start(SYSTEM_SHARD, 0)
      await play.s.start(1)
      if (isReady) await play.s.clock.advance(2_000)
      for (const a of acts) await play.act(a)
      await play.end()
    }),
    { numRuns: Number(process.env['INDEX_RUNS'] ?? 100) },
  )
})
