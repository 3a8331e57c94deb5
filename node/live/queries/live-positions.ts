// Positions of live queries: up to where the feed of each shard is in what a client has, and a
// digest of it. Who comes back with one, to whichever member, goes on from it if the list is still
// right, else begins anew. Where shards end is sealed: it would tell how much is written that the
// client doesn't see; and each is sealed anew, for two that are alike would tell that nothing was
// written between them. Source: CONTRACT 1.10.

import { hash } from 'node:crypto'
import { LIMITS } from '../../../config/limits.ts'
import type { FillRandom } from '../../../protocol/ids.ts'
import type { StoreIdentity } from '../../../storage/journal.ts'
import { cursorSeal } from '../../graph/cursors.ts'
import { type LiveNode, keyOf } from './live-window.ts'

const FORMAT = '3'
const CHECK_CHARS = 16
const SALT_BYTES = 12
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

export function livePositions(store: StoreIdentity, random: FillRandom): LivePositions {
  const name = `${FORMAT}.${hash('sha256', `${store.format}/${store.generation}`, 'base64url').slice(0, 8)}`
  const key = `live position ${store.secret} ${name}`
  const { seal, open } = cursorSeal(store.secret)
  const textOf = (body: string): string =>
    `${body}.${hash('sha256', key + body, 'base64url').slice(0, CHECK_CHARS)}`
  const offsetsOf = (offsets: LivePosition['offsets']): string => {
    const salt = Buffer.alloc(SALT_BYTES)
    random(salt)
    const pairs = Array.from(offsets, ([shard, offset]) => `${shard}-${written(offset)}`)
    // The seal of a text is the same each time: the salt makes it another text.
    return seal([salt.toString('hex'), ...pairs].join('_'), key)
  }
  return {
    encode: ({ offsets, digest }) => textOf(`${name}.${digest}.${offsetsOf(offsets)}`),
    decode(text) {
      if (text.length > LIMITS.live.queryPositionCharsMax) return null
      const body = text.slice(0, text.lastIndexOf('.'))
      if (!body.startsWith(`${name}.`) || textOf(body) !== text) return null
      const [, , digest, offsetsText] = body.split('.')
      const opened = open(offsetsText!, key)
      if (opened === null) return null
      const [, ...pairs] = opened.split('_')
      const offsets = new Map<number, number>()
      for (const pair of pairs) {
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
