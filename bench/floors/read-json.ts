// The body of a floor's request, parsed. Shared by the two floors, so that they differ only in
// what comes after.

import type { HttpResponse } from 'uWebSockets.js'

/** Calls back with the parsed body, unless the client has gone by then. */
export function readJson(res: HttpResponse, done: (body: unknown) => void): void {
  let parts: Buffer | null = null
  res.onAborted(() => {
    // Answering after this would throw; the floors mark it on the response.
    res['aborted'] = true
  })
  res.onData((chunk, isLast) => {
    const piece = Buffer.from(chunk)
    if (!isLast) {
      // The bytes are only lent for the call.
      parts = parts === null ? Buffer.concat([piece]) : Buffer.concat([parts, piece])
      return
    }
    const body: unknown = JSON.parse(
      (parts === null ? piece : Buffer.concat([parts, piece])).toString(),
    )
    done(body)
  })
}
