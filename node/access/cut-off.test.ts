// What a token is worth on a member that is cut off from the journal, while its wire and its
// callers go on: nothing, 2 s after it last knew what was revoked (PROTOCOL 3.0).

import t from 'tap'
import type { Test } from 'tap'
import { randomFillSync } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeMembers } from '../../cluster/testing/members.ts'
import type { OneMember } from '../../cluster/testing/members.ts'
import { LIMITS } from '../../config/limits.ts'
import { RequestError } from '../../protocol/errors.ts'
import { SYSTEM_SHARD } from '../../protocol/ids.ts'
import type { OperationRequest } from '../http/operation.ts'
import { accessBehaviours, createAccess } from './access.ts'
import type { Access } from './access.ts'

const SECRET = 'correct horse'

interface Station extends OneMember {
  readonly access: Access
}

const has = ({ member }: OneMember): boolean => member.shards.get(SYSTEM_SHARD)?.state === 'serving'

async function cluster(t: Test) {
  const members = makeMembers({ behaviours: accessBehaviours() })
  const { clock, until } = members
  const all: Station[] = []
  for (const name of ['a', 'b', 'c']) {
    const one = await members.start(name)
    const dir = mkdtempSync(join(tmpdir(), 'kontor-cut-off-'))
    const access = createAccess({
      actorSystem: one.member,
      world: { clock, random: (bytes) => void randomFillSync(bytes) },
      dataDir: dir,
      bootstrapSecret: SECRET,
      accessTokenMs: 3_600_000,
      refreshTokenMs: 30 * 24 * 3_600_000,
      baseUrl: 'http://localhost',
      storeSecret: 'store',
      tell: () => undefined,
      isTerminal: false,
      tidies: () => one.member.serves(SYSTEM_SHARD),
      onError: () => undefined,
      onPushedOut: () => undefined,
      ready: () => one.member.knowsConfiguration || one.member.learnConfiguration(),
    })
    t.teardown(() => {
      access.stop()
      rmSync(dir, { recursive: true, force: true })
    })
    all.push(Object.assign(one, { access }))
  }
  await until('`system` is served', () => all.filter(has).length === 1)
  /** Moves the clock until the promise is settled. */
  const during = async <T>(promise: Promise<T>): Promise<T> => {
    let isSettled = false
    const settled = (): void => void (isSettled = true)
    promise.then(settled, settled)
    await until('it is settled', () => isSettled, 60_000)
    return promise
  }
  await during(all.find(has)!.access.start())
  const call = async (one: Station, path: string, form: Record<string, string>) => {
    const operation = one.access.operations.find((found) => found.path === path)!
    const request = {
      body: new URLSearchParams(form),
      bodyFault: null,
      bodyBytes: Buffer.alloc(0),
      header: () => '',
      requestId: 'r',
      address: '192.0.2.1',
    } as unknown as OperationRequest
    return during(Promise.resolve(operation.handle(request)))
  }
  const who = async (one: Station, token: string): Promise<string | number> => {
    const known = await during(Promise.resolve(one.access.authenticate(`Bearer ${token}`)))
    return known instanceof RequestError ? known.status : known.id
  }
  return { clock, until, all, call, who }
}

const CREDENTIALS = {
  grant_type: 'client_credentials',
  client_id: 'bootstrap',
  client_secret: SECRET,
}

for (const cutsOwner of [false, true]) {
  const which = cutsOwner ? 'the owner of `system`' : 'another member'
  t.test(`cut off is ${which}: a revoked token is 503 there, 2 s later`, async (t) => {
    const { clock, until, all, call, who } = await cluster(t)
    const owner = all.find(has)!
    const cut = cutsOwner ? owner : all.find((one) => one !== owner)!
    const others = all.filter((one) => one !== cut)
    const issued = await call(owner, '/oauth/token', CREDENTIALS)
    const { access_token: token } = issued.body as { access_token: string }
    for (const one of all) t.equal(await who(one, token), 'bootstrap', 'good everywhere')

    cut.cutJournal()
    const cutAtMs = clock.monotonicMs()
    await until('others have `system`', () => others.some(has))
    await clock.advance(LIMITS.cluster.systemReadEveryMs)
    t.equal((await call(others[0]!, '/oauth/revoke', { token })).status, 200)
    for (const one of others) t.equal(await who(one, token), 401)
    await clock.advance(Math.max(0, cutAtMs + LIMITS.cluster.systemStaleMs - clock.monotonicMs()))
    t.equal(await who(cut, token), 503, 'it is in its cache, and its maps have the session')
    await clock.advance(30_000)
    t.equal(await who(cut, token), 503)
    t.equal((await call(cut, '/oauth/token', CREDENTIALS)).status, 503)
    t.equal((await call(cut, '/oauth/revoke', { token: 'unknown' })).status, 503)
  })
}
