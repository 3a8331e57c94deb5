// What strangers and callers can make a node do: none of it may keep others waiting for 200 ms,
// take 100 MiB, or end in a 5xx. Each attack was a hole once. Source: CONTRACT 0 "Bodies", "Slow
// readers".

import t from 'tap'
import type { Test } from 'tap'
import { gzipSync } from 'node:zlib'
import { onCluster } from '../harness/driver.ts'
import { startNode } from '../harness/node-process.ts'
import type { Answer } from '../harness/node-process.ts'
import { create } from '../harness/orders.ts'
import { survives } from './bystander.ts'

const MiB = 1024 * 1024

if (process.platform !== 'linux' || onCluster) {
  t.plan(0, 'it reads what Linux says of a process, of a node by itself')
  process.exit(0)
}
const node = await startNode(t)
const token = await node.token()
// What is compiled and made at the first request of each kind is no attack.
await node.order('new', [create()])
await node.ask('/resources/graph', { body: [{ edge: 'orders' }] })
await node.send('/openapi.json', { headers: { 'Accept-Encoding': 'gzip' } })
for (let i = 0; i < 300; i++) await node.send('/health/live')
const auth = `Authorization: Bearer ${token}\r\n`

function head(line: string, headers = ''): string {
  return `${line} HTTP/1.1\r\nHost: x\r\n${headers}\r\n`
}

/** Answers of requests that a caller may get wrong: never our mistake. */
function noFault(t: Test, answers: readonly Answer[]): void {
  for (const { status, text } of answers) t.ok(status < 500, `${status} ${text.slice(0, 200)}`)
}

t.test('gzip that grows a thousandfold, at the door', async (t) => {
  const packed = gzipSync(Buffer.alloc(10 * MiB, 0x61))
  const headers = `Content-Encoding: gzip\r\nContent-Length: ${packed.length}\r\n`
  await survives(t, node, async (crowd) => {
    for (let i = 0; i < 40; i++) crowd.send(head('POST /oauth/token', headers), packed)
    await crowd.settled()
  })
})

t.test('answers that nobody reads', async (t) => {
  for (const line of [
    'GET /openapi.json',
    'GET /health/live',
    'HEAD /metrics',
    'OPTIONS /metrics',
  ]) {
    await survives(t, node, async (crowd) => {
      const requests = head(line).repeat(2_000)
      for (let i = 0; i < 3; i++) crowd.send(...Array<string>(4).fill(requests)).pause()
      await crowd.settled()
    })
  }
})

t.test('answers that many want packed at once', async (t) => {
  const request = head('GET /openapi.json', 'Accept-Encoding: gzip\r\n')
  await survives(t, node, async (crowd) => {
    const isAnswered = (): Promise<unknown> =>
      new Promise((resolve) => crowd.send(request).once('data', resolve).once('close', resolve))
    await Promise.all(Array.from({ length: 700 }, isAnswered))
  })
})

t.test('bodies that never end leave room for callers', async (t) => {
  await survives(t, node, async (crowd) => {
    const half = Buffer.alloc(9 * MiB, 0x61)
    const length = `Content-Length: ${10 * MiB}\r\n`
    for (let i = 0; i < 26; i++) crowd.send(head('POST /oauth/token', length), half)
    const small = 'Content-Length: 65536\r\n'
    for (let i = 0; i < 500; i++)
      crowd.send(head('POST /oauth/token', small), half.subarray(0, 65_000))
    await crowd.settled()
    const large = JSON.stringify([create()]).padEnd(2 * MiB, ' ')
    const answer = await node.ask('/resources/actors/order/new', { raw: large })
    t.equal(answer.status, 200, answer.text.slice(0, 200))
  })
})

t.test('lines of bulk that are sent by half', async (t) => {
  const packed = gzipSync(Buffer.alloc(10 * MiB - 1_000, 0x61))
  const headers =
    `${auth}Content-Type: application/x-ndjson\r\nContent-Encoding: gzip\r\n` +
    `Content-Length: ${packed.length}\r\n`
  await survives(t, node, async (crowd) => {
    for (let i = 0; i < 30; i++) {
      crowd.send(head('POST /resources/actors/order', headers), packed.subarray(0, -20)).resume()
    }
    await crowd.settled()
  })
})

t.test('texts that are long, deep, or many', async (t) => {
  const graph = (body: unknown): Promise<Answer> => node.ask('/resources/graph', { body })
  const raw = (text: string): Promise<Answer> => node.ask('/resources/graph', { raw: text })
  const arrows = (n: number): string => `dynamic${"->'a'".repeat(n)}`
  const attacks: (() => Promise<Answer>)[] = [
    () => graph([{ edge: 'orders', node: { fields: [arrows(40_000)] } }]),
    () => graph([{ edge: 'orders', filter: `${arrows(1_500)} == 1` }]),
    () => graph([{ edge: 'orders', orderBy: Array(10_000).fill('createdAt').join(',') }]),
    () => raw(`[${'{},'.repeat(3_000_000)}{}]`),
    () => raw(`{${Array.from({ length: 600_000 }, (_, i) => `"${i}a":1`).join(',')}}`),
    () => raw(`${'\n'.repeat(9 * MiB)}!`),
    () => raw(`"${'a'.repeat(9 * MiB)}`),
    () => node.order('new', [{ type: 'A'.repeat(2 * MiB) }]),
    () => node.order('B'.repeat(8_000), [create()]),
  ]
  for (const attack of attacks) {
    let answer: Answer | undefined
    await survives(t, node, async () => (answer = await attack()))
    noFault(t, [answer!])
    t.ok(answer!.text.length < 2_000, 'an error repeats little')
  }
})

t.test('more connections than the process may open files', async (t) => {
  await survives(t, node, async (crowd) => {
    for (let i = 0; i < 2_000; i++) crowd.send()
    await crowd.settled()
  })
  noFault(t, [await node.send('/metrics')])
  t.ok(node.isUp)
})
