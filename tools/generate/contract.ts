// Writes the list of operations into protocol/CONTRACT.md, between its two marks. Neither the
// node's tables nor the document can change without the other.
// `node tools/run.mjs tools/generate/contract.ts`

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { oauthOperations } from '../../node/access/oauth/routes.ts'
import { actorOperations } from '../../node/actors/routes.ts'
import { clusterOperations } from '../../node/cluster/routes.ts'
import { frontOperations } from '../../node/front/routes.ts'
import { iamOperations } from '../../node/iam/iam.ts'
import { graphqlRoutes } from '../../node/graph/graphql/routes.ts'
import { graphRoutes } from '../../node/graph/routes.ts'
import { searchRoutes } from '../../node/indexing/search-routes.ts'
import { healthOperations } from '../../node/health/routes.ts'
import { openApiOperation } from '../../node/http/openapi.ts'
import type { Operation } from '../../node/http/operation.ts'
import { livePageOperations } from '../../node/live/page.ts'
import { meOperations } from '../../node/me/routes.ts'
import { registryOperations } from '../../node/registry/routes.ts'
import { signInOperation } from '../../node/static-page.ts'

const CONTRACT = join(import.meta.dirname, '../../protocol/CONTRACT.md')
const BLOCK = /(<!-- operations: [^\n]* -->\n)[^]*?(<!-- end of operations -->)/

/**
 * Operations of a node with nothing behind them: they can be described, not called. That a node
 * serves these and no others is shown by test/spec/operations.test.ts.
 */
export function describedOperations(): readonly Operation[] {
  const nothing = null as never
  const stations = [
    ...frontOperations(nothing),
    ...healthOperations({ checks: nothing, metrics: nothing }),
    ...oauthOperations({ baseUrl: 'https://localhost' } as never),
    ...meOperations({} as never),
    ...actorOperations({ actorSystem: { behaviours: new Map() } } as never),
    ...graphRoutes(nothing),
    ...searchRoutes(nothing),
    ...graphqlRoutes(nothing),
    ...livePageOperations(),
    signInOperation(),
    ...registryOperations(nothing),
    ...identityOperations(),
    ...clusterOperations({} as never),
  ]
  return [...stations, openApiOperation(stations, '')]
}

function identityOperations(): readonly Operation[] {
  const system = { all: () => [], onChange: () => () => undefined }
  const world = { random: () => undefined, clock: {} }
  return iamOperations({ actorSystem: { system }, world } as never)
}

/** The document's text with the list that these operations make. */
export function withOperations(text: string, operations: readonly Operation[]): string {
  if (!BLOCK.test(text)) throw new Error('protocol/CONTRACT.md has lost the marks of its list')
  return text.replace(BLOCK, (_, start: string, end: string) => {
    return `${start}${tableOf(operations)}${end}`
  })
}

/** A second spelling of paths, which a sentence below the list names. */
const SPELLED_OTHERWISE = '/resources/reference/'

function tableOf(operations: readonly Operation[]): string {
  const listed = operations.filter(({ path }) => !path.startsWith(SPELLED_OTHERWISE))
  const rows = listed.map((operation) => {
    const path = operation.path.replaceAll('{**', '{')
    const cells = [operation.method, `\`${path}\``, permissionOf(operation), operation.summary]
    return `| ${cells.map((cell) => cell.replaceAll('|', String.raw`\|`)).join(' | ')} |\n`
  })
  return `\n| Method | Path | Permission | |\n|---|---|---|---|\n${rows.join('')}\n`
}

function permissionOf({ access, permissions = [] }: Operation): string {
  if (access === 'none') return 'none'
  const aces = permissions.map((ace) => `\`${ace}\``).join(', ')
  if (access === 'either') return aces === '' ? 'none, or a good token' : `none, or ${aces}`
  return aces === '' ? 'a good token' : aces
}

if (import.meta.main) {
  writeFileSync(CONTRACT, withOperations(readFileSync(CONTRACT, 'utf8'), describedOperations()))
}
