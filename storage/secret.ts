// The secret of a store, by which its members know each other's words and their own. The store's
// identity keeps it (StoreIdentity.secret).

import type { FillRandom } from '../protocol/ids.ts'

/** base64url of 32 random bytes. */
export function makeStoreSecret(random: FillRandom): string {
  const bytes = Buffer.alloc(32)
  random(bytes)
  return bytes.toString('base64url')
}
