// Clients that ask the same stand on one list: each is told, frame by frame, what it is told where
// it stands alone, and never what only others may see.

import fc from 'fast-check'
import t from 'tap'
import { settle } from '../../../cluster/testing/harness.ts'
import { LIMITS } from '../../../config/limits.ts'
import { type Acl, OWNER_ACL, aclOfLists } from '../../../protocol/ace.ts'
import { planNavigations } from '../../../protocol/graph/navigation.ts'
import { graphSchema } from '../../../protocol/graph/schema.ts'
import { graphAccess } from '../../graph/access.ts'
import { livePositions } from './live-positions.ts'
import { countingChance } from './testing/counting-chance.ts'
import {
  FakeClient,
  ITEM,
  type Item,
  ItemStore,
  LiveMember,
  STORE,
  itemId,
} from './testing/live-stage.ts'

const ITEMS = 8
const CLIENTS = 4

/** All, and those who see some of the nodes, or one field less. */
const ACLS: readonly Acl[] = [
  OWNER_ACL,
  aclOfLists([['graph/item:field', ...[0, 1, 2, 3].map((n) => `graph/item/${itemId(n)}:query`)]]),
  aclOfLists([['graph/item:field', ...[2, 3, 4, 5].map((n) => `graph/item/${itemId(n)}:query`)]]),
]

const fields = ['itemId', 'rank', 'state']
const QUERIES = [
  { edge: 'items', filter: `state == 'a'`, orderBy: 'rank desc', limit: 2, node: { fields } },
  { edge: 'items', filter: `state == 'a'`, orderBy: 'rank desc', limit: 3, node: { fields } },
  { edge: 'items', orderBy: 'rank', limit: 2, node: { fields: ['itemId'] } },
]

const item: fc.Arbitrary<Item | null> = fc.option(
  fc.record({ state: fc.constantFrom('a', 'b'), rank: fc.nat(4) }),
  { freq: 5 },
)
const client = fc.nat(CLIENTS - 1)
const told = fc.oneof(
  { weight: 5, arbitrary: fc.tuple(fc.constant('change' as const), fc.nat(ITEMS - 1), item) },
  { weight: 2, arbitrary: fc.tuple(fc.constant('open' as const), client, fc.nat(2)) },
  fc.tuple(fc.constant('end' as const), client),
  fc.tuple(fc.constant('takes' as const), client, fc.boolean()),
  fc.tuple(fc.constant('may' as const), client, fc.nat(ACLS.length - 1)),
  fc.tuple(fc.constant('gap' as const)),
  fc.tuple(fc.constant('settle' as const)),
)
/** And changes that the index has, and the feed has not told of yet. */
const event = fc.oneof(
  { weight: 1, arbitrary: fc.tuple(fc.constant('untold' as const), fc.nat(ITEMS - 1), item) },
  { weight: 9, arbitrary: told },
)
type Event = typeof event extends fc.Arbitrary<infer E> ? E : never

/** Clients on a member of their own each, or all on one. */
class Scene {
  readonly store = new ItemStore()
  readonly clients: readonly FakeClient[]
  readonly acls: Acl[] = Array.from({ length: CLIENTS }, () => OWNER_ACL)
  /** What each asks; null: nothing. */
  readonly asked: ((typeof QUERIES)[number] | null)[] = this.acls.map(() => null)
  readonly #members: readonly LiveMember[]

  constructor(isShared: boolean) {
    const members = this.acls.map(() => new LiveMember(this.store))
    this.#members = isShared ? [members[0]!] : members
    this.clients = members.map((own) => new FakeClient(isShared ? members[0]! : own, OWNER_ACL))
  }

