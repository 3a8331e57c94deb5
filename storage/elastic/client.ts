// The one door to Elasticsearch: the words of engine.ts over its client. The client's own retries
// are off: a bulk that is sent again is ours to decide on. Source: PROTOCOL 3.13, ARCHITECTURE 3.9.

import { Client, errors } from '@elastic/elasticsearch'
import { faultOf, loginFault, silentFault } from '../../config/engine-faults.ts'
import { LIMITS } from '../../config/limits.ts'
import type { ClusterSettings, EngineTls } from '../../config/settings.ts'
import {
  type AliasChange,
  type BulkItem,
  type BulkResult,
  EngineAway,
  type FieldMapping,
  type IndexDefinition,
  type IndexInfo,
  NoSuchIndex,
  type RequestBound,
  type SearchAnswer,
  type SearchEngine,
  type SearchHit,
  type SearchRequest,
} from './engine.ts'

export interface ElasticClientOptions {
  /** `http://` or `https://` addresses. */
  readonly urls: readonly string[]
  /** null: it asks for none, or they are in the addresses. */
  readonly auth?: ClusterSettings['elasticsearch']['auth']
  /** How it is known where it is spoken to over TLS. */
  readonly tls?: EngineTls | null
}

/** A response's body, as it comes. */
interface Answered {
  readonly statusCode: number
  readonly body: unknown
}

interface Sending {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  readonly path: string
  readonly query?: Readonly<Record<string, string>>
  /** JSON, or lines of JSON. */
  readonly body?: object | string | readonly string[]
}

export class ElasticClient implements SearchEngine {
  readonly #client: Client

  constructor({ urls, auth, tls }: ElasticClientOptions) {
    const { ca, cert, key } = tls ?? {}
    this.#client = new Client({
      nodes: [...urls],
      ...(auth && { auth }),
      ...(tls && { tls: { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) } }),
      maxRetries: 0,
      enableMetaHeader: false,
      name: 'kontor',
    })
  }

  async bulk(items: readonly BulkItem[], bound: RequestBound): Promise<readonly BulkResult[]> {
    const lines = items.flatMap(bulkLines)
    const path = '/_bulk'
    const { body } = await this.#send({ method: 'POST', path, body: lines }, bound)
    return (body as { items: BulkAnswer[] }).items.map(bulkResult)
  }

  async refresh(indexes: readonly string[], bound: RequestBound): Promise<void> {
    await this.#send({ method: 'POST', path: `/${names(indexes)}/_refresh` }, bound)
  }

  async search(
    requests: readonly SearchRequest[],
    bound: RequestBound,
  ): Promise<readonly SearchAnswer[]> {
    const timeout = `${Math.max(1, Math.ceil(bound.timeoutMs))}ms`
    if (requests.length === 1) {
      const [request] = requests
      const path = `/${names([request!.index])}/_search`
      const { body } = await this.#send(
        { method: 'POST', path, body: searchBody(request!, timeout) },
        bound,
      )
      return [searchAnswer(body as SearchBody)]
    }
    const lines = requests.flatMap((request) => [
      JSON.stringify({ index: request.index }),
      JSON.stringify(searchBody(request, timeout)),
    ])
    const { body } = await this.#send({ method: 'POST', path: '/_msearch', body: lines }, bound)
    return (body as { responses: (SearchBody & Failure)[] }).responses.map((response) => {
      if (response.error === undefined) return searchAnswer(response)
      throw failureOf({ statusCode: response.status, body: response })
    })
  }

  async indexes(prefix: string, bound: RequestBound): Promise<readonly IndexInfo[]> {
    const path = `/${encodeURIComponent(`${prefix}*`)}`
    const query = {
      features: 'aliases,mappings',
      allow_no_indices: 'true',
      // The mappings themselves are half of the answer, and told by `_meta`.
      filter_path: '*.aliases,*.mappings._meta',
    }
    const { body } = await this.#send({ method: 'GET', path, query }, bound)
    return Object.entries(body as Record<string, IndexBody>).map(([name, index]) => {
      const { _meta: meta = {} } = index.mappings ?? {}
      return { name, aliases: Object.keys(index.aliases ?? {}), meta }
    })
  }

  async createIndex(
    name: string,
    { writeAlias, properties, meta }: IndexDefinition,
    bound: RequestBound,
  ): Promise<void> {
    const body = {
      settings: {
        number_of_shards: 1,
        auto_expand_replicas: '0-1',
        // Set, it goes on refreshing when nobody searches for a while.
        refresh_interval: `${LIMITS.elastic.refreshMs}ms`,
      },
      mappings: { dynamic: 'strict', _meta: meta, properties: mappingsOf(properties) },
      aliases: { [writeAlias]: {} },
    }
    try {
      await this.#send({ method: 'PUT', path: `/${names([name])}`, body }, bound)
    } catch (error) {
      if (typeOf(error) !== 'resource_already_exists_exception') throw error
    }
  }

  async deleteIndex(name: string, bound: RequestBound): Promise<void> {
    const query = { ignore_unavailable: 'true' }
    await this.#send({ method: 'DELETE', path: `/${names([name])}`, query }, bound)
  }

  async moveAliases(changes: readonly AliasChange[], bound: RequestBound): Promise<void> {
    const actions = changes.map((change) =>
      'remove' in change ? { remove: { ...change.remove, must_exist: false } } : change,
    )
    await this.#send({ method: 'POST', path: '/_aliases', body: { actions } }, bound)
  }

  async close(): Promise<void> {
    await this.#client.close()
  }

  async #send(sending: Sending, { timeoutMs }: RequestBound): Promise<Answered> {
    const { method, path, query, body } = sending
    const isBulk = Array.isArray(body)
    const type = isBulk ? 'application/x-ndjson' : 'application/json'
    try {
      const { statusCode, body: answer } = await this.#client.transport.request(
        {
          method,
          path,
          ...(query && { querystring: query }),
          ...(body !== undefined && (isBulk ? { bulkBody: body as string[] } : { body })),
        },
        {
          requestTimeout: Math.max(1, Math.ceil(timeoutMs)),
          headers: { 'content-type': type, accept: 'application/json' },
          meta: true,
        },
      )
      return { statusCode: statusCode ?? 0, body: answer }
    } catch (error) {
      throw error instanceof errors.ResponseError
        ? failureOf({ statusCode: error.statusCode ?? 0, body: error.body })
        : away(error)
    }
  }
}

