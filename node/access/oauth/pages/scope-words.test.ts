// What people read of a scope.

import t from 'tap'
import { scopeInWords } from './scope-words.ts'

t.test('scopes in words', (t) => {
  const cases: Record<string, string> = {
    '*:*': 'Everything that you may do yourself, now and later',
    'actors/order:create': 'Create orders',
    'actors/order:*': 'Create and change orders',
    'actors:*': 'Create and change records of every kind',
    'actors/order:applyCommands': 'Send “applyCommands” to orders',
    'graph:query': 'Find and count records of every kind',
    'graph/orderLine:query': 'Find and count order lines',
    'graph/delivery:*': 'Find and read deliveries',
    'graph/order:field': 'Read all of orders',
    'graph/order:field:dynamic:note': 'Read “dynamic.note” of orders',
    'region@graph/order:query': 'Find and count orders, those of your own “region” alone',
    'registry:read': 'See settings of the shop',
    'registry/channels/web:write': 'Change settings of the shop: channels/web',
    'iam/clients:write': 'Change applications and their rights',
    'jobs/nightly:schedule': 'Schedule jobs: nightly',
    'me:read': 'See your name, your e-mail address, your rights, and where you are signed in',
    'me:write':
      'Change your password, make and delete tokens in your name, and sign you out elsewhere',
    'me:*': 'See and change your own account: your rights, your password, your tokens and sign-ins',
  }
  for (const [ace, words] of Object.entries(cases)) {
    t.match(scopeInWords(ace), [{ words, ace }], ace)
  }
  t.same(scopeInWords(null), [
    { words: 'Everything that you may do yourself, now and later', ace: null },
  ])
  t.equal(scopeInWords('me:read graph:query').length, 2)
  t.end()
})
