// Every mutant of the log is caught: a simulated disk or a test that caught none of these mistakes
// would prove nothing of the log as it is.

import { spawn } from 'node:child_process'
import { join } from 'node:path'
import t from 'tap'
import { checkPatches } from '../simulation/mutant-loader.ts'
import { LOG_MUTANTS } from '../../storage/segment-log/testing/mutants.ts'

const PROCESS = join(import.meta.dirname, '../../storage/segment-log/testing/mutant-process.ts')
const WITHIN_MS = 120_000
const AT_ONCE = 2
const SAID_SHOWN = 400

t.setTimeout(WITHIN_MS)

interface Ran {
  readonly code: number | null
  readonly said: string
}

function run(...args: readonly string[]): Promise<Ran> {
  // What tap puts into the environment of what it starts is not meant for these.
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^_?TAP|^NODE_OPTIONS$/.test(name)),
  )
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [PROCESS, ...args], {
      ...{ env, timeout: WITHIN_MS, killSignal: 'SIGKILL' },
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    let said = ''
    child.stdout.on('data', (text) => (said += String(text)))
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, said }))
  })
}

t.test('each has a name of its own, and fits the sources', async (t) => {
  t.equal(new Set(LOG_MUTANTS.map(({ name }) => name)).size, LOG_MUTANTS.length)
  for (const mutant of LOG_MUTANTS) checkPatches(mutant)
  for (const { name, by, test } of LOG_MUTANTS) t.equal(by === 'test', test !== undefined, name)
})

t.test('without one the seeds hold that catch them', async (t) => {
  const { code, said } = await run()
  t.equal(code, 0, said)
  t.equal((await run('no-such-mutant')).code, 2)
})

t.test('every mutant is caught', async (t) => {
  const left = [...LOG_MUTANTS]
  const lane = async (): Promise<void> => {
    for (let mutant = left.shift(); mutant !== undefined; mutant = left.shift()) {
      const { code, said } = await run(mutant.name)
      t.equal(code, 1, `${mutant.name}: ${said.slice(0, SAID_SHOWN)}`)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, lane))
})
