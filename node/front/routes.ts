// What a node says of itself at its root: a page for a browser, an index for everybody else.
// Strangers may see it, so it costs little and tells them nothing of the business. Source: CONTRACT
// 0 "Front page".

import { Type } from '@sinclair/typebox'
import type { Settings } from '../../config/settings.ts'
import type { Check } from '../health/routes.ts'
import type { Operation, OperationRequest, OperationResponse } from '../http/operation.ts'
import { prefersHtml } from '../accept.ts'
import { PAGE_HEADERS, pageOf } from './page.ts'
import type { Front } from './page.ts'
import { firstRequest, secretWords } from './first-request.ts'

export interface FrontParts {
  readonly version: string
  readonly settings: Pick<Settings, 'http' | 'storageDriver' | 'dataDir' | 'bootstrapSecret'>
  /** What must hold for this node to serve; cheap. */
  readonly checks: () => readonly Check[]
  /** False: the metrics are on a port of their own. Default: true. */
  readonly hasMetrics?: boolean
  /** How many orders the graph shows; null: it can't say now. Cheap. */
  readonly orders: () => Promise<number | null>
}

const LINKS = {
  watch: '/live',
  graphiql: '/graphiql',
  openapi: '/openapi.json',
  ready: '/health/ready',
  live: '/health/live',
  metrics: '/metrics',
  token: '/oauth/token',
  orders: '/resources/actors/order',
  graph: '/resources/graph',
} as const

const FrontSchema = Type.Object({
  name: Type.String(),
  version: Type.String(),
  storage: Type.String(),
  ready: Type.Boolean(),
  reasons: Type.Optional(Type.Array(Type.String())),
  orders: Type.Optional(Type.Integer()),
  links: Type.Record(Type.String(), Type.String()),
})

export function frontOperations(parts: FrontParts): Operation[] {
  return [
    {
      method: 'GET',
      path: '/',
      summary: 'What runs here: a page for a browser, else an index of places',
      access: 'either',
      response: FrontSchema,
      handle: (request) => handle(request, parts),
    },
  ]
}

function handle(
  request: OperationRequest,
  parts: FrontParts,
): OperationResponse | Promise<OperationResponse> {
  const isNear = isOwnMachine(request, parts.settings)
  const mayCount =
    isNear || (request.isKnown && request.identity.acl.covers('graph/order', 'query'))
  if (!mayCount) return answer(request, parts, { isNear, orders: null })
  return parts.orders().then((orders) => answer(request, parts, { isNear, orders }))
}

function answer(
  request: OperationRequest,
  { version, settings, checks, hasMetrics = true }: FrontParts,
  { isNear, orders }: { readonly isNear: boolean; readonly orders: number | null },
): OperationResponse {
  const reasons = checks().flatMap(({ ok, name, reason }) => (ok ? [] : [reason ?? name]))
  const { metrics, ...others } = LINKS
  const front: Front = {
    name: 'Kontor',
    version,
    storage: settings.storageDriver,
    ready: reasons.length === 0,
    ...(reasons.length === 0 ? {} : { reasons }),
    ...(orders === null ? {} : { orders }),
    links: hasMetrics ? { ...others, metrics } : others,
  }
  const headers = { Vary: 'Accept, Authorization' }
  if (!prefersHtml(request.header('accept'))) return { status: 200, headers, body: front }
  // Where its files are is for the people of this machine.
  const secret = isNear ? secretWords(settings) : '"$KONTOR_BOOTSTRAP_SECRET"'
  const first = firstRequest(settings.http.baseUrl, secret)
  return { status: 200, headers: { ...headers, ...PAGE_HEADERS }, raw: pageOf(front, first) }
}

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\]|::1)$/i
/** What whoever passes a request on says of it. */
const PASSED_ON = ['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-host', 'x-real-ip'] as const

/**
 * True when only somebody on this machine can have asked: the node listens to nobody else, nothing
 * has been set up to stand before it, and it is asked by a name of this machine (not by one that a
 * page from elsewhere has made point here).
 */
function isOwnMachine(request: OperationRequest, { http }: FrontParts['settings']): boolean {
  if (!LOOPBACK.test(http.host) || !LOOPBACK.test(new URL(http.baseUrl).hostname)) return false
  if (PASSED_ON.some((name) => request.header(name) !== '')) return false
  if (!LOOPBACK.test(request.address)) return false
  return LOOPBACK.test(request.header('host').replace(/:\d{1,5}$/, ''))
}
