// Where a caller is: the other end of its connection, or what a proxy says that is trusted to, by a
// PROXY preamble (version 2), which uWebSockets.js reads of anybody at any time, or by
// X-Forwarded-For. Source: CONTRACT 0 "Connections"; HAProxy's proxy-protocol.txt.

import { BlockList, isIP } from 'node:net'
import { plainAddress } from '../access/network.ts'
import type { HttpResponse } from './uws.ts'

/** A living response, for its addresses: 4 or 16 bytes; that of a preamble has 0 if none came. */
export type Peer = Pick<HttpResponse, 'getRemoteAddress' | 'getProxiedRemoteAddress'>

export class Peers {
  readonly #trusted: BlockList
  /** null: nobody's X-Forwarded-For counts. */
  readonly #forwarders: BlockList | null

  /**
   * @param trusted addresses and networks (`10.0.0.0/8`) whose preambles count
   * @param forwarders those whose X-Forwarded-For does
   */
  constructor(trusted: readonly string[], forwarders: readonly string[] = []) {
    this.#trusted = networks(trusted)
    this.#forwarders = forwarders.length === 0 ? null : networks(forwarders)
  }

  /** True where a preamble came that doesn't count: its sender passes for somebody else. */
  isForged(peer: Peer): boolean {
    const hasPreamble = peer.getProxiedRemoteAddress().byteLength > 0
    return hasPreamble && !this.#isTrusted(addressOf(peer.getRemoteAddress()))
  }

  /** IP address of the caller; `forwarded` is what its X-Forwarded-For says. */
  addressOf(peer: Peer, forwarded = ''): string {
    const near = addressOf(peer.getRemoteAddress())
    const told = peer.getProxiedRemoteAddress()
    const at = told.byteLength > 0 && this.#isTrusted(near) ? addressOf(told) : near
    return this.#forwarders === null || forwarded === '' ? at : this.#before(at, forwarded)
  }

  /**
   * Each proxy adds to the end whom it had the request of: from there back, the first that is none
   * of ours. What stands before it anybody may have written.
   */
  #before(near: string, forwarded: string): string {
    let at = near
    for (const told of forwarded.split(',').toReversed()) {
      if (this.#forwarders?.check(at, familyOf(at)) !== true) return at
      const next = plainAddress(told.trim().replace(WITH_PORT, '$1$2'))
      if (isIP(next) === 0) return at
      at = next
    }
    return at
  }

  #isTrusted(address: string): boolean {
    return this.#trusted.check(address, familyOf(address))
  }
}

/** Some proxies tell the port as well. */
const WITH_PORT = /^(?:\[(.+)\](?::\d+)?|(\d+\.\d+\.\d+\.\d+):\d+)$/

function networks(texts: readonly string[]): BlockList {
  const list = new BlockList()
  for (const text of texts) {
    const [address = '', prefix] = text.split('/')
    const family = familyOf(address)
    if (prefix === undefined) list.addAddress(address, family)
    else list.addSubnet(address, Number(prefix), family)
  }
  return list
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
