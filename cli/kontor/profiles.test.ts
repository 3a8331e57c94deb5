// Two commands at once and the lock between them: who holds it, whatever a clock says, and who died
// with it.

import t from 'tap'
import { spawnSync } from 'node:child_process'
import { existsSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import type { Test } from 'tap'
import { Profiles, type Profile } from './profiles.ts'
import type { World } from './world.ts'

const FIRST: Profile = { url: 'http://x', clientId: 'c', accessToken: 't0', expiresAtMs: 0 }

function scene(t: Test) {
  const dir = t.testdir()
  let aheadMs = 0
  const env = { KONTOR_CONFIG_DIR: dir }
  const nowMs = (): number => Date.now() + aheadMs
  const profiles = () => new Profiles({ env, home: dir, nowMs } as unknown as World)
  const goAhead = (ms: number): void => void (aheadMs += ms)
  return { profiles, goAhead, lock: `${dir}/profiles.json.lock` }
}

t.test(
  'one renews at a time, and the others go by what it got; a clock says nothing',
  async (t) => {
    const { profiles, goAhead, lock } = scene(t)
    await profiles().put('a', FIRST, true)
    goAhead(2 * 3_600_000)
    let renewals = 0
    const begun = Promise.withResolvers<void>()
    const ended = Promise.withResolvers<void>()
    const renew = async (one: Profile): Promise<Profile> => {
      if (one.accessToken !== 't0') return one
      renewals++
      begun.resolve()
      await ended.promise
      return { ...one, accessToken: 't1' }
    }
    const first = profiles().renewed('a', renew)
    await begun.promise
    // A disk whose clock is far behind.
    utimesSync(lock, 1_000_000_000, 1_000_000_000)
    const others = [profiles().renewed('a', renew), profiles().renewed('a', renew)]
    // Both have looked at the lock and wait: longer than they do until they look again.
    await new Promise((resolve) => void setTimeout(resolve, 150))
    t.equal(renewals, 1, 'nobody else has begun')
    ended.resolve()
    const tokens = (await Promise.all([first, ...others])).map(({ accessToken }) => accessToken)
    t.same(tokens, ['t1', 't1', 't1'])
    t.equal(renewals, 1)
    t.notOk(existsSync(lock))
    t.equal(statSync(lock.replace('.lock', '')).mode & 0o777, 0o600)
  },
)

t.test('a command that was killed leaves its lock to whoever comes next', async (t) => {
  const { profiles, lock } = scene(t)
  await profiles().put('a', FIRST, true)
  const { pid } = spawnSync('true')
  writeFileSync(lock, `${pid} killed ${hostname()}`)
  await profiles().use('a')
  t.notOk(existsSync(lock))
})

t.test(
  'of another machine, or of a pid that is used again, it is left after a while',
  async (t) => {
    const { profiles, goAhead, lock } = scene(t)
    await profiles().put('a', FIRST, true)
    for (const holder of [
      '1 killed elsewhere.example',
      `${process.pid} killed ${hostname()}`,
      '',
    ]) {
      writeFileSync(lock, holder)
      let isDone = false
      const used = profiles()
        .use('a')
        .then(() => (isDone = true))
      await new Promise((resolve) => void setTimeout(resolve, 150))
      t.notOk(isDone, 'it may be held')
      goAhead(36_000)
      await used
    }
  },
)
