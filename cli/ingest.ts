// `npm run ingest`: posts a file of real invoices as orders. Arguments in, progress and summary
// out. Exit code 0 when every row was accepted or rejected for a reason, 1 when something failed, 2
// for wrong arguments.

import { existsSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { parseIngestOptions, USAGE, type IngestOptions } from './ingest/options.ts'
import { progressLine, summaryJson, summaryText } from './ingest/report.ts'
import { runIngest, type Progress, type RunResult } from './ingest/run.ts'
import { findCredentials, type Credentials } from './session.ts'

/** Without a terminal, progress is a line of a log. */
const LOG_MS = 10_000

async function main(): Promise<number> {
  const parsed = parseIngestOptions(process.argv.slice(2))
  if (parsed === 'help') {
    process.stdout.write(USAGE)
    return 0
  }
  if ('problems' in parsed) return wrong(parsed.problems, USAGE)
  const { options } = parsed
  if (!existsSync(options.file)) return wrong([`--file ${options.file}: there is no such file`])
  const credentials = options.dryRun ? null : (options.credentials ?? findCredentials(process.env))
  if (credentials !== null && 'problem' in credentials) return wrong([credentials.problem])
  return report(options, await run(options, credentials))
}

function wrong(problems: readonly string[], more = ''): number {
  process.stderr.write(`${problems.join('\n')}\n${more === '' ? '' : `\n${more}`}`)
  return 2
}

function run(options: IngestOptions, credentials: Credentials | null): Promise<RunResult> {
  const terminal = process.stderr.isTTY
  let loggedMs = 0
  return runIngest(options, credentials, {
    now: () => performance.timeOrigin + performance.now(),
    delay: (ms) => delay(ms),
    tell: (line) => void process.stderr.write(`${terminal ? '\r\x1b[K' : ''}${line}\n`),
    progress(state: Progress) {
      if (terminal) process.stderr.write(`\r\x1b[K${progressLine(state)}`)
      else if (state.elapsedMs - loggedMs >= LOG_MS) {
        loggedMs = state.elapsedMs
        process.stderr.write(`${progressLine(state)}\n`)
      }
    },
    interrupted: new Promise((resolve) => {
      for (const signal of ['SIGINT', 'SIGTERM'] as const) {
        process.once(signal, () => resolve(signal))
      }
    }),
  })
}

function report(options: IngestOptions, result: RunResult): number {
  if (process.stderr.isTTY) process.stderr.write('\n')
  process.stdout.write(options.json ? summaryJson(result) : summaryText(result, options.dryRun))
  const { tally, rowsRead, graph, stopped } = result
  if (tally.rowsSettled !== rowsRead) {
    process.stderr.write(`the counts do not add up: ${tally.rowsSettled} of ${rowsRead} rows\n`)
    return 1
  }
  const good = tally.rowsFailed === 0 && stopped === null && (graph?.differing.length ?? 0) === 0
  return good ? 0 : 1
}

process.exitCode = await main()
