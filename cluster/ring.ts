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
    .sort((a, b) => b.weight - a.weight || (a.member < b.member ? -1 : 1))
    .map(({ member }) => member)
}

/** Where a shard belongs: its target, and all members as they rank for it. */
export interface Place {
  readonly target: string
  readonly ranked: readonly string[]
}

/**
 * The target owner of each shard: shards in the order of their numbers go each to the live member
 * of the highest weight that has room. Each has floor(shards / members), and as many as the
 * division leaves over have one more. The `system` shard weighs next to nothing and takes nobody's
 * room. Empty when no member is alive. One weight a shard and member, and a round more for
 * `system`.
 */
export function places(shards: readonly number[], members: readonly string[]): Map<number, Place> {
  const placed = new Map<number, Place>()
  if (members.length === 0) return placed
  const weighty = shards.filter((shard) => shard !== SYSTEM_SHARD).toSorted((a, b) => a - b)
  const least = Math.floor(weighty.length / members.length)
  let spare = weighty.length % members.length
  const load = new Map<string, number>()
  for (const shard of weighty) {
    const ranks = ranked(`shard-${shard}`, members)
    for (const target of ranks) {
      const has = load.get(target) ?? 0
      if (has > least || (has === least && spare === 0)) continue
      if (has === least) spare--
      load.set(target, has + 1)
      placed.set(shard, { target, ranked: ranks })
      break
    }
  }
  if (weighty.length < shards.length) {
    const [target] = ranked('system', members)
    const ranks = ranked(`shard-${SYSTEM_SHARD}`, members)
    placed.set(SYSTEM_SHARD, { target: target!, ranked: ranks })
  }
  return placed
}

/** The target owner of each shard, as `places` has it. */
export function targets(
  shards: readonly number[],
  members: readonly string[],
): Map<number, string> {
  return new Map([...places(shards, members)].map(([shard, { target }]) => [shard, target]))
}
