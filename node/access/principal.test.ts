// Who has an e-mail address: nobody is called by anything else.

import t from 'tap'
import { ActorSystemTwin } from '../testing/actor-system-twin.ts'
import { accessBehaviours } from './access.ts'
import { principalOf } from './administration/testing/scene.ts'
import { loginName, principalByEmail } from './principal.ts'

t.test('by an address, in letters of any case, and by no login', (t) => {
  const actors = new ActorSystemTwin(accessBehaviours())
  const login = { issuer: 'https://id.example', subject: '7' }
  actors.put('principal', 'ada', principalOf('Ada@Shop.example', { logins: [login] }))
  const keyOf = (text: string): string | undefined => principalByEmail(actors.system, text)?.key
  t.equal(keyOf('aDA@shop.EXAMPLE'), 'ada')
  t.ok(actors.system.find('principal', loginName(login)), 'the maps know it')
  t.equal(keyOf(loginName(login)), undefined)
  t.equal(keyOf(''), undefined)
  t.end()
})
