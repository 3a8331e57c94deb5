// `npm run verify-log -- --data DIR`: reads everything that a stopped node's data directory holds
// and says what is wrong. It stands between storage/embedded, which knows the files, and the person
// who has them in doubt; the one tool of cli/ that reads a store instead of asking a node.

import { parseArgs } from 'node:util'
import { verifyLog } from '../storage/embedded/verify-log.ts'

const USAGE = 'Usage: npm run verify-log -- [--data DIR] (the directory of KONTOR_DATA_DIR, ./data)'

/** Exit codes: all is well, something is wrong, wrong arguments (EX_USAGE of sysexits). */
const EXIT = { well: 0, damaged: 1, usage: 64 } as const

async function main(): Promise<number> {
  const dir = dataDirectory()
  if (dir === null) return EXIT.usage
  const report = await verifyLog(dir, (line) => console.log(line))
  const { findings, groups, entries, derivedRows } = report
  console.log(
    `${dir}: ${groups} groups, ${entries} entries and ${derivedRows} derived rows read, ` +
      (findings === 0 ? 'nothing is wrong' : `findings: ${findings}`),
  )
  return findings === 0 ? EXIT.well : EXIT.damaged
}

function dataDirectory(): string | null {
  try {
    const { values } = parseArgs({
      options: { data: { type: 'string' }, help: { type: 'boolean' } },
    })
    if (!values.help) return values.data ?? (process.env['KONTOR_DATA_DIR'] || './data')
  } catch (error) {
    console.error((error as Error).message)
  }
  console.error(USAGE)
  return null
}

process.exitCode = await main()
