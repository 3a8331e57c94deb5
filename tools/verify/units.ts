// Runs the unit tests of the pure folders, and the tests of texts, in one process: a process for
// each file takes four times the work. Only for `npm run check`; `npm test` runs each by itself.
//
//     node tools/run.mjs tools/verify/units.ts

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const ROOT = join(import.meta.dirname, '..', '..')
const PURE_FOLDERS = ['protocol', 'config', 'commerce']
const OF_TEXTS = ['test/tidy.test.ts', 'test/citations.test.ts', 'test/documents.test.ts']

/** What starts a process or a thread, or opens a port. */
const STARTS = /node:(child_process|worker_threads|http|net|tls)'|\/harness\//
/** What a file sets for its whole process would hold for its neighbours too. */
const SETS = /^t\.(setTimeout|before|after|beforeEach|afterEach|teardown|jobs)\b/m

/** Paths from `root` of the tests that are quick and change nothing that their neighbours see. */
export function unitFiles(root = ROOT): readonly string[] {
  const inFolders = PURE_FOLDERS.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .map((path) => `${folder}/${path.replaceAll('\\', '/')}`)
      .filter((path) => path.endsWith('.test.ts'))
      .filter((path) => isPure(readFileSync(join(root, path), 'utf8')))
      .sort(),
  )
  return [...inFolders, ...OF_TEXTS]
}

/** @param text of a test file */
export function isPure(text: string): boolean {
  return !STARTS.test(text) && !SETS.test(text)
}

if (import.meta.main) {
  for (const path of unitFiles()) await import(pathToFileURL(join(ROOT, path)).href)
}
