// Positions of live queries: up to where the feed of each shard is in what a client has, and a
// digest of it. Who comes back with one, to whichever member, goes on from it if the list is still
// right, else begins anew. Where shards end is sealed: it would tell how much is written that the
// client doesn't see. Source: CONTRACT 1.10.

import { hash } from 'node:crypto'
import { LIMITS } from '../../../config/limits.ts'
import type { StoreIdentity } from '../../../storage/journal.ts'
import { cursorSeal } from '../../graph/cursors.ts'
import { type LiveNode, keyOf } from './live-window.ts'

const FORMAT = '2'
const CHECK_CHARS = 16
/** Of an offset, base 36, so that its length doesn't say how large it is: 78 thousand million. */
const OFFSET_CHARS = 7

export interface LivePosition {
  /** Not changed any more. */
  readonly offsets: ReadonlyMap<number, number>
  /** Of the list that the client has. */
  readonly digest: string
}

export interface LivePositions {
  encode(position: LivePosition): string
  /** null: not one of this store, or of another timeline of it. */
  decode(text: string): LivePosition | null
}

export function livePositions(store: StoreIdentity): LivePositions {
  const name = `${FORMAT}.${hash('sha256', `${store.format}/${store.generation}`, 'base64url').slice(0, 8)}`
  const key = `live position ${store.secret} ${name}`
  const { seal, open } = cursorSeal(store.secret)
  const textOf = (body: string): string =>
    `${body}.${hash('sha256', key + body, 'base64url').slice(0, CHECK_CHARS)}`
  // Of offsets that many lists have: each object is sealed once.
  const sealed = new WeakMap<LivePosition['offsets'], string>()
  const offsetsOf = (offsets: LivePosition['offsets']): string => {
    const known = sealed.get(offsets)
    if (known !== undefined) return known
    const pairs = Array.from(offsets, ([shard, offset]) => `${shard}-${written(offset)}`)
    const text = seal(pairs.join('_'), key)
    sealed.set(offsets, text)
    return text
  }
  return {
    encode: ({ offsets, digest }) => textOf(`${name}.${digest}.${offsetsOf(offsets)}`),
    decode(text) {
      if (text.length > LIMITS.live.queryPositionCharsMax) return null
      const body = text.slice(0, text.lastIndexOf('.'))
      if (!body.startsWith(`${name}.`) || textOf(body) !== text) return null
      const [, , digest, offsetsText] = body.split('.')
      const pairs = open(offsetsText!, key)
      if (pairs === null) return null
      const offsets = new Map<number, number>()
      for (const pair of pairs === '' ? [] : pairs.split('_')) {
        const [shard, offset] = pair.split('-')
        offsets.set(Number(shard), Number.parseInt(offset!, 36))
      }
      return { offsets, digest: digest! }
    },
  }
}

const written = (offset: number): string => offset.toString(36).padStart(OFFSET_CHARS, '0')

const digests = new WeakMap<LiveNode, bigint>()
const BITS = (1n << 64n) - 1n

/** Of one node with its content and place; those of a list are added. */
export function digestOf(node: LiveNode): bigint {
  let digest = digests.get(node)
  if (digest === undefined) {
    const text = `${keyOf(node)} ${node.sorted} ${node.text}`
    digest = Buffer.from(hash('sha256', text, 'hex'), 'hex').readBigUInt64LE()
    digests.set(node, digest)
  }
  return digest
}

/** The order of a list is said by what its nodes are sorted by. */
export function digestOfAll(nodes: readonly LiveNode[]): bigint {
  return nodes.reduce((sum, node) => (sum + digestOf(node)) & BITS, 0n)
}
