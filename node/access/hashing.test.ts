// New passwords take turns. Source: CONTRACT 1.8 "Passwords".

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { RequestError } from '../../protocol/errors.ts'
import { Hashing } from './hashing.ts'

t.test('one at a time, and who makes many waits behind nobody but themselves', async (t) => {
  const hashing = new Hashing()
  const ends: (() => void)[] = []
  const done: string[] = []
  let most = 0
  let running = 0
  const make = (by: string): Promise<void> =>
    hashing.run(by, async () => {
      most = Math.max(most, ++running)
      await new Promise<void>((resolve) => ends.push(resolve))
      running--
      done.push(by)
    })
  const { hashesOfCallerWaitingMax } = LIMITS.access
  // One of them runs, the others wait.
  const many = Array.from({ length: hashesOfCallerWaitingMax + 1 }, () => make('many'))
  const error = await make('many').catch((why: unknown) => why)
  t.ok(error instanceof RequestError)
  t.equal((error as RequestError).errors[0]!.code, 'TOO_BUSY')
  const one = make('one')
  const all = Promise.all([...many, one])
  for (let turns = 0; done.length < many.length + 1 && turns < 10_000; turns++) {
    ends.shift()?.()
    await Promise.resolve()
  }
  t.equal(done.length, many.length + 1)
  await all
  t.equal(most, 1)
  t.ok(done.indexOf('one') <= 2, 'it had its turn at once')
  t.equal(await hashing.run('later', () => Promise.resolve('still serves')), 'still serves')
  const failed = hashing.run('later', () => Promise.reject(new Error('no memory')))
  await t.rejects(failed, /no memory/)
  t.equal(await hashing.run('later', () => Promise.resolve('and again')), 'and again')
})
