// Floor: bare HTTP. What uWebSockets.js costs with a POST, JSON.parse and a small answer: the roof
// of any server on it (ARCHITECTURE 8). Run by the bench as a process of its own; KONTOR_FLOOR_PORT
// says where.

import { App } from 'uWebSockets.js'
import { readJson } from './read-json.ts'

let n = 0

App()
  .get('/health/ready', (res) => void res.end('ok'))
  .post('/*', (res) => {
    readJson(res, () => {
      res.cork(() => {
        res.writeHeader('Content-Type', 'application/json')
        res.end(`{"paths":["/resources/actors/order/${++n}"],"data":{"orderId":"${n}"}}`)
      })
    })
  })
  .listen('127.0.0.1', Number(process.env['KONTOR_FLOOR_PORT']), (socket) => {
    if (!socket) process.exit(1)
  })

process.on('SIGTERM', () => process.exit(0))
