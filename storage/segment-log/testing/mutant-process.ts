// A process of its own with a mutant of the log in it: `mutant-process.ts NAME`. Says what caught
// it and ends with 1; ends with 0 when nothing did, 2 when there is no such mutant. Without a name
// nothing is broken, and what it would be caught by holds. For mutants.test.ts.

import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { loadMutant } from '../../../test/simulation/mutant-loader.ts'
import { LOG_MUTANTS, type LogMutant } from './mutants.ts'

const SEEDS = { crashes: 40, 'stale writers': 300, 'replaced files': 20, test: 0 }
const ROOT = join(import.meta.dirname, '..', '..', '..')

/** Only here, behind the mutant: it is patched in while it is loaded. */
async function seeds(by: LogMutant['by']): Promise<void> {
  const { crashRun, staleRun } = await import('./log-run.ts')
  const { SimulatedDisk } = await import('./simulated-disk.ts')
  const { replaceRun } = await import('./replace-run.ts')
  const runs = { crashes: crashRun, 'stale writers': staleRun, 'replaced files': replaceRun }
  const run = runs[by as keyof typeof runs]
  for (let seed = 1; seed <= SEEDS[by]; seed++) {
    try {
      await run(seed, new SimulatedDisk())
    } catch (error) {
      process.stdout.write(`${by}, seed ${seed}: ${(error as Error).message}\n`)
      process.exitCode = 1
      return
    }
  }
}

const [name] = process.argv.slice(2)
const mutant = LOG_MUTANTS.find((one) => one.name === name)
if (name === undefined) {
  await seeds('crashes')
  await seeds('stale writers')
  await seeds('replaced files')
} else if (mutant === undefined) {
  process.exitCode = 2
} else {
  loadMutant(mutant)
  if (mutant.test === undefined) await seeds(mutant.by)
  else await import(pathToFileURL(join(ROOT, mutant.test)).href)
}
