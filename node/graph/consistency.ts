// The token of X-Consistency: what a write hands to its caller and a graph request sends back to
// see that write. It names the store and a position in each shard concerned, opaque to callers. It
// stands between the answers of all stations and the graph's waiting for its index. Source:
// PROTOCOL 3.13.6, CONTRACT 0 "Read your writes".

import { RequestError } from '../../protocol/errors.ts'
import { type Position, SYSTEM_SHARD, fnv1aText } from '../../protocol/ids.ts'
import { LIMITS } from '../../config/limits.ts'
import type { StoreIdentity } from '../../storage/journal.ts'

/** The header that carries the token, both ways. */
export const CONSISTENCY_HEADER = 'X-Consistency'

/** Format of the token itself. */
const TOKEN_FORMAT = '1'

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

/**
 * The tokens of a store. The text is `format.store.shard:offset...check`, base64url: the check
 * catches what was cut or typed wrong; the heads catch what was made up.
 */
export function consistencyTokens(store: StoreIdentity): ConsistencyTokens {
  const name = fnv1aText(`${store.format}/${store.generation}`).toString(36)
  const head = `${TOKEN_FORMAT}.${name}.`
  const headHash = fnv1aText(head)
  const textOf = (pairs: string): string => `${head}${pairs}.${base36(fnv1aText(pairs, headHash))}`
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
      if (tokens.length > LIMITS.consistencyTokenCharsMax) throw refused('it is too long')
      return tokens.split(',').flatMap((token) => positionsOf(token.trim(), headOf))
    },
  }

  function positionsOf(token: string, headOf: (shard: number) => number): readonly Position[] {
    const text = Buffer.from(token, 'base64url').toString('latin1')
    const [format, of, pairs] = text.split('.')
    if (format !== TOKEN_FORMAT || pairs === undefined) throw refused('it is not such a token')
    if (of !== name) throw refused('it was made by another store, or before this one was restored')
    // Only the very text that was handed out: base64 alone would let variants through.
    if (Buffer.from(textOf(pairs)).toString('base64url') !== token) throw refused('it is garbled')
    return pairs.split(',').map((pair) => positionOf(pair, store.shards, headOf))
  }
}

/** A token of one position has some forty characters; every write's answer carries one. */
const scratch = Buffer.allocUnsafeSlow(96)

const DIGITS = '0123456789abcdefghijklmnopqrstuvwxyz'

/** `n.toString(36)` of a whole number; V8 takes four times as long above 31 bits. */
function base36(n: number): string {
  let text = ''
  let left = n
  do {
    const higher = Math.floor(left / 36)
    text = DIGITS.charAt(left - higher * 36) + text
    left = higher
  } while (left > 0)
  return text
}

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
