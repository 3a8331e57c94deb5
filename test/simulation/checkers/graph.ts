// K5, K7 and K9: when all is quiet, the graph index shows what the log's fold shows, no more and no
// less; whoever asks with the position of its own write finds it, a client's view never goes back,
// and what it is shown of an actor with its parts is one of that actor's states. Source: PROTOCOL
// 4.1.

import { docOf } from '../../../storage/elastic/document.ts'
import { OWN } from '../../../storage/elastic/layout.ts'
import type { MemorySearchEngine } from '../../../storage/memory/search-engine.ts'
import type { Look, ShownLedger } from '../clients/operation-history.ts'
import { nodesOfLedger, projectLedger } from '../clients/ledger.ts'
import type { Ledger } from '../clients/ledger.ts'
import { finalState } from './fold.ts'
import type { FoldedActor, FoldedLog } from './fold.ts'

/** Documents by actor, node type and node id. */
type Documents = ReadonlyMap<string, string>

/** What the indexes hold that are read, removed nodes left out. */
export function shownDocuments({ state }: MemorySearchEngine, prefix: string): Documents {
  const shown = new Map<string, string>()
  for (const { aliases, documents, definition } of state.values()) {
    const node = String(definition.meta['node'])
    if (!aliases.has(`${prefix}${node}`)) continue
    for (const { source } of documents.values()) {
      const own = source[OWN] as { actor: string; id: string; deleted?: true }
      if (own.deleted !== true) shown.set(`${own.actor} ${node} ${own.id}`, textOf(docOf(source)))
    }
  }
  return shown
}

/** K5. */
export function checkGraph(shown: Documents, log: FoldedLog): string[] {
  const found: string[] = []
  const expected = new Map<string, string>()
  for (const actor of log.actors.values()) {
    const state = actor.type === 'ledger' ? finalState(actor) : null
    if (state === null) continue
    for (const ref of nodesOfLedger(state)) {
      const doc = projectLedger(state, ref)!.doc
      expected.set(`${actor.actorId} ${ref.node} ${ref.id}`, textOf(doc))
    }
  }
  for (const [name, doc] of expected) {
    const there = shown.get(name)
    if (there === undefined) found.push(`K5: the index lacks ${name}`)
    else if (there !== doc) found.push(`K5: the index shows ${name} as ${there}, not ${doc}`)
  }
  for (const name of shown.keys()) {
    if (!expected.has(name)) found.push(`K5: the index shows ${name}, which there is not`)
  }
  return found
}

function textOf(doc: Readonly<Record<string, unknown>>): string {
  return JSON.stringify(Object.entries(doc).toSorted(([a], [b]) => (a < b ? -1 : 1)))
}

/** K7, and K9 of what the graph shows while writes run. */
export function checkLooks(looks: readonly Look[], log: FoldedLog): string[] {
  const found: string[] = []
  /** By client and ledger, the oldest state that the newest look may have shown. */
  const seen = new Map<string, number>()
  for (const look of looks) {
    const { client, ledgerId, shown, position, id } = look
    const actor = log.actors.get(ledgerId)
    const written = actor?.entries.findIndex(({ offset }) => offset === position.offset) ?? -1
    if (actor === undefined || written < 0) continue
    const who = `look ${id} shows ${ledgerId} as ${textOfShown(shown)}`
    const states = statesShown(shown, actor)
    if (states.length === 0) {
      found.push(`K9: ${who}, which it never was`)
      continue
    }
    const newest = states.at(-1)!
    if (newest < written)
      found.push(`K7: ${who}, state ${newest}, after a write that made ${written}`)
    const session = `${client} ${ledgerId}`
    const before = seen.get(session) ?? 0
    if (newest < before) found.push(`K7: ${who}, state ${newest}, after a look at ${before}`)
    seen.set(session, Math.max(before, states[0]!))
  }
  return found
}

/** Which of the ledger's states are just that, the oldest first. */
function statesShown(shown: ShownLedger | null, { states }: FoldedActor): number[] {
  const text = textOfShown(shown)
  return states.flatMap((state, i) => (textOfState(state as Ledger | null) === text ? [i] : []))
}

function textOfState(state: Ledger | null): string {
  if (state === null || state.deleted) return textOfShown(null)
  const tokens = state.tokens.filter((token) => !state.struck.includes(token))
  return textOfShown({ size: state.tokens.length, tokens })
}

function textOfShown(shown: ShownLedger | null): string {
  return shown === null ? 'nothing' : `${shown.size} tokens with ${shown.tokens.join()}`
}
