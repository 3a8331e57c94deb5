// Answers of Elasticsearch as the client takes them: part of an answer is none. The server here
// answers searches as Elasticsearch does.

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { ElasticClient } from './client.ts'
import { EngineAway, type SearchRequest } from './engine.ts'

interface Answer {
  readonly timed_out: boolean
  readonly _shards: { readonly failed: number }
  readonly hits: { readonly hits: readonly object[] }
}

const answerOf = (isLate: boolean, failed: number): Answer => ({
  timed_out: isLate,
  _shards: { failed },
  hits: { hits: [{ _id: 'a', sort: [1] }] },
})

t.test('what is late or lacks a shard is no answer, alone and among others', async (t) => {
  let answers: readonly Answer[] = []
  const server = createServer((request, response) => {
    const isOne = request.url!.endsWith('/_search')
    response.writeHead(200, {
      'content-type': 'application/json',
      'x-elastic-product': 'Elasticsearch',
    })
    response.end(JSON.stringify(isOne ? answers[0] : { responses: answers }))
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const client = new ElasticClient({ urls: [`http://127.0.0.1:${port}`] })
  t.teardown(async () => {
    await client.close()
    server.closeAllConnections()
    server.close()
  })
  const request: SearchRequest = {
    index: 'i',
    query: { match_all: {} },
    size: 1,
    sort: [],
    source: [],
    counts: false,
  }
  const search = (given: readonly Answer[]) => {
    answers = given
    return client.search(
      given.map(() => request),
      { timeoutMs: 20_000 },
    )
  }
  const whole = answerOf(false, 0)
  const hit = { hits: [{ id: 'a', source: {}, sort: [1] }], total: null }
  t.same(await search([whole]), [hit])
  t.same(await search([whole, whole]), [hit, hit])
  for (const [isLate, failed] of [
    [true, 0],
    [false, 1],
    [true, 1],
  ] as const) {
    const part = answerOf(isLate, failed)
    for (const given of [[part], [part, whole], [whole, part]]) {
      await t.rejects(search(given), new EngineAway('a search was not finished'))
    }
  }
})
