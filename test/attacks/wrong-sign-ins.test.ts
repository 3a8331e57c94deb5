// Wrong sign-ins as fast as they are answered, from one address: they cost the node little, and
// right ones wait for few of them. Judged by what a check at length (scrypt) would cost on this
// machine, and by counts.
// Source: CONTRACT 1.11 "Wrong sign-ins".

import t from 'tap'
import { scryptSync } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import { LIMITS } from '../../config/limits.ts'
import { onCluster } from '../harness/driver.ts'
import { NodeProcess, SECRET } from '../harness/node-process.ts'
import { Patience, tick } from '../harness/patience.ts'

const WRONG = 400
const AT_ONCE = 16
const SAMPLE = 4
const RIGHT = 20

if (process.platform !== 'linux' || onCluster) {
  t.plan(0, 'it needs several addresses of this machine, and a node by itself')
  process.exit(0)
}
const node = new NodeProcess()
t.teardown(() => node.clear())
node.launch()
await isReady()

/** Nobody has signed in before: the node knows no secret to be right. */
async function isReady(): Promise<void> {
  const patience = new Patience(60_000)
  for (;;) {
    node.port ||= Number(/is up at https?:\/\/[^:]+:(\d+)/.exec(node.output)?.[1] ?? 0)
    const ready = node.port > 0 && (await node.send('/health/ready').catch(() => null))
    if (ready && ready.status === 200) return
    if (patience.isOver() || node.exitCode !== null) throw new Error(`not ready:\n${node.output}`)
    await tick(10)
  }
}

interface Told {
  readonly status: number
  readonly retryAfter: number | null
  readonly text: string
}

function signIn(localAddress: string, clientId: string, secret: string): Promise<Told> {
  const form = new URLSearchParams({
    grant_type: 'client_credentials',
    client_id: clientId,
    client_secret: secret,
  }).toString()
  const headers = {
    'Content-Type': 'application/x-www-form-urlencoded',
    'Content-Length': form.length,
  }
  const to = { host: '127.0.0.1', port: node.port, localAddress, agent: false, headers }
  return new Promise((resolve, reject) => {
    const sent = request({ ...to, method: 'POST', path: '/oauth/token' }, (response) => {
      let text = ''
      response.on('data', (part: Buffer) => (text += part.toString()))
      response.on('error', reject)
      response.on('end', () => {
        const after = response.headers['retry-after']
        const retryAfter = after === undefined ? null : Number(after)
        resolve({ status: response.statusCode ?? 0, retryAfter, text })
      })
    })
    sent.on('error', reject)
    sent.end(form)
  })
}

/** CPU time that the node has spent, milliseconds. */
function cpuMs(): number {
  const fields = readFileSync(`/proc/${node.pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10
}

t.test('they cost little, and right ones pass', async (t) => {
  const start = process.cpuUsage()
  for (let i = 0; i < SAMPLE; i++) scryptSync(`sample-${i}`, 'salt', 32, { N: 2 ** 14, r: 8, p: 1 })
  const eachMs = process.cpuUsage(start).user / 1_000 / SAMPLE
  for (let i = 0; i < SAMPLE; i++) {
    t.equal((await signIn('127.0.0.9', 'nobody', `sample-${i}`)).status, 401)
  }

  const [began, cpu] = [performance.now(), cpuMs()]
  const told: Told[] = []
  let next = 0
  const attack = Array.from({ length: AT_ONCE }, async () => {
    while (next < WRONG) told.push(await signIn('127.0.0.1', 'bootstrap', `wrong-${next++}`))
  })
  let waitedMs = 0
  for (let i = 0; i < RIGHT; i++) {
    const [from, before] = [performance.now(), cpuMs()]
    const { status, text } = await signIn('127.0.0.2', 'bootstrap', SECRET)
    t.equal(status, 200, text)
    waitedMs = Math.max(waitedMs, Math.min(performance.now() - from, cpuMs() - before))
  }
  t.equal((await signIn('127.0.0.1', 'bootstrap', SECRET)).status, 200, 'known, from there too')
  await Promise.all(attack)
  const seconds = (performance.now() - began) / 1_000
  const costMs = cpuMs() - cpu

  const checked = told.filter(({ status }) => status === 401).length
  const refused = told.filter(({ status }) => status === 429)
  t.equal(checked + refused.length, WRONG, 'no other answer')
  // Each wait is at least the first one.
  const more = Math.ceil((seconds * 1_000) / LIMITS.access.signInWaitMs)
  const most = LIMITS.access.signInWrongMax + more + LIMITS.access.secretChecksMax
  t.ok(checked <= most, `${checked} were checked, ${refused.length} refused`)
  t.ok(refused.every(({ retryAfter }) => retryAfter! >= 1 && retryAfter! <= 60))
  t.ok(costMs < (WRONG * eachMs) / 2, `${costMs} ms in all, ${eachMs} ms a check`)
  t.ok(waitedMs < 5 * eachMs + 100, `a right one took ${Math.round(waitedMs)} ms`)
})

t.test('nobody can tell whether there is such a client', async (t) => {
  const texts = new Set<string>()
  for (const clientId of ['bootstrap', 'nobody']) {
    const { status, text } = await signIn('127.0.0.3', clientId, 'a-wrong-secret-of-somebody')
    texts.add(`${status} ${text}`)
  }
  t.equal(texts.size, 1, [...texts].join('\n'))
})
