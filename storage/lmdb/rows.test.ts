// Rows in a transaction's memory: whole wherever in it they come to lie, whatever they hold.

import t from 'tap'
import type { AliasRow } from '../journal.ts'
import { Arena } from './arena.ts'
import type { JournalEnvironment } from './environment.ts'
import { aliasKey, derivedBody, isWhole } from './layout.ts'
import { encodeDerived, encodeRow } from './rows.ts'

const CHUNK_BYTES = 1_024
const ORIGIN = { shard: 1, offset: 7 }

t.test('a key is whole at each place of the memory, in any script', (t) => {
  const env = {} as JournalEnvironment
  const keys = ['O1', 'ö'.repeat(25), '漢'.repeat(30), '\u{1f600}'.repeat(20), 'ö'.repeat(90)]
  const claim = { actorId: 'a', messageId: '漢'.repeat(30), confirmed: true, clock: 1 }
  for (let filled = 0; filled < CHUNK_BYTES; filled += 3) {
    const arena = new Arena(CHUNK_BYTES)
    encodeDerived(arena, Buffer.of(1), ORIGIN, Buffer.alloc(filled))
    for (const key of keys) {
      const row: AliasRow = { keyType: 'order', key, claims: [claim] }
      const of = { shard: 1, row: { kind: 'alias', offset: 7, row }, place: null } as const
      const encoded = encodeRow(arena, env, of)
      if (!isWhole(encoded.key, encoded.value)) t.fail(`${key} behind ${filled} bytes: not whole`)
      t.ok(aliasKey('order', key).equals(encoded.key), 'it is found where it is looked for')
      t.same(JSON.parse(derivedBody(encoded.value).toString()), row)
    }
  }
  t.end()
})
