// Redirects: which are the registered ones, and what is written behind them.

import t from 'tap'
import fc from 'fast-check'
import { formTargets } from './pages/layout.ts'
import { isSameRedirect, redirectTo } from './redirects.ts'

t.test('RFC 6749 3.1.2: a redirect is the registered text, and nothing like it', (t) => {
  const registered = 'https://shop.example/cb?a=1'
  t.ok(isSameRedirect(registered, registered))
  for (const other of [
    'https://shop.example/cb',
    'https://shop.example/cb?a=1&b=2',
    'https://shop.example/cb/?a=1',
    'https://shop.example/CB?a=1',
    'https://SHOP.example/cb?a=1',
    'https://shop.example:443/cb?a=1',
    'https://shop.example.evil.example/cb?a=1',
    'https://shop.example@evil.example/cb?a=1',
    'https://evil.example/https://shop.example/cb?a=1',
    'https://shop.example/cb?a=1#x',
    'https://shop.example/%63b?a=1',
    'https://shop.example/x/../cb?a=1',
    'https://shop.example/cb?a=1\r\nSet-Cookie: a=b',
    ' https://shop.example/cb?a=1',
    'http://shop.example/cb?a=1',
    '//shop.example/cb?a=1',
    '/cb?a=1',
    '',
  ]) {
    t.notOk(isSameRedirect(other, registered), other)
  }
  for (const uri of [
    'javascript:alert(1)',
    'data:text/html,x',
    'JavaScript:x',
    'x:\u00e9',
    'a b',
  ]) {
    t.notOk(isSameRedirect(uri, uri), `${uri} leads nowhere, whoever registered it`)
  }
  t.ok(isSameRedirect('com.example.app:/cb', 'com.example.app:/cb'))
  t.end()
})

t.test('RFC 8252 7.3: on a loopback interface any port will do', (t) => {
  for (const registered of ['http://127.0.0.1/cb', 'http://127.0.0.1:80/cb']) {
    for (const port of ['', ':1', ':51234', ':65535']) {
      t.ok(isSameRedirect(`http://127.0.0.1${port}/cb`, registered), `${port} of ${registered}`)
    }
  }
  t.ok(isSameRedirect('http://[::1]:9/cb?x=1', 'http://[::1]/cb?x=1'))
  t.ok(isSameRedirect('http://127.0.0.1:9', 'http://127.0.0.1'))
  for (const other of [
    'http://127.0.0.1:9/other',
    'http://127.0.0.1:65536/cb',
    'http://127.0.0.1:x/cb',
    'http://127.0.0.1:9@evil.example/cb',
    'http://127.0.0.1.evil.example/cb',
    'http://127.0.0.2:9/cb',
    'http://localhost:9/cb',
    'http://[::1]:9/cb',
    'https://127.0.0.1:9/cb',
    'http://127.0.0.1:9/cb?x',
  ]) {
    t.notOk(isSameRedirect(other, 'http://127.0.0.1/cb'), other)
  }
  t.notOk(isSameRedirect('http://localhost:9/cb', 'http://localhost:8/cb'), 'a name is no address')
  t.end()
})

t.test('an answer stands behind what the address has, and reads back to the byte', (t) => {
  t.equal(
    redirectTo('https://a.example/cb', { code: 'x', state: null }),
    'https://a.example/cb?code=x',
  )
  t.equal(redirectTo('https://a.example/cb?b=1', { code: 'x' }), 'https://a.example/cb?b=1&code=x')
  t.equal(redirectTo('https://a.example/cb?', { code: 'x' }), 'https://a.example/cb?code=x')
  const any = fc.string({ unit: 'binary', maxLength: 200 })
  fc.assert(
    fc.property(any, (state) => {
      const uri = redirectTo('app:/cb', { code: 'c', state })
      const read = new URLSearchParams(uri.slice(uri.indexOf('?')))
      return read.get('state') === state && /^[!-~]*$/.test(uri) && read.get('code') === 'c'
    }),
  )
  t.end()
})

t.test('the policy of a form lets its answer lead where the application is', (t) => {
  t.equal(formTargets('https://a.example/cb'), "'self' https:")
  t.equal(formTargets('http://127.0.0.1:9/cb'), "'self' https: http:")
  t.equal(formTargets('com.example.app:/cb;x'), "'self' https: com.example.app:")
  t.end()
})
