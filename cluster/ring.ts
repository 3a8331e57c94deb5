// The ring: consistent hashing of shards onto live members, in its rendezvous form. Says which
// member should have a shard (the target); who has it is said by the shard's row (the truth).
// Changing the weight re-maps every installation: ring.test.ts pins it. Source: PROTOCOL 3.4.

import { SYSTEM_SHARD, fnv1aText } from '../protocol/ids.ts'

/** Mixes the bits of a hash so that neighbouring inputs get unrelated weights. Pinned. */
function mix(h: number): number {
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  return (h ^ (h >>> 16)) >>> 0
}

export function weight(name: string, member: string): number {
  return mix(fnv1aText(`${member}/${name}`))
}

/** Members by falling weight for a name; equal weights by name, so that all agree. */
export function ranked(name: string, members: readonly string[]): string[] {
  return members
    .map((member) => ({ member, weight: weight(name, member) }))
    .toSorted((a, b) => b.weight - a.weight || (a.member < b.member ? -1 : 1))
    .map(({ member }) => member)
}

/**
 * The target owner of each shard: shards in the order of their numbers go each to the live member
 * of the highest weight that has room. Each has floor(shards / members), and as many as the
 * division leaves over have one more. The `system` shard weighs next to nothing and takes nobody's
 * room. Empty when nobody lives.
 */
export function targets(
  shards: readonly number[],
  members: readonly string[],
): Map<number, string> {
  const placed = new Map<number, string>()
  if (members.length === 0) return placed
  const weighty = shards.filter((shard) => shard !== SYSTEM_SHARD).toSorted((a, b) => a - b)
  const least = Math.floor(weighty.length / members.length)
  let spare = weighty.length % members.length
  const load = new Map<string, number>()
  for (const shard of weighty) {
    for (const member of ranked(`shard-${shard}`, members)) {
      const has = load.get(member) ?? 0
      if (has > least || (has === least && spare === 0)) continue
      if (has === least) spare--
      load.set(member, has + 1)
      placed.set(shard, member)
      break
    }
  }
  if (weighty.length < shards.length) placed.set(SYSTEM_SHARD, ranked('system', members)[0]!)
  return placed
}
