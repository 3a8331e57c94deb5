// Python with a package of PyPI, for a test: a virtual environment in the cache of the engines,
// made once for each version.

import { join } from 'node:path'
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { CannotRun, cacheFolder, needPrograms, once, run } from '../../../tools/engines/fetch.mjs'

export interface MissingPython {
  readonly skipped: string
}

/** The interpreter that has these packages. Rejects where CI=true and it can't be had. */
export async function python(
  name: string,
  packages: readonly string[],
): Promise<string | MissingPython> {
  const dir = join(cacheFolder(), name)
  const done = join(dir, 'done')
  const program = join(dir, 'bin', 'python')
  try {
    await once(
      name,
      () => existsSync(done),
      async () => {
        await needPrograms(['python3'], ['python3', 'python3-venv'])
        rmSync(dir, { recursive: true, force: true })
        await run('python3', ['-m', 'venv', dir])
        const quiet = ['--quiet', '--disable-pip-version-check', '--only-binary', ':all:']
        await run(program, ['-m', 'pip', 'install', ...quiet, ...packages])
        writeFileSync(done, `${packages.join('\n')}\n`)
      },
    )
    return program
  } catch (error) {
    if (!(error instanceof CannotRun)) throw error
    const skipped = `no Python here: ${error.message}`
    if (process.env['CI'] === 'true') throw new Error(skipped, { cause: error })
    return { skipped }
  }
}
