// Where keys lead to, against the plain rule: by the newest entry that was decided and not dropped,
// whatever of it is durable, and whatever reads of the store are on their way meanwhile. Source:
// PROTOCOL 3.6 "Reads ahead of a turn", ARCHITECTURE 4.

import t from 'tap'
import fc from 'fast-check'
import { LIMITS } from '../../../config/limits.ts'
import type { Entry, KeyChange } from '../../../protocol/entry/entry.ts'
import type { AliasRow, DerivedStore } from '../../../storage/journal.ts'
import { KeyTable, holderOf, idOf } from './keys.ts'

const KEYS = ['K', 'L'] as const
type Key = (typeof KEYS)[number]

interface Change {
  readonly key: Key
  readonly kind: KeyChange['change']
  readonly actor: string
  /** Its own message; of a confirmation or a free: the one that it speaks of. */
  readonly message: string
}

/** One who claims a key, as `actor/message`, and whether that is confirmed. */
type Claims = ReadonlyMap<string, boolean>

/** The rule. */
function changed(before: Claims, { kind, actor, message }: Change): Claims {
  const after = new Map(before)
  const name = `${actor}/${message}`
  switch (kind) {
    case 'take':
      return new Map([[name, true]])
    case 'claim':
      for (const other of before.keys()) if (!other.startsWith(`${actor}/`)) after.delete(other)
      after.delete(name)
      return after.set(name, false)
    case 'confirm':
      return before.has(name) ? after.set(name, true) : after
    case 'free':
      after.delete(name)
      return after
  }
}

function claimsOf(row: AliasRow | null): string {
  const claims = row?.claims ?? []
  const named = claims.map((c) => [`${c.actorId}/${c.messageId}`, c.confirmed] as const)
  return JSON.stringify(named.toSorted())
}

interface Decided {
  readonly key: Key
  readonly row: AliasRow
  /** As the rule has it right after this entry. */
  readonly ought: Claims
}

interface Read {
  readonly key: Key
  /** The row as it was when the read was sent. */
  readonly before: AliasRow | null
  readonly answer: (row: AliasRow | null) => void
  readonly fail: () => void
}

/** A table over a store whose reads end when the test says so. */
class Scene {
  readonly reads: Read[] = []
  readonly #stored = new Map<string, AliasRow>()
  readonly #table: KeyTable
  /** By their offsets, from 1 on. */
  readonly #decided: Decided[] = []
  #head = 0
  /** Up to here rows are in the store, and up to here it is known. */
  #written = 0
  #flushed = 0
  /** The speculation: what was asked before a rollback is void. */
  #speculation = 0
  /** What the last look found. */
  seen: string | null = null
  wrong: string | null = null

  constructor() {
    const alias = (keyType: string, key: string): Promise<AliasRow | null> => {
      const before = this.#stored.get(idOf(keyType, key)) ?? null
      return new Promise((answer, reject) => {
        const fail = (): void => reject(new Error('the store is away'))
        this.reads.push({ key: key as Key, before, answer, fail })
      })
    }
    this.#table = new KeyTable({ alias } as unknown as DerivedStore)
  }

  #ought(key: Key): Claims {
    return this.#decided.findLast((one) => one.key === key)?.ought ?? new Map()
  }

  /** Looks a key up, and decides what rests on it there and then. */
  ask(key: Key, change: Change | null): void {
    const speculation = this.#speculation
    const use = (row: AliasRow | null): void => {
      if (speculation !== this.#speculation) return
      const ought = JSON.stringify([...this.#ought(key)].toSorted())
      this.seen = claimsOf(row)
      if (this.seen !== ought) this.wrong ??= `${key} has ${this.seen}, not ${ought}`
      if (change) this.#decide(change, row)
    }
    const looking = this.#table.lookup('ledger', key, use)
    if (looking instanceof Promise) looking.catch(() => undefined)
  }

  #decide(change: Change, base: AliasRow | null): void {
    const { key, kind, actor: actorId, message: by } = change
    const keyChange = { keyType: 'ledger', key, actorId, change: kind, by } as KeyChange
    const entry = { k: [keyChange], m: by, c: 0 } as unknown as Entry
    const bases = new Map([[idOf('ledger', key), base]])
    const [row] = this.#table.apply(entry, this.#decided.length + 1, bases)
    this.#decided.push({ key, row: row!, ought: changed(this.#ought(key), change) })
  }

  commit(count: number): void {
    this.#head = Math.min(this.#head + count, this.#decided.length)
  }

  rollBack(): void {
    this.#speculation++
    this.#decided.length = this.#head
    this.#table.dropAbove(this.#head)
  }

  write(count: number): void {
    const upTo = Math.min(this.#written + count, this.#head)
    for (const { key, row } of this.#decided.slice(this.#written, upTo)) {
      this.#stored.set(idOf('ledger', key), row)
    }
    this.#written = upTo
  }

  durable(): void {
    for (; this.#flushed < this.#written; this.#flushed++) {
      this.#table.flushed([this.#decided[this.#flushed]!.row], this.#flushed + 1)
    }
  }

  flush(count: number): void {
    this.commit(count)
    this.write(count)
    this.durable()
  }

  /** `late`: it has taken so long that it has seen what was written meanwhile. */
  async end(at: number, how: 'early' | 'late' | 'away'): Promise<void> {
    if (this.reads.length === 0) return
    const [read] = this.reads.splice(at % this.reads.length, 1)
    if (how === 'away') read!.fail()
    else read!.answer(how === 'early' ? read!.before : this.#of(read!.key))
    await Promise.resolve()
    await Promise.resolve()
  }

  #of(key: Key): AliasRow | null {
    return this.#stored.get(idOf('ledger', key)) ?? null
  }

  /** All is committed and durable, and no read under way: how many keys are still remembered. */
  async rest(): Promise<number> {
    while (this.reads.length > 0) await this.end(0, 'early')
    this.flush(Infinity)
    for (const key of KEYS) this.ask(key, null)
    const remembered = KEYS.length - this.reads.length
    while (this.reads.length > 0) await this.end(0, 'late')
    return remembered
  }
}

type Step =
  | ({ readonly do: 'change' } & Change)
  | { readonly do: 'look'; readonly key: Key }
  | { readonly do: 'commit' | 'write' | 'flush'; readonly count: number }
  | { readonly do: 'durable' | 'roll back' }
  | { readonly do: 'end'; readonly at: number; readonly how: 'early' | 'late' | 'away' }

const key = fc.constantFrom('K', 'K', 'K', 'L')
const count = fc.integer({ min: 1, max: 3 })
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      ...{ do: fc.constant('change' as const), key },
      kind: fc.constantFrom('take', 'take', 'claim', 'confirm', 'free'),
      actor: fc.constantFrom('a', 'b'),
      message: fc.constantFrom('m1', 'm2'),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('look' as const), key }) },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constantFrom('commit', 'write', 'flush'), count }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constantFrom('durable', 'roll back') }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      ...{ do: fc.constant('end' as const), at: fc.nat(3) },
      how: fc.constantFrom('early', 'early', 'late', 'away'),
    }),
  },
)

