// The one door to uWebSockets.js: everything of it that this folder uses.

import { LIMITS } from '../../config/limits.ts'
import type { TemplatedApp, us_listen_socket } from 'uWebSockets.js'

export type {
  HttpRequest,
  HttpResponse,
  TemplatedApp,
  us_listen_socket,
  us_socket_context_t,
  WebSocket,
} from 'uWebSockets.js'

// It reads the variable once, while it is loaded. An import would come before that, and where the
// program is packed before all else.
process.env['UWS_HTTP_MAX_HEADERS_SIZE'] ??= String(LIMITS.http.headersBytesMax)
const uws = await import('uWebSockets.js')

// Every answer would say `uWebSockets: 20`; what serves it is nobody's business. This is the
// library's own way to leave that out.
const { _cfg: configure } = uws as { readonly _cfg?: (word: string) => void }
configure?.('silent')

export const { App, SSLApp, us_listen_socket_close, us_socket_local_port } = uws

/** The package's own constant; its types leave it out. */
const LIBUS_LISTEN_EXCLUSIVE_PORT = 1

type Listening = (socket: us_listen_socket | false) => void

/**
 * Listens on a port that no other process may have: by default two would share it, and a caller
 * would meet now one, now the other.
 */
export function listenAlone(
  app: TemplatedApp,
  address: { readonly host: string; readonly port: number },
  listening: Listening,
): void {
  const listen = app.listen.bind(app) as unknown as (
    host: string,
    port: number,
    options: number,
    listening: Listening,
  ) => void
  listen(address.host, address.port, LIBUS_LISTEN_EXCLUSIVE_PORT, listening)
}
