// Mutants of requests and their answers: the output gate, dedup, rejections, relays, natural keys,
// what an edge may say. Source: PROTOCOL 3.6, ARCHITECTURE 4.

import type { Mutant } from './mutant.ts'

const ACTIVATION = 'cluster/sharding/turn/activation.ts'
const LOADING = 'cluster/sharding/turn/loading.ts'
const SHARD = 'cluster/sharding/shard.ts'
const TURNS = 'cluster/sharding/turn/turns.ts'

export const ANSWER_MUTANTS: readonly Mutant[] = [
  {
    name: 'early-ack',
    directed: 'uncommitted',
    why: 'an answer leaves when its append is sent, and the append is fenced',
    patches: [
      {
        file: TURNS,
        find: '      gate.wait(work.gate, (lost) => respond(',
        replace:
          '      if (work) return respond(reply)\n      gate.wait(work.gate, (lost) => respond(',
      },
    ],
  },
  {
    name: 'preview-before-commit',
    directed: 'uncommitted',
    why: 'a preview or read shows what is not committed, and may never be',
    patches: [
      {
        file: 'cluster/sharding/commit/read-release.ts',
        find: '  shard.gate.wait(offset, (lost) => {\n    if (lost) {',
        replace:
          '  shard.gate.wait(Math.min(offset, shard.gate.head), (lost) => {\n    if (lost) {',
      },
    ],
  },
  {
    name: 'no-dedup',
    why: 'a copy, or a repeat with the same key, takes effect once more',
    patches: [
      {
        file: 'cluster/sharding/turn/dedup.ts',
        find: '    const messageId = messageIdOf(work)\n    const { relay } = work.envelope',
        replace:
          '    if (!work.envelope.relay) return null\n' +
          '    const messageId = messageIdOf(work)\n    const { relay } = work.envelope',
      },
    ],
  },
  {
    name: 'marks-in-memory',
    why: 'what took effect is forgotten when its actor is loaded again',
    patches: [
      {
        file: LOADING,
        find: '  activation.loaded = true\n}',
        replace:
          '  activation.marks = new activation.marks.constructor()\n  activation.loaded = true\n}',
      },
    ],
  },
  {
    name: 'marks-lost-by-snapshot',
    why: 'a snapshot that holds no marks forgets the messages below it',
    patches: [
      {
        file: ACTIVATION,
        find: '  for (const mark of body.marks) activation.marks.add(mark)',
        replace: '',
      },
    ],
  },
  {
    name: 'marks-by-wall-clock',
    why: 'a clock that jumps ahead makes marks look older than they live',
    patches: [
      {
        file: 'cluster/sharding/account.ts',
        find: '    return Math.floor(this.#clockBase + this.#shard.context.servedMs() - this.#clockFrom)',
        replace: '    return this.#shard.context.clock.nowMs() - Date.UTC(2025, 0, 1)',
      },
    ],
  },
  {
    name: 'clock-without-lease',
    directed: 'slept-edge',
    why: 'ids of an edge that sleeps are forgotten while nobody can declare it dead',
    patches: [
      {
        file: 'cluster/member.ts',
        find: '      servedMs: () => this.ownership.servedMs(),',
        replace: '      servedMs: () => world.clock.monotonicMs(),',
      },
    ],
  },
  {
    name: 'rejections-unrecorded',
    why: 'a rejected message succeeds when it is repeated after the state has changed',
    patches: [
      {
        file: TURNS,
        find: '    const entry = entryOf(this.#shard, activation, work, { result, decision })',
        replace:
          '    if (!decision.ok && !work.envelope.relay) {\n' +
          '      work.results.push(result)\n      return\n    }\n' +
          '    const entry = entryOf(this.#shard, activation, work, { result, decision })',
      },
    ],
  },
  {
    name: 'refusal-with-open-copies',
    directed: 'open-copy',
    why: '"nothing was done" is said while another copy is still running',
    patches: [
      {
        file: 'cluster/routing/edge.ts',
        find:
          '    if (isLater && hasLooked(reply)) pending.lostBefore = 0\n' +
          '    if (pending.open > 0) return\n',
        replace: '    if (isLater && hasLooked(reply)) pending.lostBefore = 0\n',
      },
    ],
  },
  {
    name: 'relay-before-commit',
    directed: 'phantom-relay',
    why: 'a message leaves to another actor, and the entry that sent it never was',
    patches: [
      {
        file: SHARD,
        find: '    for (const { entry, offset } of group) this.outbox.committed(entry, offset)\n',
        replace: '',
      },
      {
        file: SHARD,
        find: '    if (!this.gate.isFlying) this.#commits.ready()\n    return offset',
        replace:
          '    this.outbox.committed(entry, offset)\n' +
          '    if (!this.gate.isFlying) this.#commits.ready()\n    return offset',
      },
    ],
  },
  {
    name: 'relay-without-offsets',
    directed: 'old-relay',
    why: 'a relayed message that is sent again after marks have gone is taken twice',
    patches: [
      {
        file: 'cluster/sharding/turn/dedup.ts',
        find: '    if (relay && wasTaken(activation, relay, work.i)) return relayed(activation)\n',
        replace: '',
      },
    ],
  },
  {
    name: 'reservation-freed-by-timer',
    directed: 'late-create',
    why: 'an old claim is ended without asking its actor, whose create still arrives',
    patches: [
      {
        file: 'cluster/sharding/keys/claims.ts',
        find: "    const type = key.keyType.split('!')[0]!\n    return this.#internal(",
        replace:
          "    const type = key.keyType.split('!')[0]!\n" +
          '    if (type) return this.#endClaim(key, claim).then(() => false)\n' +
          '    return this.#internal(',
      },
    ],
  },
]