async function run(scene: Scene, one: Step): Promise<void> {
  switch (one.do) {
    case 'change':
      return scene.ask(one.key, one)
    case 'look':
      return scene.ask(one.key, null)
    case 'commit':
      return scene.commit(one.count)
    case 'write':
      return scene.write(one.count)
    case 'flush':
      return scene.flush(one.count)
    case 'durable':
      return scene.durable()
    case 'roll back':
      return scene.rollBack()
    case 'end':
      return scene.end(one.at, one.how)
  }
}

t.test('whatever is durable, dropped or being read: it leads where the entries say', async () => {
  const steps = fc.array(step, { minLength: 20, maxLength: 60, size: 'max' })
  const property = fc.asyncProperty(steps, async (all) => {
    const scene = new Scene()
    for (const one of all) {
      await run(scene, one)
      if (scene.wrong !== null) throw new Error(scene.wrong)
    }
    const remembered = await scene.rest()
    if (scene.wrong !== null) throw new Error(`at rest ${scene.wrong}`)
    if (remembered > 0) throw new Error(`${remembered} keys are remembered that are durable`)
  })
  await fc.assert(property, { numRuns: 1_500 })
})

function taken(scene: Scene, key: Key, message: string): void {
  scene.ask(key, { key, kind: 'take', actor: 'a', message })
}

t.test(
  'a read of another key is under way: what is newer than the durable row stays',
  async (t) => {
    const scene = new Scene()
    taken(scene, 'K', 'm1')
    scene.ask('L', null)
    await scene.end(0, 'early')
    scene.flush(1)
    taken(scene, 'K', 'm2')
    await scene.end(0, 'early')
    scene.ask('K', null)
    t.same([scene.reads, scene.wrong], [[], null])
  },
)

t.test('a row is remembered until the last read that may have missed it', async (t) => {
  const scene = new Scene()
  taken(scene, 'K', 'm1')
  scene.ask('L', null)
  scene.ask('K', null)
  await scene.end(0, 'early')
  scene.flush(1)
  await scene.end(0, 'early')
  await scene.end(0, 'early')
  t.equal(scene.wrong, null)
  t.equal(await scene.rest(), 0)
})

async function takenThrice(): Promise<Scene> {
  const scene = new Scene()
  taken(scene, 'K', 'm1')
  await scene.end(0, 'early')
  for (const message of ['m2', 'm3']) taken(scene, 'K', message)
  return scene
}

t.test('the first is durable, the third is dropped: the second counts', async (t) => {
  const scene = await takenThrice()
  scene.commit(2)
  scene.write(1)
  scene.durable()
  scene.rollBack()
  scene.ask('K', null)
  t.same([scene.reads, scene.wrong], [[], null])
})

t.test('what is durable is forgotten, though two newer ones stood before it', async (t) => {
  const scene = await takenThrice()
  scene.flush(1)
  scene.rollBack()
  t.equal(await scene.rest(), 0)
  t.equal(scene.wrong, null)
})

t.test('a late free of an older claim leaves the newer one of the same actor', async (t) => {
  const scene = new Scene()
  const say = (kind: KeyChange['change'], message: string): void =>
    scene.ask('K', { key: 'K', kind, actor: 'a', message })
  say('claim', 'm1')
  await scene.end(0, 'early')
  for (const [kind, message] of [
    ['claim', 'm2'],
    ['free', 'm1'],
    ['confirm', 'm2'],
  ] as const) {
    say(kind, message)
  }
  scene.ask('K', null)
  t.equal(scene.seen, '[["a/m2",true]]')
  t.same([scene.reads, scene.wrong], [[], null])
})

t.test('a create is found by its key for as long as its caller may repeat it', (t) => {
  const claim = { actorId: 'a', messageId: 'm', confirmed: true, clock: 100 }
  const row = { keyType: 'ledger!key', key: 'k', claims: [claim] }
  t.equal(holderOf(row, 100 + LIMITS.storage.callerMarkMs - 1), claim)
  t.equal(holderOf(row, 100 + LIMITS.storage.callerMarkMs), null)
  t.equal(
    holderOf({ ...row, keyType: 'ledger' }, 100 + LIMITS.storage.callerMarkMs),
    claim,
    'others last',
  )
  t.end()
})
