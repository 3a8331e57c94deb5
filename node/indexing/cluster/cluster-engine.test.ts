// A member's graph index on a real Elasticsearch: what is written is read, an engine that stops is
// waited out, a document that its mapping refuses parks its actor, an index that is deleted comes
// back. Faults that a server can't be made to have are on the twin (cluster-index.test.ts).

import t, { type Test } from 'tap'
import type { ActorRecord, Behaviour } from '../../../protocol/behaviour.ts'
import { RequestError } from '../../../protocol/errors.ts'
import { FULL_ACCESS } from '../../../protocol/graph/planning.ts'
import { planNavigations } from '../../../protocol/graph/navigation.ts'
import { graphSchema } from '../../../protocol/graph/schema.ts'
import { SYSTEM_SHARD, type Position } from '../../../protocol/ids.ts'
import { LIMITS } from '../../../config/limits.ts'
import { systemClock } from '../../../cluster/clock.ts'
import { FeedStore, decodeTestSnapshot } from '../../../cluster/feed/testing/feed-store.ts'
import { notebookBehaviour } from '../../../cluster/feed/testing/notebook.ts'
import { A, B, C, erased, noted, opened } from '../../../cluster/feed/testing/scene.ts'
import { ElasticClient } from '../../../storage/elastic/client.ts'
import { engine, ownEngine, type EngineAddress } from '../../../test/harness/engines.ts'
import { until } from '../../../test/harness/patience.ts'
import { type ClusterIndex, startClusterIndex } from './cluster-index.ts'

t.setTimeout(290_000)

type Records = readonly (readonly [string, ...ActorRecord[]])[]

const CALLER = { group: 'client/test', name: 's' }

/** Notebooks whose size is no number when their title says so: a mistake of a version. */
function behaviourOf(): Behaviour {
  const own = notebookBehaviour({ fold: false, project: false }) as Behaviour
  return {
    ...own,
    project(state, ref) {
      const node = own.project(state, ref)
      if (node?.doc['title'] !== 'refused') return node
      return { ...node, doc: { ...node.doc, size: 'many' } }
    },
  }
}

class Scene {
  readonly store: FeedStore
  readonly index: ClusterIndex
  readonly warnings: string[] = []
  readonly clock = systemClock()
  readonly prefix: string
  readonly client: ElasticClient
  readonly #behaviour = behaviourOf()

