// The ten newest orders in a terminal, kept true while orders come, change and go. A reconnect goes
// on from where it was. Node 22, beside a node's data directory:
//
//     node examples/live-orders.mjs "orderTotal > 100"

import { readFileSync } from 'node:fs'

const { KONTOR_URL: url = 'http://127.0.0.1:8080', KONTOR_BOOTSTRAP_SECRET: known } = process.env
const secret = known ?? JSON.parse(readFileSync('data/bootstrap.json', 'utf8')).clientSecret
const client = { grant_type: 'client_credentials', client_id: 'bootstrap', client_secret: secret }
const [filter] = process.argv.slice(2)
const fields = ['orderNumber', 'customerNumber', 'orderState', 'orderTotal']
const query = { edge: 'orders', filter, orderBy: 'createdAt desc', limit: 10, node: { fields } }
/** @type {object[]} */
let orders = []
/** @type {string | undefined} */
let resume

async function watch() {
  const body = new URLSearchParams(client)
  const answer = await fetch(`${url}/oauth/token`, { method: 'POST', body })
  /** @type {any} */
  const { access_token: token, error_description: refusal } = await answer.json()
  if (token === undefined) throw new Error(refusal)
  const socket = new WebSocket(`${url.replace('http', 'ws')}/ws`)
  /** @param {object} frame */
  const send = (frame) => socket.send(JSON.stringify(frame))
  socket.addEventListener('open', () => {
    send({ type: 'auth', token })
    send({ type: 'createLiveQuery', liveQueryId: 'orders', query, resume })
  })
  socket.addEventListener('message', ({ data }) => {
    const { type, nodes, index, previousIndex, node, position, code, message } = JSON.parse(data)
    if (type === 'ping') send({ type: 'pong' })
    if (message !== undefined) console.error(message)
    if (code === 'UNAVAILABLE') socket.close()
    else if (type === 'liveQueryError') process.exit(1)
    if (nodes !== undefined) orders = nodes
    if (type === 'liveQueryRemove') orders.splice(index, 1)
    if (type === 'liveQueryUpdate') orders.splice(previousIndex, 1)
    if (node !== undefined) orders.splice(index, 0, node)
    if (position === undefined) return
    resume = position
    console.clear()
    console.table(orders, fields)
  })
  socket.addEventListener('close', again)
}

const again = () => void setTimeout(() => void watch().catch(again), 1_000)
await watch()
