// The headers that answers have besides their own. uWebSockets.js writes a header by one call into
// C++, and each call costs more than its bytes: so all of them ride behind the value of
// X-Request-Id, in one call, and what is the same for many answers is one ready text. Source:
// CONTRACT 0; RFC 6797 (HSTS), CSP Level 3, Fetch "Cross-Origin-Resource-Policy".

import { AssertionError } from '../../../protocol/errors.ts'
import { hasBody } from '../answer.ts'
import type { OperationResponse } from '../operation.ts'

/** A year: what browsers ask for before they believe that a site stays on HTTPS. */
const HSTS = '\r\nStrict-Transport-Security: max-age=31536000'

/** Of what is no page: a browser that shows it all the same runs nothing, and frames nothing. */
const NO_PAGE = "\r\nContent-Security-Policy: default-src 'none'; frame-ancestors 'none'"

export class AnswerHeaders {
  readonly #always: string
  readonly #plain: string
  readonly #json: string

  /** @param baseUrl public address of the node: with `https` it is never left for HTTP again */
  constructor(baseUrl: string) {
    this.#always =
      '\r\nX-Content-Type-Options: nosniff' +
      '\r\nReferrer-Policy: no-referrer' +
      '\r\nCross-Origin-Resource-Policy: same-origin' +
      (baseUrl.startsWith('https://') ? HSTS : '')
    this.#plain = `${this.#always}${NO_PAGE}\r\nCache-Control: no-store`
    this.#json = `${this.#plain}\r\nContent-Type: application/json`
  }

  /**
   * What follows a request id, itself a header's value. The answer's own headers have been seen by
   * `checkHeader`.
   */
  textOf(response: OperationResponse, encoding: string | null): string {
    const { headers } = response
    if (headers === undefined && encoding === null) {
      return hasBody(response) ? this.#json : this.#plain
    }
    let typed = !hasBody(response)
    let cached = false
    let guarded = false
    let own = ''
    for (const name in headers) {
      if (name === 'Content-Type') typed = true
      else if (name === 'Cache-Control') cached = true
      else if (name === 'Content-Security-Policy') guarded = true
      own += `\r\n${name}: ${headers[name]!}`
    }
    const before =
      !cached && !guarded
        ? typed
          ? this.#plain
          : this.#json
        : `${this.#always}${guarded ? '' : NO_PAGE}${cached ? '' : '\r\nCache-Control: no-store'}` +
          (typed ? '' : '\r\nContent-Type: application/json')
    if (encoding === null) return before + own
    return `${before}${own}\r\nContent-Encoding: ${encoding}\r\nVary: Accept-Encoding`
  }
}

/** Throws for a header that would end early: a line break in it is our mistake. */
export function checkHeader(name: string, value: string): void {
  if (value.includes('\r') || value.includes('\n') || !/^[A-Za-z0-9-]+$/.test(name)) {
    throw new AssertionError(`the answer's header ${JSON.stringify(name)} can't be written`)
  }
}
