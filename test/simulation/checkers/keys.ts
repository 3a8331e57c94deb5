// K4, the keys: at most one living ledger has a number, the rows of the keys say who, and each
// number that was handed out was handed out once. Source: PROTOCOL 4.1 (aliases = fold),
// ARCHITECTURE 4.

import { recordsOf } from '../../../protocol/entry/entry.ts'
import type { Engine } from '../engines/engine.ts'
import { ledger } from '../clients/ledger.ts'
import { storedAlias, storedAliases } from '../engines/stored.ts'
import { finalState } from './fold.ts'
import type { FoldedLog } from './fold.ts'

export function checkKeys(engine: Engine, log: FoldedLog): string[] {
  const found: string[] = []
  const holders = new Map<string, string[]>()
  for (const actor of log.actors.values()) {
    if (actor.type !== 'ledger') continue
    const state = finalState(actor)
    if (state === null) continue
    const list = holders.get(state.number)
    if (list) list.push(actor.actorId)
    else holders.set(state.number, [actor.actorId])
  }
  for (const [number, actors] of holders) {
    if (actors.length > 1) {
      found.push(`K4: the number ${number} is held by ${actors.join()}`)
      continue
    }
    const row = storedAlias(engine.tables, 'ledger', number)
    if (row?.claims.length === 1 && row.claims[0]!.actorId === actors[0]) continue
    if (row && row.claims.some(({ actorId }) => actorId === actors[0])) continue
    found.push(`K4: the number ${number} leads to ${JSON.stringify(row)}, not to ${actors[0]!}`)
  }
  return [...found, ...handedOutTwice(log)]
}

/** A number that was given up may be chosen again; generated again it is not. */
function handedOutTwice(log: FoldedLog): string[] {
  const found: string[] = []
  const first = new Map<string, string>()
  for (const { actorId, entries } of log.actors.values()) {
    const [opened] = entries
    if (opened?.entry.g === undefined) continue
    const number = String(recordsOf(opened.entry, ledger)[0]!['number'])
    const other = first.get(number)
    if (other !== undefined) found.push(`K4: ${number} was handed out to ${other} and ${actorId}`)
    first.set(number, actorId)
  }
  return found
}

/**
 * Every row of a number leads to the ledger that has it: one that was given up is free for others.
 * What an actor has not confirmed is ended when it is next asked for (F34).
 */
export function checkKeyRows({ tables }: Engine, log: FoldedLog): string[] {
  const found: string[] = []
  for (const { keyType, key, claims } of storedAliases(tables)) {
    if (keyType !== 'ledger') continue
    for (const { actorId, confirmed } of claims) {
      if (!confirmed) continue
      const has = finalState(log.actors.get(actorId))?.number
      if (has === key) continue
      found.push(`K4: the number ${key} leads to ${actorId}, whose number is ${has ?? 'none'}`)
    }
  }
  return found
}
