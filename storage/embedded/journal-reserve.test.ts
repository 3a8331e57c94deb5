// The reserve keeps back what it is set to, whatever a life of before has left. Source: PROTOCOL
// 3.16.

import { randomFillSync } from 'node:crypto'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { Reserve } from './journal-reserve.ts'

t.test('a reserve of another size is made anew', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'kontor-reserve-'))
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  for (const bytes of [1_024, 4_096, 2_048]) {
    const reserve = new Reserve({ dir, bytes, random: randomFillSync })
    t.equal(await reserve.make(), true)
    t.equal(statSync(join(dir, 'reserve')).size, bytes)
  }
})