/** The server has answered that it won't: our own mistake, or a setting of the server's. */
class EngineRefusal extends Error {
  readonly type: string

  constructor(type: string, reason: string) {
    super(`Elasticsearch refused a request: ${type}: ${reason}`)
    this.type = type
  }
}

const typeOf = (error: unknown): string | null =>
  error instanceof EngineRefusal ? error.type : null

function away(error: unknown): EngineAway {
  const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
  return new EngineAway(`Elasticsearch: ${text}${settingOf(error)}`, { cause: error })
}

/** The setting that is to blame, as far as one is. */
function settingOf(error: unknown): string {
  const isMute = /other side closed|socket hang up/.test((error as Partial<Error>).message ?? '')
  return isMute ? silentFault('ELASTICSEARCH') : faultOf('ELASTICSEARCH', error)
}

interface Reason {
  readonly type?: string
  readonly reason?: string
}

interface Failure {
  readonly status: number
  /** "all shards failed" says nothing: the first cause does. */
  readonly error?: Reason & { readonly root_cause?: readonly Reason[]; readonly caused_by?: Reason }
}

/** What the server can't do now it may do later; what it refuses it will refuse again. */
function failureOf({ statusCode, body }: Answered): Error {
  const error = (body as Failure | undefined)?.error
  const { type = '' } = error ?? {}
  const causes = [error?.reason, error?.root_cause?.[0]?.reason, error?.caused_by?.reason]
  const reason = [...new Set(causes)].filter(Boolean).join(': ')
  const text = `${statusCode} ${type} ${reason}`.trim()
  if (type === 'index_not_found_exception') return new NoSuchIndex(text)
  // Who may do what there is set right there, too: nothing that this process has to end for.
  if (statusCode === 401 || type === 'security_exception') {
    return new EngineAway(`Elasticsearch: ${statusCode} ${type}${loginFault('ELASTICSEARCH')}`)
  }
  const isNotNow = statusCode === 408 || statusCode === 429 || statusCode >= 500
  return isNotNow || type === '' ? new EngineAway(text) : new EngineRefusal(type, reason)
}