  async does(event: Event): Promise<void> {
    const [kind, which, what] = event
    if (kind === 'settle') await this.settled()
    else if (kind === 'change' || kind === 'untold') {
      this.store.set(which, what)
      if (kind === 'change') for (const member of this.#members) member.tell(false)
    } else if (kind === 'gap') for (const member of this.#members) member.tell(true)
    else this.#client(kind, which, what)
  }

  #client(kind: 'open' | 'end' | 'takes' | 'may', n: number, what?: number | boolean): void {
    const one = this.clients[n]!
    if (kind === 'takes') one.takes(what as boolean)
    else if (kind === 'may') {
      this.acls[n] = ACLS[what as number]!
      one.may(this.acls[n])
    } else {
      if (this.asked[n] !== null) one.say({ type: 'deleteLiveQuery', liveQueryId: 'q' })
      const query = kind === 'open' ? QUERIES[what as number]! : null
      this.asked[n] = query
      if (query !== null) one.say({ type: 'createLiveQuery', liveQueryId: 'q', query })
    }
  }

  async settled(): Promise<void> {
    for (const { clock } of this.#members) await clock.advance(LIMITS.live.queryRowsMs * 4)
    await settle()
  }

  /** What the graph answers to what a client asks. */
  right(n: number): unknown {
    const access = graphAccess(this.acls[n]!, 'any')
    const options = { nowMs: 0, limits: LIMITS.graph }
    const plan = planNavigations([this.asked[n]], graphSchema([ITEM]), access, options)
    return (JSON.parse(this.store.ask(plan)) as { items: unknown }).items
  }
}

const { decode } = livePositions(STORE, countingChance())

/** With what its position says: it is sealed anew each time. */
function opened(frame: Readonly<Record<string, unknown>>): object {
  const { offsets, digest } = decode(String(frame['position'])) ?? { offsets: [], digest: null }
  return { ...frame, position: [...offsets, digest] }
}

t.test('each client is told what it is told where it stands alone', async (t) => {
  const property = fc.asyncProperty(fc.array(told, { maxLength: 30 }), async (events) => {
    const scenes = [new Scene(true), new Scene(false)]
    for (const scene of scenes) {
      for (const one of events) {
        await scene.does(one)
        await scene.settled()
      }
    }
    const [shared, alone] = scenes.map(({ clients }) => clients.map(({ sent }) => sent.map(opened)))
    return JSON.stringify(shared) === JSON.stringify(alone)
  })
  await fc.assert(property, { numRuns: 100 })
  t.pass('so it is')
})

t.test('whatever comes while lists are read, clients have what the graph has', async (t) => {
  const property = fc.asyncProperty(fc.array(event, { maxLength: 40 }), async (events) => {
    const scene = new Scene(true)
    for (const one of events) await scene.does(one)
    for (const one of scene.clients) one.takes(true)
    await scene.does(['change', 0, null])
    await scene.settled()
    return scene.clients.every((one, n) => {
      const has = scene.asked[n] === null || JSON.stringify(one.list)
      return has === true || has === JSON.stringify(scene.right(n))
    })
  })
  await fc.assert(property, { numRuns: 200 })
  t.pass('so they have')
})

t.test('who is slow is told all that lies between, and goes on from there elsewhere', async (t) => {
  const scene = new Scene(true)
  const [fast, slow] = scene.clients as [FakeClient, FakeClient]
  const ask = async (one: FakeClient, resume?: unknown): Promise<void> => {
    one.say({ type: 'createLiveQuery', liveQueryId: 'q', query: QUERIES[0], resume })
    await scene.settled()
  }
  const rank = async (n: number, to: number): Promise<void> => {
    await scene.does(['change', n, { state: 'a', rank: to }])
    await scene.settled()
  }
  await rank(1, 1)
  await ask(fast)
  await ask(slow)
  slow.takes(false)
  await rank(2, 2)
  t.equal(slow.sent.length, 1)
  await rank(3, 3)
  slow.takes(true)
  t.strictSame(slow.list, fast.list)
  t.match(slow.list, [{ rank: 3 }, { rank: 2 }])
  const positions = [fast, slow].map(({ sent }) => sent.at(-1)!['position'] as string)
  t.strictSame(decode(positions[0]!), decode(positions[1]!))
  t.not(positions[0], positions[1], 'nor do two alike say that nothing was written between them')
  const [, , third, fourth] = scene.clients as [unknown, unknown, FakeClient, FakeClient]
  await ask(third, positions[0])
  t.equal(third.sent[0]!['nodes'], undefined, 'the list is the same')
  scene.store.set(4, { state: 'a', rank: 4 })
  await ask(fourth, positions[0])
  t.match(fourth.sent[0]!['nodes'], [{ rank: 4 }, { rank: 3 }], 'what the index has is waited for')
})
