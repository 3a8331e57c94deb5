// `npm run soak -- --seconds 300 --seed 7`: the run of soak.ts on the engines of faults, as long as
// asked, and its report; exit code 1 when something was not as it must be.

import { parseArgs } from 'node:util'
import { faultsFolder, leave } from '../../tools/engines/users.mjs'
import { aloneOnThisMachine } from './alone.ts'
import { faultEngines } from './harness/engines.ts'
import { soak, soakReport } from './soak.ts'

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: { seconds: { type: 'string', default: '300' }, seed: { type: 'string' } },
  })
  const seed = Number(values.seed ?? 1 + Math.floor(Math.random() * 9_999))
  const seconds = Number(values.seconds)
  const tell = (line: string): void => void process.stdout.write(`${line}\n`)
  tell(`npm run soak -- --seconds ${seconds} --seed ${seed}`)
  const ends: (() => Promise<void>)[] = []
  const owner = { teardown: (end: () => Promise<void>) => void ends.push(end) }
  try {
    const engines = await faultEngines()
    if ('skipped' in engines) {
      tell(engines.skipped)
      return 1
    }
    const result = await soak(owner, { engines, seconds, seed, tell })
    for (const line of soakReport(result)) tell(line)
    return result.problems.length === 0 ? 0 : 1
  } finally {
    for (const end of ends.toReversed()) await end()
    await leave(faultsFolder())
  }
}

process.exitCode = await aloneOnThisMachine(main)
