// K5 and K7: when all is quiet, the graph index shows what the log's fold shows, no more and no
// less; whoever asks with the position of its own write finds it, and a client's view never goes
// back. Source: PROTOCOL 4.1.

import { docOf } from '../../../storage/elastic/document.ts'
import { OWN } from '../../../storage/elastic/layout.ts'
import type { MemorySearchEngine } from '../../../storage/memory/search-engine.ts'
import type { Look } from '../history.ts'
import { nodesOfLedger, projectLedger } from '../ledger.ts'
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

/** K7. */
export function checkSessions(looks: readonly Look[], log: FoldedLog): string[] {
  const found: string[] = []
  const sizes = new Map<string, number>()
  for (const look of looks) {
    const { client, ledgerId, size, position, id } = look
    const actor = log.actors.get(ledgerId)
    const written = actor && stateAt(actor, position.offset)
    if (!written || finalState(actor)!.deleted) continue
    if (size === null || size < written.tokens.length) {
      found.push(
        `K7: look ${id} shows ${size} tokens, after a write that made ${written.tokens.length}`,
      )
    }
    const session = `${client} ${ledgerId}`
    const before = sizes.get(session) ?? 0
    if ((size ?? 0) < before) found.push(`K7: look ${id} shows ${size} tokens, ${before} before`)
    sizes.set(session, Math.max(before, size ?? 0))
  }
  return found
}

function stateAt(actor: FoldedActor, offset: number) {
  const i = actor.entries.findIndex((placed) => placed.offset === offset)
  return (i < 0 ? null : actor.states[i]) as ReturnType<typeof finalState>
}
