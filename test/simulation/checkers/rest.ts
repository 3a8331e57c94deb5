// What is left in the members when everything has come to rest: nothing is counted as under way, no
// number is reserved, no turn waits, and each process has one inbox. What leaks here is harmless
// for long, and then stops a shard. Source: PROTOCOL 3.6, 3.10.

import type { Shard } from '../../../cluster/sharding/shard.ts'
import type { SimulatedMember, World } from '../world.ts'

/** Called when a run has come to rest. */
export function checkRest(world: World): string[] {
  return world.living.flatMap((one) => [
    ...leftIn(one),
    ...[...one.member.shards.values()].flatMap((shard) => leftInShard(one.name, shard)),
    ...inboxesOf(world, one),
  ])
}

function leftIn({ name, member }: SimulatedMember): string[] {
  const found: string[] = []
  for (const [shard, count] of member.edge.inFlight) {
    found.push(`K8: ${name} counts ${count} requests for shard ${shard}, and has none`)
  }
  return found
}

function leftInShard(name: string, { number, reserved, activations }: Shard): string[] {
  const who = `K8: ${name}, shard ${number}`
  const found = [...reserved.keys()].map((key) => `${who}: ${JSON.stringify(key)} stays reserved`)
  for (const { id, running, mailbox, loaded } of activations.values()) {
    if (running !== null) found.push(`${who}: a turn of ${id} has not ended`)
    if (mailbox.length > 0) found.push(`${who}: ${mailbox.length} messages wait for ${id}`)
    if (!loaded) found.push(`${who}: ${id} is still being loaded`)
  }
  return found
}

function inboxesOf(world: World, { name, process }: SimulatedMember): string[] {
  const inboxes = world.redis.inboxesOf(process)
  return inboxes === 1 ? [] : [`K8: the process of ${name} has ${inboxes} inboxes`]
}
