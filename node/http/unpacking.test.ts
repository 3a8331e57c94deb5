// Who is next where packed bodies wait.

import { gzipSync } from 'node:zlib'
import t from 'tap'
import { RequestError } from '../../protocol/errors.ts'
import { Unpacking } from './unpacking.ts'

t.test('one who sends many keeps nobody else out', async (t) => {
  const unpacking = new Unpacking({ unpackingsMax: 1, unpackingsWaitingMax: 4 })
  const ended: string[] = []
  const send = async (group: string, n: number): Promise<void> => {
    const body = gzipSync(`${group}${n}`)
    const plain = await unpacking.unpack(body, 1_000, { group, name: group })
    const isRefused = plain instanceof RequestError
    ended.push(isRefused ? `${group}${n} ${plain.errors[0]!.code}` : plain.toString())
  }
  const all = Array.from({ length: 8 }, (_, n) => send('a', n))
  all.push(send('b', 0), send('b', 1))
  await Promise.all(all)
  const served = ended.filter((one) => !one.includes(' '))
  t.strictSame(served, ['a0', 'a1', 'b0', 'a2', 'b1'], 'they take turns')
  const refused = ['a3', 'a4', 'a5', 'a6', 'a7'].map((name) => `${name} TOO_BUSY`)
  t.strictSame(ended.filter((one) => one.includes(' ')).sort(), refused)
})

t.test('what is no gzip, or unpacks to too much, leaves its place', async (t) => {
  const unpacking = new Unpacking({ unpackingsMax: 1, unpackingsWaitingMax: 4 })
  const caller = { group: 'a', name: 'a' }
  const bodies = [Buffer.from('no'), gzipSync('x'.repeat(2_000)), gzipSync('right')]
  const plain = bodies.map((body) => unpacking.unpack(body, 1_000, caller))
  const [broken, large, right] = await Promise.all(plain)
  t.match(broken, { errors: [{ code: 'MALFORMED_REQUEST' }] })
  t.match(large, { errors: [{ code: 'TOO_LARGE' }] })
  t.equal(String(right), 'right')
})
