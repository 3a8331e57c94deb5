// K8: once all faults have ended, every shard answers over every member within ten seconds, no
// request stays with an edge, nothing lies unread in the wire, and what is committed is flushed and
// relayed. Source: PROTOCOL 4.1.

import type { World } from '../world.ts'

export const ANSWERS_WITHIN_MS = 10_000

/** What still moves in the members: empty when the cluster is at rest. */
export function unrest(world: World): string[] {
  const found: string[] = []
  for (const { name, member, process, index } of world.living) {
    const of = (what: string): string => `K8: ${name}: ${what}`
    if (process.state !== 'running') found.push(of(`is ${process.state}`))
    for (const { shard, state } of member.ownership.overview().moves) {
      found.push(of(`a move of ${shard} is ${state}`))
    }
    if (member.edge.pending > 0) found.push(of(`${member.edge.pending} requests at its edge`))
    for (const [number, shard] of member.shards) {
      const { gate, flusher, outbox, state } = shard
      if (state !== 'serving') found.push(of(`shard ${number} is ${state}`))
      if (gate.hasOpen || gate.isFlying) found.push(of(`shard ${number} has open entries`))
      if (!flusher.idle) found.push(of(`shard ${number} is flushing`))
      const shown = index?.indexed(number)
      const hasIt = typeof shown === 'number' && shown >= gate.head
      const isShown = number < 0 || index === null || hasIt
      if (!isShown || index?.watch.unready()) found.push(of(`shard ${number} is not in the index`))
      if (outbox.size > 0) found.push(of(`shard ${number} has ${outbox.size} effects to relay`))
    }
  }
  const { unread } = world.redis
  if (unread > 0) found.push(`K8: ${unread} entries of the wire are unread`)
  return [...found, ...unowned(world), ...checkFlags(world)]
}

/** Every shard is served by exactly one member: the one that its row names. */
export function unowned(world: World): string[] {
  const found: string[] = []
  for (const [number, row] of world.engine.state.shards) {
    const serving = world.living.filter(
      ({ member }) => member.shards.get(number)?.state === 'serving' && member.ownership.mayServe(),
    )
    const owners = serving.map(({ member }) => member.ownership.incarnation)
    if (owners.length !== 1 || owners[0] !== row.incarnation) {
      found.push(`K8: shard ${number} of ${row.owner} is served by ${owners.length} members`)
    }
  }
  return found
}

/** What every member has at hand of the `system` shard is the same everywhere. */
function checkFlags(world: World): string[] {
  const shown = world.living.map(({ name, member }) => {
    const flags = [...member.system.withPrefix('flag', '')]
    return { name, text: JSON.stringify(flags.map(({ key, value }) => [key, value])) }
  })
  const others = shown.filter(({ text }) => text !== shown[0]?.text)
  return others.map(({ name, text }) => `K8: ${name} has the flags ${text}, not ${shown[0]!.text}`)
}
