// Where a caller is: the other end of its connection, or what a proxy says that is trusted to.
// uWebSockets.js reads a PROXY preamble (version 2) of anybody, at any time. Source: CONTRACT 0
// "Connections"; HAProxy's proxy-protocol.txt.

import { BlockList } from 'node:net'
import type { HttpResponse } from './uws.ts'

/** A living response, for its addresses: 4 or 16 bytes; that of a preamble has 0 if none came. */
export type Peer = Pick<HttpResponse, 'getRemoteAddress' | 'getProxiedRemoteAddress'>

export class Peers {
  readonly #trusted = new BlockList()

  /** @param trusted addresses and networks (`10.0.0.0/8`) whose preambles count */
  constructor(trusted: readonly string[]) {
    for (const text of trusted) {
      const [address = '', prefix] = text.split('/')
      const family = familyOf(address)
      if (prefix === undefined) this.#trusted.addAddress(address, family)
      else this.#trusted.addSubnet(address, Number(prefix), family)
    }
  }

  /** True where a preamble came that doesn't count: its sender passes for somebody else. */
  isForged(peer: Peer): boolean {
    const hasPreamble = peer.getProxiedRemoteAddress().byteLength > 0
    return hasPreamble && !this.#isTrusted(addressOf(peer.getRemoteAddress()))
  }

  /** IP address of the caller. */
  addressOf(peer: Peer): string {
    const near = addressOf(peer.getRemoteAddress())
    const told = peer.getProxiedRemoteAddress()
    return told.byteLength > 0 && this.#isTrusted(near) ? addressOf(told) : near
  }

  #isTrusted(address: string): boolean {
    return this.#trusted.check(address, familyOf(address))
  }
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return address.includes(':') ? 'ipv6' : 'ipv4'
}

/** ::ffff:0:0/96: an IPv4 caller of a socket for both. */
const MAPPED = Buffer.from('00000000000000000000ffff', 'hex')

/** In the usual form: `192.0.2.1`, `2001:db8::1`. */
function addressOf(buffer: ArrayBuffer): string {
  const bytes = Buffer.from(buffer)
  if (bytes.length === 4) return bytes.join('.')
  if (bytes.length !== 16) return ''
  if (bytes.subarray(0, 12).equals(MAPPED)) return bytes.subarray(12).join('.')
  const groups = bytes.toString('hex').replaceAll(/(.{4})(?=.)/g, '$1:')
  return new URL(`http://[${groups}]`).hostname.slice(1, -1)
}