  constructor({ host, port }: EngineAddress, name: string) {
    this.prefix = `${name}-${process.pid}-`
    this.store = new FeedStore(this.#behaviour, { shards: 2, generation: 'g1' })
    const urls = [`http://${host}:${port}`]
    this.client = new ElasticClient({ urls })
    const note = (_: object, text: string): unknown => this.warnings.push(text)
    this.index = startClusterIndex({
      journal: this.store.journal,
      engine: new ElasticClient({ urls }),
      prefix: this.prefix,
      schema: graphSchema(this.#behaviour.nodeTypes),
      behaviours: new Map([['notebook', this.#behaviour]]),
      clock: this.clock,
      log: { debug: () => undefined, info: () => undefined, warn: note, error: note },
      flushed: () => null,
      serves: () => true,
      decodeSnapshot: decodeTestSnapshot,
    })
  }

  async start(t: Test): Promise<void> {
    // The system's clock never keeps a process alive.
    const alive = setInterval(() => undefined, 1_000)
    t.teardown(() => this.clear().finally(() => clearInterval(alive)))
    for (const shard of [SYSTEM_SHARD, 0, 1]) {
      this.index.gained(shard, await this.store.claim(shard), 0)
    }
    await this.ready()
  }

  ready(): Promise<void> {
    return until('the index is read', () => this.index.watch.unready() === null, 120_000)
  }

  async commit(...entries: Records): Promise<Position> {
    const at = await this.store.commit(...entries)
    const first = at.offset - entries.length + 1
    const [row] = await this.store.journal.log.read(at.shard, first - 1, 1)
    const some = Array.from<never>({ length: entries.length })
    this.index.committed(at.shard, some, first, row!.body)
    return at
  }

  async reached(...positions: Position[]): Promise<boolean> {
    return this.index.watch.reached(positions, 60_000)
  }

  async titles(): Promise<string> {
    const body = [{ edge: 'notebooks', orderBy: 'title', node: { fields: ['title'] } }]
    const options = { nowMs: this.clock.nowMs(), limits: LIMITS.graph }
    const schema = graphSchema(this.#behaviour.nodeTypes)
    const plan = planNavigations(body, schema, FULL_ACCESS, options)
    const ready = { plan, json: '', usesHistory: false }
    const json = await this.index.runner.run(
      ready,
      30_000,
      () => this.index.watch.generation,
      CALLER,
    )
    const { notebooks } = JSON.parse(json) as { notebooks: { title: string }[] }
    return notebooks.map(({ title }) => title).join(' ')
  }

  async clear(): Promise<void> {
    await this.index.close()
    const bound = { timeoutMs: 60_000 }
    for (const { name } of await this.client.indexes(this.prefix, bound)) {
      await this.client.deleteIndex(name, bound)
    }
    await this.client.close()
  }
}

async function sharedScene(t: Test, name: string): Promise<Scene | null> {
  const address = await engine('elasticsearch')
  if ('skipped' in address) {
    t.pass(address.skipped, { skip: address.skipped })
    return null
  }
  const s = new Scene(address, name)
  await s.start(t)
  return s
}

const codeOf = async (work: Promise<unknown>): Promise<string> => {
  try {
    return String(await work)
  } catch (error) {
    return error instanceof RequestError ? error.errors[0]!.code : String(error)
  }
}

t.test('what is committed is read by its token; what is refused is parked', async (t) => {
  t.setTimeout(280_000)
  const s = await sharedScene(t, 'parked')
  if (s === null) return
  const at = await s.commit([A, opened('one'), noted('n', 'x')], [C, opened('three')])
  const other = await s.commit([B, opened('two')])
  t.equal(await s.reached(at, other), true)
  t.equal(await s.titles(), 'one three two')

  const refused = await s.commit([A, opened('refused')], [C, opened('third')])
  t.equal(await s.reached(refused), true)
  t.equal(await s.titles(), 'one third two')
  const [row] = await s.store.journal.derived.parked(0, 'index-1')
  t.match(Buffer.from(row!.body).toString(), /failed to parse field \[size\]/)

  await s.commit([A, opened('first'), erased('n')])
  await s.store.flush()
  s.index.retryParked()
  await until('the actor returns', () => s.index.numbers.parked === 0, 60_000)
  t.equal(await s.reached(await s.commit([A, noted('m', 'y')])), true)
  t.equal(await s.titles(), 'first third two')
  t.strictSame(await s.store.journal.derived.parked(0, 'index-1'), [])
})

t.test('an index that is deleted comes back from the journal', async (t) => {
  t.setTimeout(280_000)
  const s = await sharedScene(t, 'deleted')
  if (s === null) return
  t.equal(await s.reached(await s.commit([A, opened('one'), noted('n', 'x')])), true)
  await s.store.flush()
  await s.client.deleteIndex(`${s.prefix}note-1`, { timeoutMs: 60_000 })
  await until('a successor is read', () => s.index.watch.generation === 2, 120_000)
  t.equal(await s.titles(), 'one')
  const aliases = (await s.client.indexes(s.prefix, { timeoutMs: 60_000 }))
    .filter((index) => index.aliases.includes(`${s.prefix}notebook`))
    .map(({ name }) => name)
  t.strictSame(aliases, [`${s.prefix}notebook-2`], 'the alias has moved')
})

t.test('an engine that stops is waited out', async (t) => {
  t.setTimeout(280_000)
  const own = await ownEngine(t, 'elasticsearch')
  if ('skipped' in own) {
    t.pass(own.skipped, { skip: own.skipped })
    return
  }
  const s = new Scene(own, 'stopped')
  await s.start(t)
  t.equal(await s.reached(await s.commit([A, opened('one')])), true)
  await own.kill()
  for (let i = 0; i < 50; i++) await s.commit([A, opened(`${i}`)], [C, opened(`c${i}`)])
  const last = await s.commit([B, opened('two')])
  await s.store.flush()
  await until('it is noticed', () => s.warnings.length > 0)
  t.equal(await codeOf(s.titles()), 'UNAVAILABLE')
  t.equal(s.index.lag().entries, 101)
  await own.start()
  await s.ready()
  await until('it has caught up', () => s.index.lag().entries === 0, 60_000)
  t.equal(await s.reached(last), true)
  t.equal(await s.titles(), '49 c49 two')
  t.equal(s.index.watch.generation, 1, 'the same index goes on')
})
