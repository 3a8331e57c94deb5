// The kinds of values that settings have. Each reads a text (of the environment, the file or the
// command line) into a checked value, and says in words what would be right.

import { isIP } from 'node:net'
import { LIMITS } from './limits.ts'

export interface Kind<T> {
  /** What would be right, to follow 'must be': `a port number from 0 to 65535`. */
  readonly rule: string
  /** undefined: not of this kind. The text is trimmed and not empty. */
  parse(text: string): T | undefined
}

export function oneOf<const T extends string>(...choices: readonly T[]): Kind<T> {
  const last = choices.at(-1)!
  return {
    rule: choices.length === 1 ? last : `${choices.slice(0, -1).join(', ')} or ${last}`,
    parse: (text) => choices.find((choice) => choice === text),
  }
}

/** Integer from `min` to `max`; `unit` is said in the rule. */
export function integer(min: number, max: number, unit: string): Kind<number> {
  return {
    rule: `${unit} from ${min} to ${max}`,
    parse(text) {
      if (!/^\d{1,15}$/.test(text)) return undefined
      const value = Number(text)
      return value >= min && value <= max ? value : undefined
    },
  }
}

export function powerOfTwo(max: number): Kind<number> {
  return {
    rule: `a power of two from 1 to ${max}`,
    parse(text) {
      if (!/^\d{1,9}$/.test(text)) return undefined
      const value = Number(text)
      return value >= 1 && value <= max && (value & (value - 1)) === 0 ? value : undefined
    },
  }
}

export const BOOLEAN: Kind<boolean> = {
  rule: 'true or false',
  parse: (text) => (text === 'true' ? true : text === 'false' ? false : undefined),
}

/** A text that matches; `rule` says in words what the expression asks for. */
export function matching(rule: string, pattern: RegExp): Kind<string> {
  return { rule, parse: (text) => (pattern.test(text) ? text : undefined) }
}

/** Text of 1 to `max` characters. */
export function plainText(max: number, min = 1): Kind<string> {
  const pattern = new RegExp(`^\\P{Cc}{${min},${max}}$`, 'u')
  return matching(`${min} to ${max} characters without control characters`, pattern)
}

/** A key of 256 bits, base64. */
export const KEY_256: Kind<string> = matching(
  'base64 of 32 bytes, such as openssl rand -base64 32 makes',
  /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=?$/,
)

export const PATH: Kind<string> = matching('a path without control characters', /^\P{Cc}+$/u)

const HOST_NAME = /^(?!-)[a-z0-9-]{1,63}(\.[a-z0-9-]{1,63})*\.?$/i
const IPV6 = /^[0-9a-f:.]*:[0-9a-f:.]*:[0-9a-f:.]*(%[a-z0-9]+)?$/i

function isHost(text: string): boolean {
  return text.length <= 253 && (HOST_NAME.test(text) || IPV6.test(text))
}

export const HOST: Kind<string> = {
  rule: 'a host name or an IP address to listen on, such as 127.0.0.1, 0.0.0.0 or ::1',
  parse: (text) => (isHost(text) ? text : undefined),
}

/**
 * Absolute URL of one of the schemes, without query and fragment; a slash at its end goes. The
 * scheme becomes lower case: what hangs on TLS goes by it.
 */
function parseUrl(text: string, schemes: readonly string[]): string | undefined {
  const scheme = /^([a-z]+):\/\/\S+$/i.exec(text)?.[1]?.toLowerCase()
  if (scheme === undefined || !schemes.includes(scheme) || !URL.canParse(text)) return undefined
  const { hostname, search, hash } = new URL(text)
  if (hostname === '' || search !== '' || hash !== '') return undefined
  return `${scheme}${text.slice(scheme.length)}`.replace(/\/+$/, '')
}

export function url(...schemes: readonly string[]): Kind<string> {
  const forms = schemes.map((scheme) => `${scheme}://`).join(' or ')
  return {
    rule: `an address that begins with ${forms}, without a query`,
    parse: (text) => parseUrl(text, schemes),
  }
}

/** Names of this machine by itself: what is sent there passes no network. */
export function isLoopback(hostname: string): boolean {
  return ['localhost', '127.0.0.1', '[::1]'].includes(hostname)
}

/** An issuer as it calls itself, compared as text (OpenID Connect Discovery 1.0 4.3). */
export const ISSUER: Kind<string> = {
  rule:
    'an address that begins with https:// (of this machine itself also http://), without a user, ' +
    'a query or a fragment',
  parse(text) {
    if (text.length > LIMITS.access.uriCharsMax || !/^[!-~]+$/.test(text)) return undefined
    if (/[?#]/.test(text) || !URL.canParse(text)) return undefined
    const { protocol, hostname, username, password } = new URL(text)
    if (username !== '' || password !== '') return undefined
    const isSafe = protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname))
    return isSafe ? text : undefined
  },
}

/** `host[:port]`, `[v6][:port]` or a bare IPv6 address; the port is filled in. */
function parseAddress(text: string, port: number): string | undefined {
  const [, v6, host, given] = /^(?:\[([^\]]+)\]|([^:[\]]+))(?::(\d{1,5}))?$/.exec(text) ?? []
  const name = v6 ?? host
  if (name === undefined) return IPV6.test(text) ? `[${text}]:${port}` : undefined
  const number = given === undefined ? port : Number(given)
  if (!isHost(name) || number < 1 || number > 65_535) return undefined
  return `${v6 === undefined ? name : `[${v6}]`}:${number}`
}

/** Every part between commas must be right; an empty part is not. */
export function several<T>(part: Kind<T>): Kind<readonly T[]> {
  return {
    rule: `${part.rule}; several are divided by commas`,
    parse(text) {
      const values = text.split(',').map((piece) => part.parse(piece.trim()))
      return values.every((value) => value !== undefined) ? values : undefined
    },
  }
}

export function addresses(port: number): Kind<readonly string[]> {
  return several({
    rule: `host or host:port (port ${port} where none is given)`,
    parse: (text) => parseAddress(text, port),
  })
}

/** IP addresses and networks. */
export const NETWORKS: Kind<readonly string[]> = several({
  rule: 'an IP address or a network, such as 10.0.0.5 or 10.0.0.0/8',
  parse(text) {
    const [, address = '', prefix = '0'] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? []
    const version = isIP(address)
    if (version === 0 || address.includes('%')) return undefined
    return Number(prefix) <= (version === 4 ? 32 : 128) ? text : undefined
  },
})

/** Origins as browsers write them (RFC 6454 6.2): what they send is compared with each as text. */
export const ORIGINS: Kind<readonly string[]> = several({
  rule: 'an origin, such as https://shop.example or http://localhost:3000, without a path',
  parse(text) {
    if (!URL.canParse(text)) return undefined
    const { origin, protocol } = new URL(text)
    return origin === text && /^https?:$/.test(protocol) ? text : undefined
  },
})

/** URLs, or `host[:port]`, which is taken for the first scheme. */
export function urls(port: number, ...schemes: readonly string[]): Kind<readonly string[]> {
  return several({
    rule: `host, host:port or ${schemes.map((scheme) => `${scheme}://host:port`).join(' or ')}`,
    parse(text) {
      if (text.includes('://')) return parseUrl(text, schemes)
      const address = parseAddress(text, port)
      return address === undefined ? undefined : `${schemes[0]}://${address}`
    },
  })
}
