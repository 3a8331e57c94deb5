// Files of the log replaced by what is left of them: written anew, their places turned, then
// removed, in this order and so that it can end anywhere. Source: PROTOCOL 3.16.
//
//   1. The new file is on the disk and has its name (rewrite.ts). It and its sources say the same.
//   2. Whoever keeps places has those of the new file instead, on the disk, and remembers that.
//   3. The sources go. Their bytes go first, so that nobody who has one open holds them; the name
//      of a file that was appended to stays, empty: an older writer may still look for it
//      (opening.ts). Who reads a source meanwhile finds it cut, and looks the place up again.
//
// A crash behind 1 leaves both; then 2 is done again, from the beginning. One behind 2 leaves
// sources whole, cut, or with zeros in them; they are not looked at any more. So the next replacing
// begins only when all before it are finished.

import type { Disk } from './disk.ts'
import { fileName, fileOfName, firstOf, numberOf, openSegment, roundOf } from './header.ts'
import type { Header } from './header.ts'
import { rewriteSegments, type RewriteOptions } from './rewrite.ts'

/** Who keeps places of the log. */
export interface PlaceKeeper {
  /** Whether all places in the sources were turned, as it is on the disk. */
  isTurned(header: Header): boolean
  /** Turns the places in the sources to the file; may have been done in part, or altogether. */
  turn(header: Header): Promise<void>
}

/** The header of the new file; the sources are gone. Rejects as `rewriteSegments` and `turn` do. */
export async function replaceSegments(
  options: RewriteOptions,
  keeper: PlaceKeeper,
): Promise<Header> {
  const header = await rewriteSegments(options)
  await finishReplacing(options.disk, [header], keeper)
  return header
}

/** Goes on with what was begun: of the chain as it is on the disk. */
export async function finishReplacing(
  disk: Disk,
  chain: readonly Header[],
  keeper: PlaceKeeper,
): Promise<void> {
  for (const header of chain) {
    if (header.rewritten === undefined) continue
    const left = leftBy(disk, header)
    if (left.length === 0) continue
    if (!keeper.isTurned(header)) await keeper.turn(header)
    for (const file of left) remove(disk, file)
  }
}

/** Files that the new one stands for and of which something is there. */
function leftBy(disk: Disk, header: Header): number[] {
  const { file } = header.key
  const files = disk.list().map(fileOfName)
  return files.filter((other): other is number => {
    if (other === null || other === file) return false
    const number = numberOf(other)
    if (number < firstOf(header) || number > numberOf(file)) return false
    return roundOf(other) > 0 || bytesOf(disk, other) > 0
  })
}

function bytesOf(disk: Disk, file: number): number {
  const opened = openSegment(disk, file)
  const bytes = opened.bytes()
  opened.close()
  return bytes
}

function remove(disk: Disk, file: number): void {
  disk.truncate(fileName(file), 0)
  if (roundOf(file) > 0) disk.remove(fileName(file))
}
