// Tells uWebSockets.js how large a request's head may be. It reads the variable once, while it is
// loaded, so this module has to run before it: uws.ts imports this one first.

import { LIMITS } from '../../config/limits.ts'

process.env['UWS_HTTP_MAX_HEADERS_SIZE'] ??= String(LIMITS.headersBytesMax)
