// Whose pages may open sockets to this node from a browser: its own, besides those that may read
// its answers (guard/cors.ts). Of sockets a browser asks nobody, and the node looks itself. Source:
// CONTRACT 1.10; RFC 6455 10.2.

/**
 * Whether a page of this origin may connect. '': no browser, or one that doesn't say.
 * @param host the request's own Host header
 * @param baseUrl public address of the node
 */
export function isOwnOrigin(origin: string, host: string, baseUrl: string): boolean {
  if (origin === '') return true
  const url = parsed(origin)
  if (url === null) return false
  return url.origin === parsed(baseUrl)?.origin || url.host === parsed(`http://${host}`)?.host
}

function parsed(text: string): URL | null {
  return URL.canParse(text) ? new URL(text) : null
}
