// Runs test files, each in a process of its own and some at a time, and prints what they say as
// one TAP. It stands where tap's own command would. That loads hooks into every process, the nodes
// that tests start too, which double the work of loading a module, for a coverage that nobody
// reads; and it runs a long file that is last by name by itself.
//
//     node tools/verify/files.ts [--jobs N] [--timeout SECONDS] [file or folder ...]

import type { ChildProcess } from 'node:child_process'
import { globSync, statSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import t from 'tap'

/** Files that run longest, the longest first: they are begun before all others. */
export const LONGEST: readonly string[] = [
  'test/simulation/mutants.test.ts',
  'test/simulation/seeds.test.ts',
  'test/checks.test.ts',
  'test/embedded/long-life.test.ts',
]

/** What is printed about the time that files take: see LONGEST. */
const TOLD = 12
const TOLD_MS_MIN = 10_000
const EXCLUDED = ['**/node_modules/**', 'data/**', '.tap/**']

/**
 * The test files of these paths, in the order in which they are begun.
 *
 * @param paths files, and folders with all that is in them; none: everything
 */
export function testFiles(paths: readonly string[], longest = LONGEST): readonly string[] {
  const files = (paths.length === 0 ? ['.'] : paths).flatMap((path) => {
    if (!statSync(path).isDirectory()) return [path]
    const found = globSync('**/*.test.ts', { cwd: path, exclude: EXCLUDED })
    return found.map((file) => `${path}/${file}`)
  })
  const plain = files.map((file) => file.replaceAll('\\', '/').replace(/^\.\//, ''))
  const rank = (file: string): number => {
    const at = longest.indexOf(file)
    return at < 0 ? longest.length : at
  }
  return [...new Set(plain)].sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1))
}

interface RunOptions {
  readonly timeoutMs: number
  readonly buffered: boolean
}

/** Runs a file to its end; resolves to how long it took, milliseconds. */
async function runFile(file: string, { timeoutMs, buffered }: RunOptions): Promise<number> {
  const began = performance.now()
  // tap puts a hook into the environment of what it starts, by NODE_OPTIONS: not into ours.
  const options = process.env['NODE_OPTIONS']
  const own = options === undefined ? ['-u', 'NODE_OPTIONS'] : [`NODE_OPTIONS=${options}`]
  const timeout = `TAP_TIMEOUT=${timeoutMs / 1_000}`
  const args = [...own, timeout, process.execPath, file]
  const shown = { name: file, at: null, stack: '' }
  await t.spawn('env', args, { ...shown, timeout: timeoutMs, buffered })
  return performance.now() - began
}

/** What ends the runner ends the files that run, so that each can say what it was at. */
function passOnSignals(): { readonly isStopped: boolean } {
  const running = new Set<ChildProcess>()
  const state = { isStopped: false }
  t.on('spawn', (subtest) => {
    subtest.on('process', (child) => {
      running.add(child)
      child.on('close', () => running.delete(child))
    })
  })
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
    process.on(signal, () => {
      state.isStopped = true
      for (const child of running) child.kill(signal)
    })
  }
  return state
}

interface Took {
  readonly name: string
  readonly ms: number
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { jobs: { type: 'string' }, timeout: { type: 'string', default: '300' } },
  })
  const left = [...testFiles(positionals)]
  const jobs = Math.min(Number(values.jobs ?? availableParallelism()), left.length)
  const options = { timeoutMs: Number(values.timeout) * 1_000, buffered: jobs > 1 }
  t.setTimeout(0)
  if (left.length === 0) {
    t.fail('no test files')
    return
  }
  t.jobs = jobs
  const state = passOnSignals()
  const took: Took[] = []
  const lane = async (): Promise<void> => {
    for (let file = left.shift(); file !== undefined && !state.isStopped; file = left.shift()) {
      took.push({ name: file, ms: await runFile(file, options) })
    }
  }
  await Promise.all(Array.from({ length: jobs }, lane))
  if (state.isStopped) t.fail('stopped before the end')
  tell(took)
  t.end()
}

function tell(took: readonly Took[]): void {
  const longest = took.filter(({ ms }) => ms > TOLD_MS_MIN).toSorted((a, b) => b.ms - a.ms)
  const told = longest.slice(0, TOLD).map(({ name, ms }) => `${name} ${Math.round(ms / 1_000)} s`)
  if (told.length > 0) t.comment(`told: longest: ${told.join(', ')}`)
}

if (import.meta.main) await main()
