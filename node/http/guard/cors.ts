// Whose pages may read answers in a browser: those of the origins that the settings name, each
// exactly. Without any no answer has a header of CORS. Cookies are never asked for: a page sends
// its token itself, so credentials stay off. Source: CONTRACT 0 "Browsers"; Fetch 3.2.

/** Headers that a page may send, and that no simple request has. */
const REQUEST_HEADERS = [
  ...['Authorization', 'Content-Type', 'Content-Encoding', 'Idempotency-Key', 'If-Match'],
  ...['If-None-Match', 'X-Client-Id', 'X-Client-Secret', 'X-Consistency', 'X-Request-Id'],
]
/** Headers of answers that a page may read. */
const ANSWER_HEADERS = [
  ...['ETag', 'Location', 'RateLimit', 'RateLimit-Policy', 'Retry-After', 'WWW-Authenticate'],
  ...['X-Consistency', 'X-Request-Id'],
]
/** How long a browser keeps the answer of a preflight: two hours is the most that Chromium does. */
const PREFLIGHT_SECONDS = 7_200

const VARY = '\r\nVary: Origin'
const EXPOSED = `\r\nAccess-Control-Expose-Headers: ${ANSWER_HEADERS.join(', ')}`

export class Cors {
  /** What an answer has for each origin that may read it. */
  readonly #texts: ReadonlyMap<string, string>

  /** @param origins as a browser writes them: `https://shop.example` */
  constructor(origins: readonly string[]) {
    this.#texts = new Map(
      origins.map((origin) => [
        origin,
        `${VARY}\r\nAccess-Control-Allow-Origin: ${origin}${EXPOSED}`,
      ]),
    )
  }

  /** Whether there is any origin that may. */
  get isOn(): boolean {
    return this.#texts.size > 0
  }

  allows(origin: string): boolean {
    return this.#texts.has(origin)
  }

  /** Headers of an answer, as text that follows another. A cache must not give it to others. */
  textOf(origin: string): string {
    if (!this.isOn) return ''
    return this.#texts.get(origin) ?? VARY
  }

  /** Headers of the answer to a preflight, besides those; `methods` are those of the path. */
  preflight(methods: readonly string[]): Readonly<Record<string, string>> {
    return {
      'Access-Control-Allow-Methods': methods.join(', '),
      'Access-Control-Allow-Headers': REQUEST_HEADERS.join(', '),
      'Access-Control-Max-Age': String(PREFLIGHT_SECONDS),
      'Content-Type': 'text/plain; charset=utf-8',
    }
  }
}
