// Mutants in this process: the sources of one are patched while they are loaded, so that the code
// itself carries no switches. A patch whose text isn't found exactly once is an error: a mutant
// can't rot in silence. Source: PROTOCOL 4.1.

import { readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Mutant, Patch } from './mutants/mutant.ts'

const ROOT = join(import.meta.dirname, '..', '..')

/** A source with a patch in it. Throws when it doesn't fit. */
export function patched(source: string, { file, find, replace }: Patch): string {
  const at = source.indexOf(find)
  if (at < 0) throw new Error(`${file} has no such text any more:\n${find}`)
  if (source.includes(find, at + 1))
    throw new Error(`${file} has this text more than once:\n${find}`)
  return source.slice(0, at) + replace + source.slice(at + find.length)
}

/** Throws when a mutant's patches don't fit the sources as they are. */
export function checkPatches({ name, patches }: Mutant): void {
  for (const [file, ofFile] of byFile(patches)) {
    try {
      ofFile.reduce(patched, readFileSync(join(ROOT, file), 'utf8'))
    } catch (error) {
      throw new Error(`the mutant ${name} has to be mended`, { cause: error })
    }
  }
}

/** Whatever of the mutant's files is loaded from now on is patched. */
export function loadMutant(mutant: Mutant): void {
  checkPatches(mutant)
  const patches = byFile(mutant.patches)
  registerHooks({
    load(url, context, nextLoad) {
      const loaded = nextLoad(url, context)
      const ofFile = patches.get(fileOf(url))
      if (!ofFile || loaded.source === undefined || loaded.source === null) return loaded
      const source = Buffer.from(loaded.source as Uint8Array).toString()
      return { ...loaded, source: ofFile.reduce(patched, source) }
    },
  })
}

function byFile(patches: readonly Patch[]): Map<string, Patch[]> {
  return Map.groupBy(patches, ({ file }) => file)
}

/** Path inside the project, with slashes; empty for anything else. */
function fileOf(url: string): string {
  if (!url.startsWith('file:')) return ''
  const path = fileURLToPath(url)
  return path.startsWith(ROOT) ? path.slice(ROOT.length + 1).replaceAll('\\', '/') : ''
}
