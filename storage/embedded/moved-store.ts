// The word that a move leaves in the directory that it has copied: where the store is now. A node
// that is started on that directory again would take orders that nobody finds. Source: PROTOCOL
// 3.16.

import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { syncFolder, writeSynced } from './synced-file.ts'

export const MOVED_FILE = 'moved.json'

/** Says in `dir` that its store is at `to` ("the keyspace kontor at 10.0.0.1:9042") since `at`. */
export function writeMoved(dir: string, word: { readonly to: string; readonly at: string }): void {
  writeSynced(join(dir, MOVED_FILE), `${JSON.stringify(word, null, 2)}\n`)
  syncFolder(dir)
}

/** `to` says of itself what `from` says: a start on a copy would lose as much. */
export function copyMoved(from: string, to: string): void {
  const [path, copy] = [join(from, MOVED_FILE), join(to, MOVED_FILE)]
  if (existsSync(path)) writeSynced(copy, readFileSync(path, 'utf8'))
  else rmSync(copy, { force: true })
  syncFolder(to)
}

/** Throws Error for a directory whose store was moved, naming where it went. */
export function refuseMoved(dir: string): void {
  const path = join(dir, MOVED_FILE)
  if (!existsSync(path)) return
  const { to, at } = wordIn(path)
  throw new Error(
    `${dir}: its store was moved to ${to}${at}, what is here is a backup of that time: start a ` +
      'member there (KONTOR_STORAGE_DRIVER=cluster), or name another directory ' +
      `(KONTOR_DATA_DIR). To go back to it and lose what was done since: remove ${path}`,
  )
}

/** A file that can't be read says as much: there was a move. */
function wordIn(path: string): { readonly to: string; readonly at: string } {
  try {
    const { to, at } = JSON.parse(readFileSync(path, 'utf8')) as { to: unknown; at: unknown }
    return { to: String(to), at: ` at ${String(at)}` }
  } catch {
    return { to: 'a cluster', at: '' }
  }
}
