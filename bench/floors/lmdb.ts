// Floor: grouped LMDB append. POST, JSON.parse, five events packed, and an LMDB put that is on
// disk before the answer: one transaction in flight, all orders that wait meanwhile go into the
// next (ARCHITECTURE 8). Run by the bench as a process of its own, in the same folder as the
// node's data; KONTOR_FLOOR_PORT and KONTOR_FLOOR_DIR say where.

import { open } from 'lmdb'
import { App, type HttpResponse } from 'uWebSockets.js'
import { newUuid } from '../load/requests.ts'
import { readJson } from './read-json.ts'

interface Body {
  readonly body: { readonly commands: readonly Record<string, unknown>[] } & Record<string, unknown>
}

const environment = open({
  path: process.env['KONTOR_FLOOR_DIR']!,
  encoding: 'binary',
  keyEncoding: 'binary',
  // A promise that resolves means that the transaction is on disk.
  overlappingSync: false,
})

let waiting: { res: HttpResponse; id: string; bytes: Buffer }[] = []
let flying = false
let offset = 0

/** One order as five events and the answer, as a journal would keep it. */
function pack(id: string, body: unknown): Buffer {
  const { body: create } = (body as readonly Body[])[0]!
  const { commands, ...head } = create
  const events = [
    { t: 'orderCreated', ...head },
    ...commands.slice(1, 4).map((command) => ({ t: 'applied', ...command })),
    { t: 'totals', orderTotal: 123.45, lines: commands.slice(3) },
  ]
  return Buffer.from(JSON.stringify({ id, at: Date.now(), events, answer: { orderId: id } }))
}

async function commit(): Promise<void> {
  flying = true
  while (waiting.length > 0) {
    const group = waiting
    waiting = []
    await environment.batch(() => {
      for (const { bytes } of group) {
        const key = Buffer.allocUnsafe(8)
        key.writeDoubleBE(++offset)
        void environment.put(key, bytes)
      }
    })
    for (const { res, id } of group) {
      if (res['aborted'] === true) continue
      res.cork(() => {
        res.writeHeader('Content-Type', 'application/json')
        res.end(`{"paths":["/resources/actors/order/${id}"],"data":{"orderId":"${id}"}}`)
      })
    }
  }
  flying = false
}

App()
  .get('/health/ready', (res) => void res.end('ok'))
  .post('/*', (res) => {
    readJson(res, (body) => {
      const id = newUuid()
      waiting.push({ res, id, bytes: pack(id, body) })
      if (!flying) void commit()
    })
  })
  .listen('127.0.0.1', Number(process.env['KONTOR_FLOOR_PORT']), (socket) => {
    if (!socket) process.exit(1)
  })

process.on('SIGTERM', () => process.exit(0))
