// How client secrets are kept and told: those that were made here by digests, whose number tells
// nothing, those that somebody chose at length until the right one was seen. Source: CONTRACT 1.11
// "Wrong sign-ins".

import { createHash, randomFillSync, scryptSync } from 'node:crypto'
import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { Secrets, sha256 } from './secret.ts'

const random = (bytes: Uint8Array): void => void randomFillSync(bytes)
/** Another process: it remembers nothing. */
const process = (): Secrets => new Secrets(random)
const { secretsOfClientMax, secretCacheMax } = LIMITS.access

/** As programs before kept what they had made; those before them without the mark. */
function kept(secret: string, isMarked: boolean): string {
  const salt = Buffer.alloc(16, 7)
  const hash = scryptSync(secret, salt, 32, { N: 2 ** 14, r: 8, p: 1 })
  const mark = createHash('sha256').update(`mark of ${secret}`).digest('hex').slice(0, 2)
  const form = `scrypt$14$${salt.toString('base64url')}$${hash.toString('base64url')}`
  return isMarked ? `${form}$${mark}` : form
}

t.test('what was made here is kept as a digest with its own salt', async (t) => {
  const secrets = process()
  const made = Array.from({ length: secretsOfClientMax }, () => secrets.make())
  const hashes = made.map((secret) => secrets.hashMade(secret))
  t.match(hashes[0], /^sha256\$[\w-]{22}\$[\w-]{43}$/)
  t.not(secrets.hashMade(made[0]!), hashes[0], 'another salt each time')
  for (const secret of made) {
    t.equal(process().atOnce([secret], hashes), true)
    t.ok(await process().matches([secret], hashes))
  }
  t.equal(secrets.atOnce([secrets.make()], hashes), false)
  t.notOk(await secrets.matches([secrets.make()], hashes))
  t.equal(secrets.atOnce([made[0]!], hashes.slice(1)), false, 'each has its own')
})

t.test('as many digests, whoever asks', async (t) => {
  let digests = 0
  const secrets = new Secrets(random, (salt, secret) => {
    digests++
    return sha256(salt, secret)
  })
  const made = Array.from({ length: secretsOfClientMax }, () => secrets.make())
  const hashes = made.map((secret) => secrets.hashMade(secret))
  const chosen = await secrets.hashChosen('correct horse battery')
  const cases: [string, string, readonly string[]][] = [
    ['no client, or one that is suspended', 'wrong', []],
    ['one secret, a wrong one', 'wrong', hashes.slice(0, 1)],
    ['the right one', made[0]!, hashes.slice(0, 1)],
    ['all secrets, a wrong one', 'wrong', hashes],
    ['the first of all', made[0]!, hashes],
    ['the last of all', made.at(-1)!, hashes],
    ['one that was chosen and is known, a wrong one', 'wrong', [chosen]],
    ['one that was chosen, and others', 'wrong', [chosen, ...hashes.slice(1)]],
  ]
  for (const [what, secret, of] of cases) {
    digests = 0
    t.not(secrets.atOnce([secret], of), null, what)
    t.equal(digests, secretsOfClientMax, what)
  }
})

t.test('a secret that may be read in two ways is right in either', async (t) => {
  const secrets = process()
  const readings = ['a b', 'a+b'] as const
  const [first, second] = readings.map((secret) => [secrets.hashMade(secret)])
  t.equal(secrets.atOnce(readings, first!), true)
  t.equal(secrets.atOnce(readings, second!), true)
  t.ok(secrets.isKnown(readings, second!))
  t.equal(secrets.atOnce(readings, [secrets.hashMade('ab')]), false)
  const chosen = await process().hashChosen('a+b')
  t.notOk(await process().matches(readings, [chosen]), 'at length the first alone')
  t.ok(await secrets.matches(['a+b'], [chosen]))
  t.equal(secrets.atOnce(readings, [chosen]), true, 'either, once it was right')
})

t.test('one that somebody chose is checked at length, until the right one was seen', async (t) => {
  const hash = await process().hashChosen('correct horse battery')
  t.match(hash, /^scrypt\$14\$[\w-]{22}\$[\w-]{43}$/)
  const secrets = process()
  for (const secret of ['wrong', 'correct horse battery']) {
    t.equal(secrets.atOnce([secret], [hash]), null)
    t.notOk(secrets.isKnown([secret], [hash]))
  }
  t.notOk(await secrets.matches(['wrong'], [hash]))
  t.equal(secrets.atOnce(['wrong'], [hash]), null, 'a wrong one tells nothing')
  t.ok(await secrets.matches(['correct horse battery'], [hash]))
  t.equal(secrets.atOnce(['correct horse battery'], [hash]), true)
  t.equal(secrets.atOnce(['wrong'], [hash]), false)
  t.ok(secrets.isKnown(['correct horse battery'], [hash]))
  t.notOk(secrets.isKnown(['wrong'], [hash]))
  t.notOk(secrets.isKnown(['correct horse battery'], []))
  const other = await process().hashChosen('correct horse battery')
  t.equal(secrets.atOnce(['correct horse battery'], [other]), null, 'another client’s')
})

t.test('who makes it knows it', async (t) => {
  const secrets = process()
  const hash = await secrets.hashChosen('correct horse battery')
  t.equal(secrets.atOnce(['wrong'], [hash]), false)
  t.equal(secrets.atOnce(['correct horse battery'], [hash]), true)
})

t.test('secrets of older stores go on, and are told by their prefix', async (t) => {
  const secret = process().make()
  for (const isMarked of [true, false]) {
    const hash = kept(secret, isMarked)
    const secrets = process()
    t.equal(secrets.atOnce([secret], [hash]), null)
    t.ok(await secrets.matches([secret], [hash]))
    t.equal(secrets.atOnce([secret], [hash]), true)
    t.notOk(await process().matches([process().make()], [hash]))
  }
  const hash = kept(secret, true)
  const wrong = Array.from({ length: 1_000 }, () => process().make())
  const atLength = wrong.filter((one) => process().atOnce([one], [hash]) === null).length
  t.ok(atLength < 20, `${atLength} of 1,000 wrong ones, for 1 in 256 has its mark`)
  const mixed = [process().hashMade('a'), hash, process().hashMade('b')]
  t.ok(await process().matches([secret], mixed), 'beside new ones')
  t.equal(process().atOnce(['b'], mixed), true)
})

t.test('nobody has a secret, and what is stored oddly is nobody’s', async (t) => {
  const odd = ['', 'sha256$', 'sha256$$', 'sha256$AAAA', 'sha256$AAAA$AAAA', 'md5$a$b', 'scrypt$14']
  for (const hashes of [[], odd]) {
    for (const secret of ['', 'A', 'wrong']) {
      t.notOk(await process().matches([secret], hashes))
      t.notOk(process().isKnown([secret], hashes))
    }
  }
})

t.test('past its bound the one that was right first is forgotten', (t) => {
  const secrets = process()
  const made = Array.from({ length: secretCacheMax + 1 }, () => secrets.make())
  const hashes = made.map((secret) => secrets.hashMade(secret))
  for (const [i, secret] of made.entries()) secrets.atOnce([secret], [hashes[i]!])
  t.notOk(secrets.isKnown([made[0]!], [hashes[0]!]))
  t.ok(secrets.isKnown([made[1]!], [hashes[1]!]))
  t.ok(secrets.isKnown([made.at(-1)!], [hashes.at(-1)!]))
  t.end()
})
