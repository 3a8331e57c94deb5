// Tokens whose making fails behind their place on the list leave none taken.

import t, { type Test } from 'tap'
import { errorItem } from '../../../protocol/errors.ts'
import type { ErrorCode } from '../../../protocol/errors.ts'
import { ADA, personOf } from '../testing/external-scene.ts'
import { addClient, station } from '../testing/station.ts'
import { SESSION } from './session.ts'

const TRACE = { trace: 't' }

async function listedAfter(t: Test, code: ErrorCode) {
  const setup = await station(t)
  const { system, access, clock } = setup
  system.put('principal', ADA, personOf('ada@shop.example'))
  addClient(setup, 'shop', (first) => first)
  const subject = { identity: ADA, kind: 'principal', clientId: 'shop', scope: null } as const
  const make = () => {
    const expiresAtMs = clock.nowMs + 3_600_000
    return access.sessions.openPat({ ...subject, description: '', expiresAtMs }, TRACE)
  }
  system.before = ({ type, messages }) =>
    type === SESSION && messages[0]!.type === 'open'
      ? { outcome: 'refused', error: errorItem(code, 'no') }
      : null
  for (let i = 0; i < 3; i++) await t.rejects(make(), { errors: [{ code }] })
  system.before = () => null
  const { session } = await make()
  const listed = await access.sessions.listOf(subject, true, TRACE)
  t.equal(listed[0], session.sessionId)
  return listed.length - 1
}

t.test('what was surely not made has no place on the list', async (t) => {
  for (const code of ['UNAVAILABLE', 'TOO_BUSY', 'STORAGE_FULL'] as const) {
    t.equal(await listedAfter(t, code), 0, code)
  }
})

t.test('what may have been made has its place, or nobody would see it', async (t) => {
  t.equal(await listedAfter(t, 'OUTCOME_UNKNOWN'), 3)
})
