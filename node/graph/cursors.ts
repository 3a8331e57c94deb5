// The seal of a store's cursors: whoever has one can neither read nor change it, nor use it for
// another query. The same place has the same cursor, so that answers can be compared and kept.
// Source: CONTRACT 1.4 "Cursors".

import { createCipheriv, createDecipheriv, createHmac, hash } from 'node:crypto'
import type { CursorSeal } from '../../protocol/graph/cursor.ts'

/** Format of the cursor itself. */
const FORMAT = 1

const CIPHER = 'aes-256-gcm'
const NONCE_BYTES = 12
const TAG_BYTES = 16

/**
 * The seal of a store by its secret, the same on all members. The nonce is a keyed digest of what
 * is sealed: no two texts share one, and no chance is needed.
 */
export function cursorSeal(secret: string): CursorSeal {
  const key = hash('sha256', `graph cursor ${secret}`, 'buffer')
  const nonceKey = hash('sha256', `graph cursor nonce ${secret}`, 'buffer')
  return {
    seal(text, of) {
      const nonce = createHmac('sha256', nonceKey)
        .update(`${of.length} ${of}${text}`)
        .digest()
        .subarray(0, NONCE_BYTES)
      const cipher = createCipheriv(CIPHER, key, nonce).setAAD(Buffer.from(of))
      const parts = [Buffer.from([FORMAT]), nonce, cipher.update(text, 'utf8'), cipher.final()]
      return Buffer.concat([...parts, cipher.getAuthTag()]).toString('base64url')
    },
    open(cursor, of) {
      const bytes = Buffer.from(cursor, 'base64url')
      // Base64 alone would let variants of one cursor through.
      if (bytes.toString('base64url') !== cursor || bytes[0] !== FORMAT) return null
      if (bytes.length < 1 + NONCE_BYTES + TAG_BYTES) return null
      const nonce = bytes.subarray(1, 1 + NONCE_BYTES)
      const decipher = createDecipheriv(CIPHER, key, nonce)
        .setAAD(Buffer.from(of))
        .setAuthTag(bytes.subarray(-TAG_BYTES))
      try {
        const text = decipher.update(bytes.subarray(1 + NONCE_BYTES, -TAG_BYTES))
        return Buffer.concat([text, decipher.final()]).toString('utf8')
      } catch {
        return null
      }
    },
  }
}
