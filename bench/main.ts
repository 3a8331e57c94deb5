// `npm run bench`: measures the platform beside its floors. Arguments in; table, JSON and page out.
// Exit code 1 when something was not as it must be (an order lost, a request failed), 2 for wrong
// arguments. Times never fail it.

import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { cpus, hostname, loadavg, release, totalmem, type } from 'node:os'
import { basename } from 'node:path'
import { clusterBench } from './cluster/bench.ts'
import { isClusterScenario } from './cluster/options.ts'
import { parseBenchOptions, USAGE, type BenchOptions } from './options.ts'
import { comparisonText } from './report/compare.ts'
import { resultPage } from './report/html.ts'
import { problems, resultTable } from './report/table.ts'
import { RESULT_FORMAT, type BenchResult } from './result.ts'
import { Rounds } from './rounds.ts'
import { chosenScenarios } from './scenarios/scenarios.ts'
import { ROOT } from './target/child.ts'
import { Installation } from './target/installation.ts'
import { OwnInstallations } from './target/own-installations.ts'

const DURABILITY =
  'on: an answer follows the commit, which is on disk (embedded: fdatasync of a group) or ' +
  'acknowledged at the configured consistency (cluster)'

async function main(date: Date): Promise<number> {
  const [command, ...rest] = process.argv.slice(2)
  if (isClusterScenario(command)) return clusterBench(command, rest)
  const parsed = parseBenchOptions(process.argv.slice(2))
  if (parsed === 'help') {
    process.stdout.write(USAGE)
    return 0
  }
  if ('problems' in parsed) {
    process.stderr.write(`${parsed.problems.join('\n')}\n\n${USAGE}`)
    return 2
  }
  const { options } = parsed
  if (options.compare !== null) return compare(options.compare)
  const result = await bench(options, date)
  process.stdout.write(resultTable(result))
  const page = resultPage(result)
  if (options.html !== null) writeFileSync(options.html, page)
  if (!options.smoke || options.out !== null) {
    const out = options.out ?? `bench-${date.toISOString().replace(/[:.]/g, '-')}.json`
    writeFileSync(out, `${JSON.stringify(result, null, 1)}\n`)
    process.stdout.write(`\n${out}\n`)
  }
  return problems(result).length === 0 ? 0 : 1
}

function compare([a, b]: readonly [string, string]): number {
  const [before, after] = [a, b].map(readResult) as [BenchResult, BenchResult]
  process.stdout.write(comparisonText(before, after))
  return 0
}

function readResult(file: string): BenchResult {
  const result = JSON.parse(readFileSync(file, 'utf8')) as Partial<BenchResult>
  if (result.format !== RESULT_FORMAT) throw new Error(`${file} is no result of this bench`)
  return result as BenchResult
}

async function bench(options: BenchOptions, date: Date): Promise<BenchResult> {
  const loadBefore = loadavg()[0]!
  const { settings, url } = options
  const given =
    url === null ? null : Installation.given({ url, access: access(options), pid: options.pid })
  const own = new OwnInstallations(settings.driver)
  const rounds = new Rounds({
    settings,
    scenarios: chosenScenarios(settings),
    install: (node) => (given === null ? own.start(node) : Promise.resolve(given)),
    tell: (line) => void process.stderr.write(`${line}\n`),
  })
  const [cpu] = cpus()
  let cases
  try {
    cases = await rounds.run()
  } finally {
    await own.stop()
  }
  return {
    format: RESULT_FORMAT,
    date: date.toISOString(),
    machine: {
      hostname: hostname(),
      cpu: cpu?.model ?? 'unknown',
      cores: cpus().length,
      memoryMiB: Math.round(totalmem() / 1024 / 1024),
      system: `${type()} ${release()}`,
      loadBefore,
    },
    nodeVersion: process.versions.node,
    revision: revision(),
    durability: DURABILITY,
    target: url ?? 'own',
    // Whose machine it is, is nobody's concern.
    settings: { ...settings, retailFile: settings.retailFile && basename(settings.retailFile) },
    cases,
  }
}

function access({ token, clientId, clientSecret }: BenchOptions) {
  if (token !== null) return { token }
  return { clientId: clientId ?? 'bootstrap', clientSecret: clientSecret! }
}

function revision(): string | null {
  try {
    return execFileSync('git', ['rev-parse', '--short', 'HEAD'], {
      cwd: ROOT,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim()
  } catch {
    return null
  }
}

process.exitCode = await main(new Date())
