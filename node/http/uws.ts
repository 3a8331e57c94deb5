// The one door to uWebSockets.js: everything of it that this folder uses.

// oxlint-disable-next-line import/no-unassigned-import -- it sets what the next one reads
import './header-bytes.ts'

export { App, SSLApp, us_listen_socket_close, us_socket_local_port } from 'uWebSockets.js'
export type { HttpRequest, HttpResponse, TemplatedApp, us_listen_socket } from 'uWebSockets.js'
