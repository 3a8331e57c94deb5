// The first request of somebody who has just started a node, as lines for a shell. The greeting of
// a terminal and the front page show it.

import { resolve } from 'node:path'
import type { Settings } from '../../config/settings.ts'

/** A shell's words for the first client's secret. Names its file, never the secret. */
export function secretWords(settings: Pick<Settings, 'dataDir' | 'bootstrapSecret'>): string {
  if (settings.bootstrapSecret !== null) return '"$KONTOR_BOOTSTRAP_SECRET"'
  const file = resolve(settings.dataDir, 'bootstrap.json')
  return `"$(node -p 'require(${JSON.stringify(file)}).clientSecret')"`
}

/** The newest orders. `at`: address of the node; `secret`: a word of the shell. */
export function firstRequest(at: string, secret: string): string {
  return `TOKEN=$(curl -s ${at}/oauth/token \\
  -d grant_type=client_credentials -d client_id=bootstrap \\
  -d client_secret=${secret} \\
  | node -p 'JSON.parse(require("fs").readFileSync(0)).access_token')
curl -s ${at}/resources/graph \\
  -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \\
  -d '[{"edge": "orders", "orderBy": "createdAt desc", "limit": 3,
    "node": {"fields": ["orderNumber", "orderTotal", "createdAt"]}}]'`
}
