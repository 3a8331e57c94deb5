// Lines of a bulk against the same lines sent one by one: whatever a line calls its actor, by UUID
// or by a number that a line before it gives or takes away, it sees what those before it did. The
// stations over a member with its journal in memory. Source: CONTRACT 0 "Bulk".

import t from 'tap'
import { ledger } from '../../cluster/testing/ledger.ts'
import { seeded, startMember } from '../../cluster/testing/harness.ts'
import type { World } from '../../cluster/testing/harness.ts'
import { actorOperations } from './routes.ts'
import { BULK_REQUEST, SHOP } from './testing/bulk-request.ts'

interface Line {
  readonly id: string
  readonly messages: readonly { readonly type: string; readonly body: object }[]
}

interface Answer {
  readonly id: string
  readonly results: readonly { readonly success: boolean; readonly data?: unknown }[]
  readonly errors?: readonly { readonly code: string }[]
}

/** Lines that were under way together, at most. */
let together = 0

async function bulk(world: World, lines: readonly Line[]): Promise<readonly Answer[]> {
  let underWay = 0
  const { member } = world
  const operations = actorOperations({
    actorSystem: {
      behaviours: member.behaviours,
      system: member.system,
      heads: () => member.heads(),
      ask: (request) => {
        together = Math.max(together, ++underWay)
        return member.ask(request).finally(() => underWay--)
      },
    },
    consistency: { encode: () => '' },
    world: { clock: world.clock, random: () => undefined },
  })
  const answers: Answer[] = []
  async function* bytes() {
    for (const [i, line] of lines.entries()) {
      yield { number: i + 1, bytes: Buffer.from(JSON.stringify(line)) }
    }
  }
  const write = (text: string): undefined => void answers.push(JSON.parse(text) as Answer)
  const one = operations.find(({ path }) => path === '/resources/actors/{type}')!
  const running = { isOver: false }
  const ended = Promise.resolve(
    one.stream!(BULK_REQUEST, { lines: bytes(), write, identityNow: () => SHOP }),
  )
  const over = (): void => void (running.isOver = true)
  ended.then(over, over)
  while (!running.isOver) await world.clock.advance(10)
  await ended
  return answers
}

const open = (body: object): Line => ({ id: 'new', messages: [{ type: 'open', body }] })
const append = (id: string, token: string): Line => ({
  id,
  messages: [{ type: 'append', body: { token } }],
})
const renumber = (id: string, number: string): Line => ({
  id,
  messages: [{ type: 'renumber', body: { number } }],
})
/** What tells two answers apart: ids of new actors are made by chance. */
const told = ({ results, errors }: Answer): object => ({
  results: results.map(({ success, data }) => [success, typeof data === 'number' ? data : null]),
  errors: (errors ?? []).map(({ code }) => code),
})

const start = (seed: number): Promise<World> =>
  startMember({ shards: 8, seed, behaviours: [ledger] })

t.test('a line to a number that a line before it gives its actor', async (t) => {
  const world = await start(1)
  for (let i = 0; i < 20; i++) {
    const [n, m] = [`N${i}`, `M${i}`]
    const answers = await bulk(world, [
      { id: 'new', messages: [...open({}).messages, ...renumber('', n).messages] },
      append(n, 'a'),
      renumber(n, m),
      append(m, 'b'),
      append(n, 'c'),
      open({ number: n }),
      append(n, 'd'),
    ])
    const codes = answers.map(({ errors }) => errors?.[0]?.code ?? null)
    t.strictSame(codes, [null, null, null, null, 'NOT_FOUND', null, null])
  }
})

t.test('any bulk has the answers that its lines have one by one', async (t) => {
  for (let seed = 1; seed <= 12; seed++) {
    const chance = seeded(seed)
    const below = (n: number): number => Math.floor(chance() * n)
    const [world, oracle] = [await start(seed), await start(seed)]
    const both = async (line: Line): Promise<readonly [string, string]> => {
      const [[a], [b]] = [await bulk(world, [line]), await bulk(oracle, [line])]
      return [a!.id, b!.id]
    }
    const known: (readonly [string, string])[] = []
    for (let i = 0; i < 4; i++) known.push(await both(open({ number: `U${i}` })))
    const number = (): string => `N${below(6)}`
    const anyNumber = (): string => [number(), number(), `U${below(4)}`, `V${below(4)}`][below(4)]!
    // A pair of the same line: known actors have other UUIDs here and there.
    const line = (i: number): readonly [Line, Line] => {
      const kind = below(10)
      const token = `t${i}`
      const same = (one: Line): readonly [Line, Line] => [one, one]
      if (kind < 2) return same(open({ number: number(), token }))
      if (kind === 2) {
        const messages = [...open({}).messages, ...renumber('', number()).messages]
        return same({ id: 'new', messages })
      }
      if (kind < 5) return same(append(anyNumber(), token))
      if (kind < 7) return same(renumber(anyNumber(), number()))
      const [a, b] = known[below(4)]!
      if (kind < 9) return [append(a, token), append(b, token)]
      // Its old number is for nobody else: orders of different lines that swap go side by side.
      const to = `V${below(4)}`
      return [renumber(a, to), renumber(b, to)]
    }
    const lines = Array.from({ length: 60 }, (_, i) => line(i))
    const answers = await bulk(
      world,
      lines.map(([a]) => a),
    )
    for (const [i, [, one]] of lines.entries()) {
      const [wanted] = await bulk(oracle, [one])
      t.strictSame(told(answers[i]!), told(wanted!), `seed ${seed}, line ${i + 1}`)
    }
  }
})

t.test('lines of different actors stay side by side', async (t) => {
  const world = await start(3)
  together = 0
  await bulk(
    world,
    Array.from({ length: 200 }, (_, i) => open({ number: `N${i}` })),
  )
  t.equal(together, 200)
  together = 0
  await bulk(
    world,
    Array.from({ length: 100 }, (_, i) => renumber(`N${i}`, `M${i}`)),
  )
  t.equal(together, 100)
  const made = await bulk(
    world,
    Array.from({ length: 20 }, (_, i) => open({ number: `P${i}` })),
  )
  together = 0
  await bulk(
    world,
    made.flatMap(({ id }, i) => [append(id, 'x'), open({ number: `Q${i}` })]),
  )
  t.equal(together, 40, 'a new one may stand beside those that are named by UUID')
})
