// The index of a scene held against the actors of its store.

import type { Test } from 'tap'
import type { Scene } from './scene.ts'

export function check(t: Test, s: Scene): void {
  t.strictSame(s.index.docs(), s.store.expected())
  for (const [shard, head] of s.store.heads) t.equal(s.index.offsets().get(shard) ?? 0, head)
}
