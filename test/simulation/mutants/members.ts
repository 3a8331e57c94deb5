// Mutants of members: joining, beats, leases, who owns what, and moves from one to another. Source:
// PROTOCOL 3.3, 3.5, 3.8.

import type { Mutant } from './mutant.ts'

const PLACEMENT = 'cluster/placement/placement.ts'
const CLAIMER = 'cluster/placement/claimer.ts'
const MEMBERSHIP = 'cluster/membership/membership.ts'

export const MEMBER_MUTANTS: readonly Mutant[] = [
  {
    name: 'claim-ignores-incarnation',
    why: 'whether an owner is dead is told by its name: a newer incarnation of it makes the old one live',
    patches: [
      {
        file: CLAIMER,
        find: '    if (owner === null || owner.incarnation !== row.incarnation) return true',
        replace: '    if (owner === null) return true',
      },
    ],
  },
  {
    name: 'claim-by-name',
    directed: 'two-incarnations',
    why: 'a new incarnation serves what the rows say of its name, in the epoch of the old one',
    patches: [
      {
        file: PLACEMENT,
        find: '    if (incarnation === this.incarnation) {\n      this.#unowned.delete(shard)',
        replace: '    if (row.owner === this.#options.member) {\n      this.#unowned.delete(shard)',
      },
      {
        file: CLAIMER,
        find: '    if (row.incarnation !== this.#options.incarnation()) return\n',
        replace: '    if (row.owner !== this.#options.member) return\n',
      },
    ],
  },
  {
    name: 'join-without-waiting',
    directed: 'newcomer',
    why: 'a newcomer takes its name from an incarnation that is merely paused and may still answer reads',
    patches: [
      {
        file: 'cluster/membership/joining.ts',
        find: '      if (!detector.isTimedOut(found.incarnation)) {',
        replace: '      if (false) {',
      },
    ],
  },
  {
    name: 'read-without-lease',
    directed: 'sleeping-reader',
    why: 'an owner that was replaced while it slept still answers reads',
    patches: [
      {
        file: PLACEMENT,
        find: '  mayRead(): boolean {\n    return this.mayServe()',
        replace: '  mayRead(): boolean {\n    return true',
      },
      {
        file: 'cluster/sharding/turn/turns.ts',
        find: '      if (!this.#shard.context.mayServe()) {',
        replace:
          "      const isRead = activation.mailbox[0]!.envelope.messages[0]!.type === 'read'\n" +
          '      if (!isRead && !this.#shard.context.mayServe()) {',
      },
    ],
  },
  {
    name: 'stopped-is-over',
    directed: 'twin-of-sleeper',
    why: 'who starts where an earlier process of its name began does not wait, though that one sleeps',
    patches: [
      {
        file: 'cluster/membership/joining.ts',
        find: 'former?.isOver(found.incarnation) !== true',
        replace: 'former === undefined',
      },
    ],
  },
  {
    name: 'wall-clock-lease',
    directed: 'sleeping-reader',
    why: 'a wall clock that jumps back makes a lease that is over stand',
    patches: [
      {
        file: MEMBERSHIP,
        find: '    return isWithin(this.#options.world.clock, LIMITS.membership.leaseMs, this.#leaseFrom)',
        replace:
          '    const { clock } = this.#options.world\n' +
          '    return clock.nowMs() < this.#leaseFrom.wallMs + LIMITS.membership.leaseMs',
      },
    ],
  },
  {
    name: 'beat-ignores-state',
    why: 'one that was declared dead beats on, and goes on reading beside its successor',
    patches: [
      {
        file: 'cluster/membership/beat.ts',
        find: '{ incarnation, beat, state })',
        replace: '{ incarnation, beat })',
      },
    ],
  },
  {
    name: 'member-read-before-shard',
    directed: 'newer-incarnation',
    why: 'an incarnation newer than the member rows that were read looks dead, and loses its shards',
    patches: [
      {
        file: 'cluster/membership/death-watch.ts',
        find:
          '      const shards = await control.shards()\n' +
          '      return { readAtMs, shards, members: await control.members() }',
        replace:
          '      const members = await control.members()\n' +
          '      return { readAtMs, shards: await control.shards(), members }',
      },
      {
        file: CLAIMER,
        find:
          '    const row = await control.shard(shard)\n' +
          '    if (!(await this.#isDead(row))) return',
        replace:
          '    const members = await control.members()\n' +
          '    const row = await control.shard(shard)\n' +
          '    const lives = members.filter(({ state }) => state === "up" || state === "leaving")\n' +
          '    if (lives.some(({ incarnation: one }) => one === row.incarnation)) return',
      },
    ],
  },
  {
    name: 'unseal-after-unknown',
    directed: 'unsure-signature',
    why: 'a signature that timed out lands after its owner has begun to serve again',
    patches: [
      {
        file: 'cluster/placement/handoff.ts',
        find: "      if (outcome === 'applied') return this.#signed(tenure, next, { sealedMs, closing })",
        replace:
          "      if (outcome === 'applied') return this.#signed(tenure, next, { sealedMs, closing })\n" +
          "      if (outcome === 'unknown') return tenure.unseal()",
      },
    ],
  },
  {
    name: 'closed-unheard',
    directed: 'unclosed-log',
    why: 'the next owner goes on in a log that was never raised to its epoch',
    patches: [
      {
        file: 'cluster/log/segmented-log.ts',
        find: '    return isClosed ? end : null',
        replace: '    return end',
      },
    ],
  },
  {
    name: 'owner-believes-edges',
    directed: 'stale-permit',
    why: 'what an edge has let through by what it has not yet heard to be withdrawn is done',
    patches: [
      {
        file: 'cluster/sharding/turn/runtime-calls.ts',
        find: '        return this.#configuration()\n',
        replace: "        return { get: () => ({ value: 'yes' }), size: () => 0 }\n",
      },
    ],
  },
  {
    name: 'cut-off-keeps-shards',
    directed: 'cut-wire',
    why: 'a member whose wire is down keeps its shards, and their callers wait for nothing',
    patches: [
      {
        file: PLACEMENT,
        find: '    if (isCutOff()) void this.#drain.giveBack(isCutOff)\n',
        replace: '',
      },
    ],
  },
  {
    name: 'cut-off-at-once',
    directed: 'wire-away',
    why: 'with Redis away the first to notice gives its shards to who notices next, and so on',
    patches: [
      {
        file: 'cluster/membership/wire-states.ts',
        find: '      return nowMs - sinceMs >= LIMITS.membership.wireApartMs',
        replace: '      return nowMs >= sinceMs',
      },
    ],
  },
  {
    name: 'handoff-seals-no-reads',
    directed: 'sealed-reads',
    why: 'an owner that has signed its shard over goes on answering reads',
    patches: [
      {
        file: 'cluster/sharding/shard.ts',
        find: "    return this.state === 'serving' || this.#seal.isPending",
        replace: '    return true',
      },
      {
        file: 'cluster/sharding/shard.ts',
        find: "    if (this.state === 'serving' && !this.#suspect.isRunning) {",
        replace:
          "    const isRead = envelope.messages[0]!.type === 'read'\n" +
          "    if (this.state === 'serving' || (this.state === 'sealed' && isRead)) {",
      },
    ],
  },
]
