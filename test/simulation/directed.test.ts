// Every directed schedule holds in the code as it is: what it catches is its mutant's.

import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { playDirected } from './directed/stage.ts'
import type { Schedule } from './directed/stage.ts'
import { MUTANTS } from './mutants.ts'

const NAMES = readdirSync(join(import.meta.dirname, 'directed'))
  .filter((name) => name !== 'stage.ts')
  .map((name) => name.replace(/\.ts$/, ''))

t.test('every schedule is there for a mutant, and the other way round', async (t) => {
  const named = new Set(MUTANTS.flatMap(({ directed = [] }) => directed))
  t.strictSame([...named].toSorted(), NAMES.toSorted())
})

for (const name of NAMES) {
  t.test(name, async (t) => {
    const schedule = (await import(`./directed/${name}.ts`)) as Schedule
    t.strictSame(await playDirected(schedule), [])
  })
}
