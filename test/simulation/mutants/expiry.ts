// Mutants of what weeks show: what expires and what must stay, what is believed too long, bounds
// that are forgotten. Some mistakes are made where no simulated cluster comes: a unit test catches
// them. Source: PROTOCOL 3.0, 3.6, 3.12.

import type { Mutant } from './mutant.ts'

const ACTIVATION = 'cluster/sharding/turn/activation.ts'
const LOADING = 'cluster/sharding/turn/loading.ts'
const EDGE = 'cluster/routing/edge.ts'
const TURNS = 'cluster/sharding/turn/turns.ts'

export const EXPIRY_MUTANTS: readonly Mutant[] = [
  {
    name: 'refusals-expire-in-the-middle',
    why: 'an actor is read as far as its entries are dense: behind a refusal that has gone is a hole',
    patches: [
      {
        file: LOADING,
        find: '    from.after = n\n    if (n < from.tailN)',
        replace:
          '    if (n !== from.after + 1) return false\n    from.after = n\n    if (n < from.tailN)',
      },
    ],
  },
  {
    name: 'refusals-go-from-the-front',
    test: 'storage/memory/journal.test.ts',
    why: 'a refusal goes that says where a relayed message came from, or which keys its actor has',
    patches: [
      {
        file: 'storage/row-expiry.ts',
        find: '  return isNeeded ? null : { from: c }',
        replace: '  return isNeeded === null ? null : { from: c }',
      },
    ],
  },
  {
    name: 'records-expire',
    why: 'a row that an actor is made of carries a TTL',
    patches: [
      {
        file: 'storage/row-expiry.ts',
        find: '  if (holdsRecords(body)) return null\n',
        replace: '  if (holdsRecords(body)) return { from: 0 }\n',
      },
    ],
  },
  {
    name: 'keys-by-the-wall-clock',
    test: 'storage/lmdb/expiry.test.ts',
    why: 'a machine that boots behind and is set right deletes keys that are a minute old',
    patches: [
      {
        file: 'storage/lmdb/expiry.ts',
        find: '    const clock = this.#options.clockOf(shard)\n',
        replace: '    const clock = this.#options.clockOf(shard) === null ? null : Date.now()\n',
      },
    ],
  },
  {
    name: 'spill-by-another-weight',
    test: 'cluster/sharding/recovery/recovery.test.ts',
    why: 'a takeover reckons with other weights than the window, and forgets what has left it',
    patches: [
      {
        file: 'cluster/sharding/recovery/recovery.ts',
        find: '  const fewest = fewestToSpill()\n',
        replace:
          '  const fewest = LIMITS.sharding.marksBytesMax / LIMITS.sharding.markAnswerBytesMax + fewestToSpill()\n',
      },
    ],
  },
  {
    name: 'refusal-replaces-answer',
    test: 'cluster/routing/edge-answers.test.ts',
    why: '"nothing was done" is said of something that another copy has partly done',
    patches: [
      {
        file: EDGE,
        find: "  if (kept?.outcome !== 'answered') return reply\n",
        replace: '  if (kept !== undefined) return reply\n',
      },
    ],
  },
  {
    name: 'ids-after-filtering',
    test: 'node/actors/repeats.test.ts',
    why: 'what is refused is left out: it has no mark, and what is behind it another number',
    patches: [
      {
        file: 'node/actors/actor-request.ts',
        find: '  if (!who.isKeyed || ',
        replace: '  if (who.isKeyed || ',
      },
    ],
  },
  {
    name: 'refusals-at-the-edge-unrecorded',
    test: 'node/actors/repeats.test.ts',
    why: 'what an edge refused is answered, and nobody remembers it',
    patches: [
      {
        file: 'cluster/sharding/turn/turns.ts',
        find: '      this.#refusals.record(activation, work, refusal)\n',
        replace: '      work.results.push(refusal)\n',
      },
    ],
  },
  {
    name: 'quarantine-stops-counting',
    test: 'cluster/sharding/turn/loading.test.ts',
    why: 'what is recorded of an actor in quarantine goes on from a version that is not its own',
    patches: [
      {
        file: ACTIVATION,
        find: '        : this.#advance(entry, offset, bytes)\n',
        replace: '        : []\n',
      },
    ],
  },
  {
    name: 'dead-turns-go-on',
    test: 'cluster/sharding/turn/turns.test.ts',
    why: 'a turn that was dropped goes on behind what it waited for: a number stays reserved',
    patches: [
      {
        file: 'cluster/sharding/turn/work.ts',
        find: 'work.isOver ? new Promise(NEVER) : use(value)',
        replace: 'work.isOver && use === null ? new Promise(NEVER) : use(value)',
      },
    ],
  },
  {
    name: 'claims-wait-in-a-circle',
    test: 'cluster/sharding/turn/circles.test.ts',
    why: 'turns of several shards wait for keys of one another until their claims give up',
    patches: [
      {
        file: 'cluster/sharding/keys/claims.ts',
        find: '    const age = ageOfHolder(this.#shard.reserved, work)\n',
        replace: '    const age = undefined\n',
      },
    ],
  },
  {
    name: 'younger-waits',
    test: 'cluster/sharding/turn/circles.test.ts',
    why: 'a turn gives back for younger ones: as long as some come, it never ends',
    patches: [
      {
        file: 'cluster/sharding/keys/claims.ts',
        find: 'age < held.work.age',
        replace: 'age > held.work.age',
      },
    ],
  },
  {
    name: 'younger-each-time',
    test: 'cluster/sharding/turn/circles.test.ts',
    why: 'a turn that begins again is younger than those that have come since',
    patches: [
      {
        file: TURNS,
        find: "    if (work.age === '') work.age",
        replace: '    work.age',
      },
    ],
  },
  {
    name: 'holds-behind-a-turn',
    test: 'cluster/sharding/turn/circles.test.ts',
    why: 'a question about a key stands behind a turn that waits for the one who asks',
    patches: [
      {
        file: TURNS,
        find: 'if (isAsked && activation.running !== null)',
        replace: 'if (isAsked && activation === null)',
      },
    ],
  },
  {
    name: 'under-way-is-void',
    test: 'cluster/sharding/turn/circles.test.ts',
    why: 'a message is made void while its turn waits, and takes effect after that',
    patches: [
      {
        file: 'cluster/sharding/keys/holds.ts',
        find: '      if (isUnderWay(activation, messageId)) return answer(true)\n',
        replace: '',
      },
    ],
  },
  {
    name: 'relay-second-message-taken',
    why: 'the second message of an effect counts as taken with the first',
    patches: [
      {
        file: 'cluster/sharding/turn/dedup.ts',
        find: '[offset, index, message])',
        replace: '[offset, index, message * 0])',
      },
    ],
  },
  {
    name: 'relay-by-key-swallowed',
    test: 'cluster/sharding/turn/effects.test.ts',
    why: 'an effect by a number overtakes, or is overtaken by, one to the same ledger by its id',
    patches: [
      {
        file: 'cluster/sharding/commit/outbox.ts',
        find: "    return this.#shard.context.behaviours.get(to.type)?.home === 'system'\n",
        replace: '    return true\n',
      },
    ],
  },
  {
    name: 'trim-passes-relayed',
    test: 'cluster/sharding/commit/trim-relayed.test.ts',
    why: 'the log is trimmed behind effects of which the store says that they are not taken yet',
    patches: [
      {
        file: 'cluster/sharding/commit/trimmer.ts',
        find: 'Math.min(most, await storedRelay(shard))',
        replace: 'Math.min(most, shard.outbox.relayed)',
      },
    ],
  },
  {
    name: 'image-keeps-deleted',
    directed: 'long-away',
    why: 'who was away for longer than the log reaches goes on believing what was deleted',
    patches: [
      {
        file: 'cluster/system-view.ts',
        find: '      map.byKey = found.get(type) ?? new Map()\n',
        replace: '      map.byKey = new Map([...map.byKey, ...(found.get(type) ?? new Map())])\n',
      },
    ],
  },
  {
    name: 'no-lease-before-caches',
    test: 'node/access/cut-off.test.ts',
    why: 'a member that is cut off goes on authenticating from what it remembers',
    patches: [
      {
        file: 'cluster/member.ts',
        find: '    return this.serves(SYSTEM_SHARD) && this.system.offset >= tenure!.gate.head\n',
        replace: "    return tenure?.state === 'serving'\n",
      },
    ],
  },
  {
    name: 'bound-forgotten-on-load',
    test: 'cluster/sharding/turn/bounds.test.ts',
    why: 'an actor that was at rest may grow by its whole bound again',
    patches: [
      {
        file: LOADING,
        find: '  alarm(activation, source)\n  activation.loaded = true',
        replace:
          '  alarm(activation, source)\n  activation.stateBytesBound = 0\n' +
          '  activation.loaded = true',
      },
    ],
  },
  {
    name: 'number-on-the-way-stays',
    why: 'a number that a ledger had within one message only stays its own',
    patches: [
      {
        file: 'cluster/sharding/turn/entry-maker.ts',
        find: '    const has = isAmong(after, keyType, key)\n',
        replace: '    const has = decision.ok\n',
      },
    ],
  },
]
