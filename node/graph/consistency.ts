// The token of X-Consistency: what a write hands to its caller and a graph request sends back to
// see that write. It names the store and a position in each shard concerned, opaque to callers.
// Source: PROTOCOL 3.13.6, CONTRACT 0 "Read your writes".

import { hash, timingSafeEqual } from 'node:crypto'
import { RequestError } from '../../protocol/errors.ts'
import { type Position, SYSTEM_SHARD, fnv1aText } from '../../protocol/ids.ts'
import { LIMITS } from '../../config/limits.ts'
import type { StoreIdentity } from '../../storage/journal.ts'

/** The header that carries the token, both ways. */
export const CONSISTENCY_HEADER = 'X-Consistency'

/** Format of the token itself. */
const TOKEN_FORMAT = '2'

/** Makes and reads the tokens of one store. */
export interface ConsistencyTokens {
  /** The token that stands for these positions; of one shard the highest counts. */
  encode(positions: readonly Position[]): string
  /**
   * The positions of a token, one per shard, or of several tokens with commas between them (a list
   * of RFC 9110 5.6.1, for who wrote to several actors). Throws RequestError INVALID_PARAMETERS
   * (400) when one is garbled, forged, of another store or generation, or names what was never
   * committed.
   */
  decode(tokens: string, headOf: (shard: number) => number): readonly Position[]
}

/** Characters of the check in a token: 96 bits. */
const CHECK_CHARS = 16

/**
 * The tokens of a store. The text is `format.store.shard:offset....check`, base64url. The check is
 * keyed with the store's secret: whoever has seen tokens can't make one, and so can't ask where
 * shards end or keep requests waiting for what never comes. The start of a digest of the secret and
 * the text is enough of a key: nothing can be appended to a text whose digest isn't known whole.
 */
export function consistencyTokens(store: StoreIdentity): ConsistencyTokens {
  const name = fnv1aText(`${store.format}/${store.generation}`).toString(36)
  const head = `${TOKEN_FORMAT}.${name}.`
  const key = `X-Consistency ${store.secret} ${head}`
  const textOf = (pairs: string): string =>
    `${head}${pairs}.${hash('sha256', key + pairs, 'base64url').slice(0, CHECK_CHARS)}`
  return {
    encode(positions) {
      const only = positions[0]
      if (only !== undefined && positions.length === 1) {
        const length = scratch.write(textOf(`${only.shard}:${only.offset}`), 'latin1')
        return scratch.toString('base64url', 0, length)
      }
      const highest = new Map<number, number>()
      for (const { shard, offset } of positions) {
        highest.set(shard, Math.max(offset, highest.get(shard) ?? 0))
      }
      const pairs = Array.from(highest, ([shard, offset]) => `${shard}:${offset}`).join(',')
      return Buffer.from(textOf(pairs)).toString('base64url')
    },
    decode(tokens, headOf) {
      if (tokens.length > LIMITS.graph.consistencyTokenCharsMax) throw refused('it is too long')
      return tokens.split(',').flatMap((token) => positionsOf(token.trim(), headOf))
    },
  }

  function positionsOf(token: string, headOf: (shard: number) => number): readonly Position[] {
    const text = Buffer.from(token, 'base64url').toString('latin1')
    const [format, of, pairs] = text.split('.')
    if (format !== TOKEN_FORMAT || pairs === undefined) throw refused('it is not such a token')
    if (of !== name) throw refused('it was made by another store, or before this one was restored')
    // Only the very text that was handed out: base64 alone would let variants through.
    if (!isSame(Buffer.from(textOf(pairs)).toString('base64url'), token)) {
      throw refused('it is garbled')
    }
    return pairs.split(',').map((pair) => positionOf(pair, store.shards, headOf))
  }
}

/** Takes the same time wherever they differ. */
function isSame(right: string, token: string): boolean {
  const [a, b] = [Buffer.from(right), Buffer.from(token)]
  return a.length === b.length && timingSafeEqual(a, b)
}

/** A token of one position has some sixty characters; every write's answer carries one. */
const scratch = Buffer.allocUnsafeSlow(96)

const PAIR = /^(-?\d{1,6}):(\d{1,15})$/

function positionOf(pair: string, shards: number, headOf: (shard: number) => number): Position {
  const found = PAIR.exec(pair)
  if (found === null) throw refused('it is garbled')
  const shard = Number(found[1])
  const offset = Number(found[2])
  if (shard < SYSTEM_SHARD || shard >= shards) throw refused('it names a shard that is not there')
  if (offset > headOf(shard)) throw refused('it names what this store has never committed')
  return { shard, offset }
}

function refused(why: string): RequestError {
  return new RequestError(
    'INVALID_PARAMETERS',
    `the header ${CONSISTENCY_HEADER} can't be used: ${why}; send back unchanged what the answer ` +
      'to a write carried (several with commas between them), or leave it out',
    { header: CONSISTENCY_HEADER },
  )
}
