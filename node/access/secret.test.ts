// Which of a client's secrets one that is shown may be: few are checked at length, whatever is
// shown. Source: CONTRACT 1.11 "Wrong sign-ins".

import { randomFillSync } from 'node:crypto'
import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { Secrets, thoseToCheck } from './secret.ts'

const secrets = new Secrets((bytes) => void randomFillSync(bytes))

t.test('a secret that was made here is checked against few of ten', async (t) => {
  const made = Array.from({ length: LIMITS.access.secretsOfClientMax }, () => secrets.make())
  const hashes = await Promise.all(made.map((secret) => secrets.hashMade(secret)))
  for (const [i, secret] of made.entries()) {
    t.ok(thoseToCheck(secret, hashes).includes(hashes[i]!))
    t.ok(await secrets.matches(secret, hashes))
  }
  const wrong = Array.from({ length: 1_000 }, () => secrets.make())
  const checks = wrong.reduce((sum, secret) => sum + thoseToCheck(secret, hashes).length, 0)
  // One each, and 1 in 256 of those that have a second one's mark.
  t.ok(checks < 1_100, `${checks} checks of 1,000 wrong secrets`)
  t.notOk(await secrets.matches(wrong[0]!, hashes))
})

t.test('one that an operator chose is told by nothing', async (t) => {
  const hash = await secrets.hash('correct horse battery')
  t.equal(hash.split('$').length, 4)
  t.strictSame(thoseToCheck('wrong', [hash]), [hash])
  t.ok(await secrets.matches('correct horse battery', [hash]))
})

t.test('nobody has a secret, which takes one check', async (t) => {
  t.equal(thoseToCheck('wrong', []).length, 1)
  t.notOk(await secrets.matches('wrong', []))
})
