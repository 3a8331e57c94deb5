// Which addresses count as one caller.

import t from 'tap'
import { networkOf } from './network.ts'

t.test('what counts as one caller', (t) => {
  const own = (address: string): string => networkOf(address).own
  t.equal(own('192.0.2.7'), '192.0.2.7')
  t.not(own('192.0.2.7'), own('192.0.2.8'))
  t.equal(networkOf('192.0.2.7').block, networkOf('192.0.2.8').block)
  t.equal(own('2001:db8:1:2:3:4:5:6'), own('2001:DB8:0001:2::'), 'one /64 of IPv6, however written')
  t.not(own('2001:db8:1:2::'), own('2001:db8:1:3::'))
  t.equal(networkOf('2001:db8:1:2::').block, networkOf('2001:db8:1:3::9').block)
  t.equal(own('::1'), own('0:0:0:0:0:0:0:1'))
  t.equal(own('2001:db8::'), own('2001:db8:0:0:1:2:3:4'))
  t.equal(own('64:ff9b::192.0.2.7'), own('64:ff9b:0:0:0:0:c000:207'))
  for (const mapped of ['::ffff:192.0.2.7', '::FFFF:c000:207', '0:0:0:0:0:ffff:c000:0207']) {
    t.same(networkOf(mapped), networkOf('192.0.2.7'), mapped)
  }
  t.not(own('::ffff:192.0.2.7'), own('::ffff:192.0.2.8'), 'proxies name IPv4 callers so')
  t.equal(own('::ffff:0:192.0.2.7'), own('::1'))
  t.equal(own(''), '')
  t.end()
})
