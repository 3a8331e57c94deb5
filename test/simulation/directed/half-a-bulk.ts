// Of one change of a ledger the engine takes its own document, and is too busy for the node that
// came with it: whoever looks then sees the ledger as it was or as it is, and nothing in between
// (PROTOCOL 3.13.1).

import type { Stage } from './stage.ts'

export const hasGraph = true

export async function play(stage: Stage): Promise<void> {
  const [a] = await stage.start('a')
  const id = stage.ledgerIn(stage.shardOf(a!))
  const first = await stage.must(a!, id, [['open'], ['append', { token: 't0' }]])
  await stage.until('it is shown', () => stage.isShown())
  const { looks } = stage.clients.history
  // Until the index is filled, and read from.
  for (let i = 0; i < 100 && looks.length === 0; i++) await stage.clients.look(a!, first)
  const search = stage.world.search!
  let refused = 0
  search.isRefused = ({ index }) => index.includes('token') && ++refused > 0
  await stage.must(a!, id, [['append', { token: 't1' }]])
  await stage.until('half of it is written', () => refused > 0)
  // What was written has come into sight.
  await stage.wait(500)
  await stage.clients.look(a!, first)
  search.isRefused = null
}
