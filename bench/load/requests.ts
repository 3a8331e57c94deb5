// Request bytes, made before the clock starts. Sockets only copy bytes.

import { randomFillSync } from 'node:crypto'
import { uuidMaker } from '../../protocol/ids.ts'

/** What a request is, for the counts: an order is made, changed, or something is read. */
export type RequestKind = 'create' | 'command' | 'read'

export interface PreparedRequest {
  readonly kind: RequestKind
  readonly bytes: Buffer
}

export interface Destination {
  readonly host: string
  readonly port: number
  readonly token: string
}

export function post(to: Destination, path: string, body: unknown): Buffer {
  const json = Buffer.from(JSON.stringify(body))
  const head =
    `POST ${path} HTTP/1.1\r\nHost: ${to.host}:${to.port}\r\n` +
    `Authorization: Bearer ${to.token}\r\nContent-Type: application/json\r\n` +
    `Content-Length: ${json.length}\r\n\r\n`
  return Buffer.concat([Buffer.from(head), json])
}

/** The head of a streamed bulk request; its body follows in chunks. */
export function bulkHead(to: Destination): string {
  return (
    `POST /resources/actors/order HTTP/1.1\r\nHost: ${to.host}:${to.port}\r\n` +
    `Authorization: Bearer ${to.token}\r\nContent-Type: application/x-ndjson\r\n` +
    `Accept: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n`
  )
}

/** Hands out prepared requests in turn, for ever. */
export function inTurn(requests: readonly PreparedRequest[]): () => PreparedRequest {
  let at = -1
  return () => requests[(at = (at + 1) % requests.length)]!
}

const makeUuid = uuidMaker((bytes) => void randomFillSync(bytes))

/** A UUIDv7 of now, as callers' programs give their deliveries and lines. */
export function newUuid(): string {
  return makeUuid(Date.now())
}
