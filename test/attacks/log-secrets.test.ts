// What a log says of an error: nothing of what the caller, or the operator, had sent. Each driver's
// own errors, made by the driver itself or by its class, go through the log as it is.

import t from 'tap'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { errors as elastic } from '@elastic/elasticsearch'
import cassandra from 'cassandra-driver'
import { Redis } from 'ioredis'
import { jsonLog } from '../../node/log/log.ts'

const SECRET = 'hunter2-hunter2'

/** The line that the log writes of an error. */
function lineOf(error: unknown): { text: string; err: Record<string, unknown> } {
  let text = ''
  const write = (line: string): void => void (text += line)
  jsonLog({ logLevel: 'info', memberId: 'm' }, { write }).error({ err: error }, 'failed')
  return { text, err: (JSON.parse(text) as { err: Record<string, unknown> }).err }
}

/** What Redis's client fails with for a command that the server refuses in these words. */
async function redisError(refusal: string): Promise<unknown> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    // One answer for each command, and the client says some of its own.
    socket.on('data', (bytes) => {
      for (const command of bytes
        .toString()
        .split(/^\*[0-9]+\r$/m)
        .slice(1)) {
        socket.write(command.includes('XADD') ? `-${refusal}\r\n` : '+OK\r\n')
      }
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const redis = new Redis({ port, host: '127.0.0.1', retryStrategy: null, enableReadyCheck: false })
  redis.on('error', () => undefined)
  try {
    return await redis
      .call('XADD', 'inbox', '*', 'envelope', SECRET)
      .catch((error: unknown) => error)
  } finally {
    redis.disconnect()
    server.close()
  }
}

t.test('errors of Redis', async (t) => {
  const refused = await redisError('OOM command not allowed')
  t.match(JSON.stringify(refused), SECRET, 'the client hangs the command onto its error')
  const { text, err } = lineOf(refused)
  t.notMatch(text, SECRET)
  t.match(err, { type: /Error$/, message: 'OOM command not allowed' })
  const unknown = await redisError(
    `ERR unknown command 'XADD', with args beginning with: '${SECRET}'`,
  )
  t.notMatch(lineOf(unknown).text, SECRET)
  t.match(lineOf(unknown).err['message'], "ERR unknown command 'XADD'")
})

t.test('errors of Cassandra', (t) => {
  const { ResponseError, NoHostAvailableError } = cassandra.errors
  const wrong = new ResponseError(0x2200, 'Invalid amount of bind variables')
  Object.assign(wrong, { query: `INSERT '${SECRET}'`, params: [SECRET], coordinator: 'c' })
  const away = new NoHostAvailableError({ '10.0.0.1:9042': wrong }, 'All hosts tried')
  for (const error of [wrong, away]) {
    const { text } = lineOf(error)
    t.notMatch(text, SECRET)
    t.match(text, 'Invalid amount of bind variables')
  }
  t.end()
})

t.test('errors of Elasticsearch', (t) => {
  const params = { body: SECRET, headers: { authorization: `Basic ${SECRET}` } }
  const meta = {
    body: { error: { type: 'mapper_parsing_exception', reason: 'no' }, status: 400 },
    statusCode: 400,
    headers: {},
    warnings: null,
    meta: { request: { params, options: {}, id: 1 }, name: 'x', context: null },
  }
  const { text, err } = lineOf(new elastic.ResponseError(meta as never))
  t.notMatch(text, SECRET)
  t.match(err, { type: 'ResponseError', message: /mapper_parsing_exception/, statusCode: 400 })
  t.end()
})

t.test('errors of all other makes', (t) => {
  const file = Object.assign(new Error('ENOENT: no such file'), { code: 'ENOENT', dest: SECRET })
  const addressed = new Error(`connect to redis://user:${SECRET}@host:1/2 failed`)
  const several = new AggregateError([addressed, file], 'all failed')
  const caused = new Error('outer', { cause: Object.assign(addressed, { command: SECRET }) })
  for (const error of [file, addressed, several, caused, { password: 'x' }, 'text', null]) {
    t.notMatch(lineOf(error).text, SECRET)
  }
  t.match(lineOf(file).err, { type: 'Error', code: 'ENOENT', stack: /log-secrets/ })
  t.match(lineOf(addressed).err['message'], 'redis://***@host:1/2')
  t.match(lineOf(caused).err, { message: 'outer', cause: { message: /connect to/ } })
  t.match(lineOf(several).err, { errors: [{ message: /connect/ }, { code: 'ENOENT' }] })
  t.ok(lineOf(new Error('x'.repeat(1e6))).text.length < 40_000)
  const round = new Error('round')
  round.cause = round
  t.match(lineOf(round).err, { cause: { message: 'round' } })
  t.end()
})
