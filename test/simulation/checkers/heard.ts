// K6 of the feed: of each stretch of a shard's log that a member was told it has heard whole, it
// has every change, as the log's fold has the ledger there or later, and nothing else; what lies
// between two stretches is told as a gap. Source: PROTOCOL 3.18, 4.1.

import type { Covered } from '../../../cluster/feed/watch/coverage.ts'
import type { NodeChange } from '../../../node/live/queries/node-changes.ts'
import type { Ledger } from '../clients/ledger.ts'
import { nodesOfLedger, projectLedger } from '../clients/ledger.ts'
import type { FoldedActor, FoldedLog, PlacedEntry } from './fold.ts'

/** What one process has heard, in order. */
export interface Heard {
  readonly name: string
  readonly heard: readonly Covered[]
}

export function checkHeard(all: readonly Heard[], log: FoldedLog): string[] {
  return all.flatMap(({ name, heard }) => {
    const reached = new Map<number, number>()
    return heard.flatMap((part) => {
      const before = reached.get(part.shard)
      reached.set(part.shard, part.to)
      const where = `K6: ${name}, shard ${part.shard}, ${part.from} to ${part.to}`
      return [...joinOf(part, before), ...itemsOf(part, log)].map((what) => `${where}: ${what}`)
    })
  })
}

function joinOf({ from, gap }: Covered, before: number | undefined): string[] {
  if (before === undefined || from === before) return []
  if (from < before) return [`it had heard up to ${before}`]
  return gap ? [] : [`what lies behind ${before} is not told as a gap`]
}

function itemsOf({ shard, from, to, items, gap }: Covered, log: FoldedLog): string[] {
  const found: string[] = []
  const told = new Map(items.map(([offset, value]) => [offset, value as NodeChange]))
  if (told.size < items.length) found.push('an offset comes twice')
  const changes = (log.shards.get(shard) ?? []).filter(
    ({ offset, entry }) => offset > from && offset <= to && isChange(entry),
  )
  for (const placed of changes) {
    const change = told.get(placed.offset)
    told.delete(placed.offset)
    if (change === undefined) {
      if (!gap) found.push(`${placed.offset} is lacking`)
    } else if (!isOf(log.actors.get(placed.entry.p)!, placed, change)) {
      found.push(`${placed.offset} is told as ${JSON.stringify(change)}`)
    }
  }
  for (const offset of told.keys()) found.push(`${offset} is no change of a ledger`)
  return found
}

function isChange({ y, r }: PlacedEntry['entry']): boolean {
  return y === 'ledger' && r.length > 0
}

/** Whether it shows the state behind the entry, or one that followed it. */
function isOf(actor: FoldedActor, { offset }: PlacedEntry, change: NodeChange): boolean {
  if (change.actorId !== actor.actorId) return false
  const told = JSON.stringify(change.nodes)
  const first = actor.entries.findIndex((placed) => placed.offset === offset)
  return actor.states.slice(first).some((state) => nodesText(state as Ledger) === told)
}

function nodesText(state: Ledger): string {
  const nodes = nodesOfLedger(state).map((ref) => {
    return [ref.node, ref.id, projectLedger(state, ref)!.doc]
  })
  return JSON.stringify(nodes)
}
