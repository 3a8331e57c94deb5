// What counts as one caller among addresses: of IPv6 a /64, which is one line's or one machine's to
// choose addresses from (RFC 6177), of IPv4 the address.

export interface Network {
  /** Counted as one. */
  readonly own: string
  /** Its wider surroundings, /48 and /24: who has many networks usually has them there. */
  readonly block: string
}

/** `address` is an IPv4 or IPv6 address as text; of all that are neither there is one network. */
export function networkOf(address: string): Network {
  const plain = plainAddress(address)
  if (!plain.includes(':')) return { own: plain, block: plain.replace(/\.\d+$/, '') }
  const groups = groupsOf(plain)
  return { own: groups.slice(0, 4).join(':'), block: groups.slice(0, 3).join(':') }
}

/**
 * An IPv4 address where it is written as one of IPv6 (`::ffff:192.0.2.1`, RFC 4291 2.5.5.2): so
 * proxies name the callers of a socket for both, who are no /64 of one line.
 */
export function plainAddress(address: string): string {
  if (!address.includes(':')) return address
  const [marked, ...rest] = groupsOf(address).slice(5)
  const isMapped =
    marked === 'ffff' &&
    groupsOf(address)
      .slice(0, 5)
      .every((one) => one === '0')
  if (!isMapped) return address
  const [high, low] = rest
  if (low === undefined) return high ?? address
  return [high, low].flatMap((group) => bytesOf(group!)).join('.')
}

const bytesOf = (group: string): readonly number[] => {
  const value = Number.parseInt(group, 16)
  return [value >>> 8, value & 0xff]
}

/** The groups, with the zeros that `::` stands for, and no leading ones. */
function groupsOf(address: string): readonly string[] {
  const [head = '', tail] = address.toLowerCase().split('::')
  const before = head === '' ? [] : head.split(':')
  const after = tail === undefined || tail === '' ? [] : tail.split(':')
  // An IPv4 address at the end takes the place of two groups.
  const last = after.at(-1) ?? before.at(-1)
  const missing = 8 - before.length - after.length - (last?.includes('.') === true ? 1 : 0)
  const zeros = tail === undefined ? [] : Array<string>(Math.max(0, missing)).fill('0')
  return [...before, ...zeros, ...after].map((group) => group.replace(/^0+(?=.)/, ''))
}
