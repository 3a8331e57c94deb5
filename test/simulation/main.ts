// The simulation's command: runs seeds, each twice, and says which of them a checker fails, with
// the command line that runs it again. It stands between `npm run simulate` and run.ts.

import { parseArgs } from 'node:util'

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '100' },
    first: { type: 'string', default: '1' },
    mutant: { type: 'string' },
    'trace-hash': { type: 'boolean', default: false },
    'list-mutants': { type: 'boolean', default: false },
    show: { type: 'boolean', default: false },
    once: { type: 'boolean', default: false },
  },
})

const say = (text: string): void => void process.stdout.write(`${text}\n`)

async function main(): Promise<number> {
  const { runSeed } = await import('./run.ts')
  const first = Number(values.first)
  const show = values.show ? say : null
  let failed = 0
  for (let seed = first; seed < first + Number(values.seeds); seed++) {
    const result = await runSeed(seed, show)
    if (values['trace-hash']) say(`seed ${seed} trace ${result.hash}`)
    const found = [...result.found]
    if (!values.once) {
      const again = await runSeed(seed)
      if (again.hash !== result.hash) found.push('its two runs have different traces')
    }
    if (found.length > 0) {
      failed++
      say(`seed ${seed} (${result.weather}): ${found.length} found`)
      for (const one of found.slice(0, 12)) say(`  ${one}`)
    } else if (values.once) say(JSON.stringify(result))
  }
  return failed === 0 ? 0 : 1
}

process.exitCode = await main()
