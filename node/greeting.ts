// What a person sees when a node is up: where to look, and lines to paste.

import { resolve } from 'node:path'
import type { Settings } from '../config/settings.ts'
import { firstRequest, secretWords } from './front/first-request.ts'

/** What is told when a node is up, on one line. */
export function upLine(settings: Settings, port: number): string {
  return `Kontor is up at ${addressOf(settings, port)}, its data in ${resolve(settings.dataDir)}.`
}

/** Where it listens, as an address of a browser. */
export function addressOf({ http }: Settings, port: number, at = http.host): string {
  const host = at.includes(':') ? `[${at}]` : at
  return `${http.tlsCertFile === null ? 'http' : 'https'}://${host}:${port}`
}

/** Where a node listens; metricsPort null: its metrics are on the port of everything else. */
export interface Ports {
  readonly port: number
  readonly metricsPort: number | null
}

/** Where its numbers are. */
export function metricsAddressOf(settings: Settings, { port, metricsPort }: Ports): string {
  const { host } = settings.metrics
  const at =
    metricsPort === null ? addressOf(settings, port) : addressOf(settings, metricsPort, host)
  return `${at}/metrics`
}

/** The text of a start at a terminal. Names the file of the secret, never the secret. */
export function greeting(settings: Settings, ports: Ports): string {
  const { port } = ports
  const at = addressOf(settings, port)
  const request = firstRequest(at, secretWords(settings)).replaceAll(/^/gm, '  ')
  return `
${upLine(settings, port)}

  ${at}/               what runs here, for a browser
  ${at}/live           orders as they change
  ${at}/openapi.json   every operation
  ${at}/health/ready   whether it serves
  ${metricsAddressOf(settings, ports)}        its numbers

Paste this to see the newest orders:

${request}

Ctrl-C stops it. Started again, it has everything it had.
`
}
