// Redirect URIs: which one an answer may go to, and how it is written there. Source: RFC 6749
// 3.1.2, 4.1.2, RFC 8252 7.3, RFC 9207, CONTRACT 1.11.

import type { Client } from '../client.ts'

/** Of a loopback interface: the port is the application's to choose when it starts. */
const LOOPBACK = /^(http:\/\/(?:127\.0\.0\.1|\[::1\]))(?::([0-9]{1,5}))?((?:\/|\?).*)?$/
const PORT_MAX = 65_535
/** Nothing is sent to these: they run in the page that they are opened from, or name no place. */
const NO_PLACES = /^(javascript|data|vbscript|blob|file|about|filesystem):/i
const ABSOLUTE = /^[a-z][a-z0-9+.-]*:[!-~]+$/i

/** Whether the client has registered it. */
export function isRegistered(uri: string, { properties }: Client): boolean {
  return properties.redirectUris.some((registered) => isSameRedirect(uri, registered))
}

/** Whether `asked` is the registered one: the same text; of a loopback interface any port. */
export function isSameRedirect(asked: string, registered: string): boolean {
  if (!canLeadTo(asked)) return false
  if (asked === registered) return true
  const [here, there] = [LOOPBACK.exec(asked), LOOPBACK.exec(registered)]
  if (here === null || there === null || Number(here[2] ?? 80) > PORT_MAX) return false
  return here[1] === there[1] && (here[3] ?? '') === (there[3] ?? '')
}

/** An absolute URI of printable ASCII without a fragment (RFC 6749 3.1.2). */
export function canLeadTo(uri: string): boolean {
  return ABSOLUTE.test(uri) && !uri.includes('#') && !NO_PLACES.test(uri) && URL.canParse(uri)
}

/** The address with the answer's parameters behind those that it has. */
export function redirectTo(uri: string, answer: Readonly<Record<string, string | null>>): string {
  const given = Object.entries(answer).flatMap(([name, value]) =>
    value === null ? [] : [`${name}=${encodeURIComponent(value)}`],
  )
  const joint = !uri.includes('?') ? '?' : /[?&]$/.test(uri) ? '' : '&'
  return `${uri}${joint}${given.join('&')}`
}