const names = (indexes: readonly string[]): string => indexes.map(encodeURIComponent).join(',')

function bulkLines({ index: alias, id, write }: BulkItem): string[] {
  const at = { _index: alias, _id: id }
  if (write.kind === 'purge') {
    const known = { if_seq_no: write.seqNo, if_primary_term: write.primaryTerm }
    return [JSON.stringify({ delete: { ...at, ...known, require_alias: true } })]
  }
  const { version, source } = write
  const meta = { ...at, version, version_type: 'external_gte', require_alias: true }
  return [JSON.stringify({ index: meta }), source]
}

type BulkAnswer = Readonly<Record<string, Failure>>

function bulkResult(answer: BulkAnswer): BulkResult {
  const { status, error } = Object.values(answer)[0]!
  if (error === undefined || error === null) return 'done'
  if (status === 409) return 'newer'
  if (status === 429 || status >= 500) return 'busy'
  if (status === 404) return 'gone'
  return { refused: `${error.type ?? status}: ${error.reason ?? ''}` }
}

interface SearchBody {
  readonly timed_out: boolean
  readonly _shards: { readonly failed: number }
  readonly hits: {
    readonly total?: { readonly value: number }
    readonly hits: readonly {
      readonly _id: string
      readonly _source?: SearchHit['source']
      readonly sort?: readonly unknown[]
      readonly _seq_no?: number
      readonly _primary_term?: number
    }[]
  }
}

function searchBody(request: SearchRequest, timeout: string): object {
  const { query, size, sort, searchAfter, source, counts, sequence } = request
  return {
    query,
    size,
    sort: sort.map((key) =>
      Object.fromEntries(
        Object.entries(key).map(([name, way]) => [
          name,
          name === '_score' ? { order: way.order } : { ...way, unmapped_type: 'keyword' },
        ]),
      ),
    ),
    ...(searchAfter && { search_after: searchAfter.map(sentSort) }),
    _source: source,
    track_total_hits: counts,
    timeout,
    ...(sequence && { seq_no_primary_term: true }),
  }
}

function searchAnswer({ timed_out: isLate, _shards: shards, hits }: SearchBody): SearchAnswer {
  // Part of an answer is none.
  if (isLate || shards.failed > 0) throw new EngineAway('a search was not finished')
  return {
    hits: hits.hits.map((hit) => {
      const { _id: id, _source: source = {}, sort = [] } = hit
      const { _seq_no: seqNo, _primary_term: primaryTerm } = hit
      const isKnown = seqNo !== undefined && primaryTerm !== undefined
      return { id, source, sort, ...(isKnown && { seqNo, primaryTerm }) }
    }),
    total: hits.total?.value ?? null,
  }
}

/**
 * Dates and truths that are missing sort as the ends of a 64-bit integer. A number of JavaScript
 * can't be these, and as text they are no truth; a float beyond them is taken for the end.
 */
function sentSort(value: unknown): unknown {
  return Math.abs(value as number) === 2 ** 63 ? Math.sign(value as number) * 1e21 : value
}

interface IndexBody {
  readonly aliases?: Readonly<Record<string, unknown>>
  readonly mappings?: { readonly _meta?: Readonly<Record<string, unknown>> }
}

/** Text that stands for a number is a mistake, not a number. */
function mappingsOf(properties: Readonly<Record<string, FieldMapping>>): Record<string, unknown> {
  const entries = Object.entries(properties).map(([name, mapping]): [string, unknown] => {
    if ('properties' in mapping) {
      return [name, { ...mapping, properties: mappingsOf(mapping.properties) }]
    }
    return [name, mapping.type === 'double' ? { ...mapping, coerce: false } : mapping]
  })
  return Object.fromEntries(entries)
}
