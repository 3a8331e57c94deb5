// What a person sees when a node is up: where to look, and lines to paste. It stands between
// main.ts and the terminal.

import { resolve } from 'node:path'
import type { Settings } from '../config/settings.ts'

/** What is told when a node is up, on one line. */
export function upLine(settings: Settings, port: number): string {
  return `Kontor is up at ${addressOf(settings, port)}, its data in ${resolve(settings.dataDir)}.`
}

/** Where it listens, as an address of a browser. */
export function addressOf({ http }: Settings, port: number): string {
  const host = http.host.includes(':') ? `[${http.host}]` : http.host
  return `${http.tlsCertFile === null ? 'http' : 'https'}://${host}:${port}`
}

/** The text of a start at a terminal. Names the file of the secret, never the secret. */
export function greeting(settings: Settings, port: number): string {
  const at = addressOf(settings, port)
  const secret =
    settings.bootstrapSecret === null
      ? `$(node -p 'require("${resolve(settings.dataDir, 'bootstrap.json')}").clientSecret')`
      : '$KONTOR_BOOTSTRAP_SECRET'
  return `
${upLine(settings, port)}

  ${at}/openapi.json   every operation
  ${at}/health/ready   whether it serves
  ${at}/metrics        its numbers

Paste this to see the newest orders:

  TOKEN=$(curl -s ${at}/oauth/token -d grant_type=client_credentials -d client_id=bootstrap \\
    -d client_secret="${secret}" \\
    | node -p 'JSON.parse(require("fs").readFileSync(0)).access_token')
  curl -s ${at}/resources/graph -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \\
    -d '[{"edge":"orders","orderBy":"createdAt desc","limit":3,"node":{"fields":["orderNumber","orderTotal","createdAt"]}}]'
`
}
