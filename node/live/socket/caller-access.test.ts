// Which connections look at their token again when something of the configuration changes.

import t from 'tap'
import { Acl } from '../../../protocol/ace.ts'
import { RequestError } from '../../../protocol/errors.ts'
import { accessBehaviours } from '../../access/access.ts'
import type { Identity } from '../../access/identity.ts'
import { ActorSystemTwin } from '../../testing/actor-system-twin.ts'
import { AccessBook } from './caller-access.ts'

/** Tokens by whom they are of: `<identity> <client>`. */
function scene() {
  const twin = new ActorSystemTwin(accessBehaviours())
  const looked: string[] = []
  const refused = new Set<string>()
  const deferred: (() => void)[] = []
  const book = new AccessBook({
    system: twin.system,
    authenticate: (authorization) => {
      const token = authorization.slice('Bearer '.length)
      looked.push(token)
      if (refused.has(token)) return new RequestError('UNAUTHENTICATED', 'it has ended')
      const [id, clientId] = token.split(' ') as [string, string]
      const kind = id === clientId ? ('client' as const) : ('principal' as const)
      const session = { id: token, kind, clientId, scope: null, eras: ['', ''] as const }
      const of = { id, kind, sessionId: token, grant: '', expiresAtMs: Infinity }
      const who: Identity = { ...of, acl: new Acl([]), session }
      return who
    },
    isKnown: () => true,
    clock: {
      ...{ nowMs: () => 0, monotonicMs: () => 0, after: () => () => undefined },
      defer: (run) => void deferred.push(run),
    },
  })
  const ended: string[] = []
  const open = async (token: string) => {
    const unknowable = (): undefined => undefined
    const end = { address: '', ended: () => void ended.push(token), unknowable }
    const access = await book.open(token, end)
    if (access instanceof RequestError) throw access
    looked.length = 0
    return access
  }
  const change = (type: string, key: string): string[] => {
    looked.length = 0
    twin.put(type, key, {})
    for (let run = deferred.shift(); run; run = deferred.shift()) run()
    return looked.toSorted()
  }
  return { book, open, change, refused, ended, looked, deferred, twin }
}

t.test('of an identity: those that act for it, or by it', async (t) => {
  const { open, change } = scene()
  for (const token of ['shop shop', 'ada shop', 'ada app', 'bea app']) await open(token)
  t.same(change('client', 'shop'), ['ada shop', 'shop shop'])
  t.same(change('client', 'app'), ['ada app', 'bea app'])
  t.same(change('principal', 'ada'), ['ada app', 'ada shop'])
  t.same(change('principal', 'cyd'), [], 'nobody is kept busy by who is new')
  t.same(change('role', 'shop:clerk'), ['ada app', 'ada shop', 'bea app', 'shop shop'])
})

t.test('from the moment of the change nothing is shown by what was', async (t) => {
  const { open, refused, ended, twin, deferred } = scene()
  const [ada, bea] = [await open('ada shop'), await open('bea shop')]
  refused.add('ada shop')
  twin.put('principal', 'ada', {})
  t.equal(deferred.length, 1, 'they are looked at later')
  t.equal(ada.identity, null, 'whoever asks before is told by the token')
  t.same(ended, ['ada shop'])
  t.match(bea.identity, { id: 'bea' })
})
