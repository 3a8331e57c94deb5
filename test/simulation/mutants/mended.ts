// Mutants of mistakes that were made and mended: what the simulation has found once it must find
// again. Source: PROTOCOL 4.1 "A fixed bug joins the list".

import type { Mutant } from './mutant.ts'

export const MENDED_MUTANTS: readonly Mutant[] = [
  {
    name: 'snapshot-of-nobody',
    why: 'an actor that was never made gets a snapshot, and can not be loaded any more',
    patches: [
      {
        file: 'cluster/sharding/turn/activation.ts',
        find: '  if (body.state !== null) {',
        replace: '  {',
      },
    ],
  },
  {
    name: 'create-runs-ahead',
    why: 'a second copy of a create overtakes the first, which reads its key, and keeps no key',
    first: 51,
    patches: [
      {
        file: 'cluster/sharding/turn/arrivals.ts',
        find: '      if (known.isRead) this.#deliverCreate(',
        replace: '      if (known) this.#deliverCreate(',
      },
    ],
  },
  {
    name: 'moved-hides-commit',
    why: 'an owner that steps down with a group under way says just "moved": it may be in the log',
    directed: 'doubtful-move',
    patches: [
      {
        file: 'cluster/sharding/shard.ts',
        find: '    return this.#commits.isFlying ? ({ ...moved, taken: true } as WireReply) : moved',
        replace: '    return moved',
      },
    ],
  },
  {
    name: 'unlooked-is-undone',
    why: 'who can not read whether a message is known says that nothing was done',
    directed: 'unread-mark',
    patches: [
      {
        file: 'cluster/sharding/turn/turns.ts',
        find:
          '        resumed(work, (is) => (is ? this.#alike(work, is) : this.#look(activation, work, message))),\n' +
          '        (error: unknown) => this.#unlooked(activation, work, error),\n',
        replace:
          '        resumed(work, (is) => (is ? this.#alike(work, is) : this.#look(activation, work, message))),\n',
      },
      {
        file: 'cluster/sharding/turn/turns.ts',
        find:
          '        resumed(work, (recalled) => this.#startNew(activation, work, message, recalled)),\n' +
          '        (error: unknown) => this.#unlooked(activation, work, error),\n',
        replace:
          '        resumed(work, (recalled) => this.#startNew(activation, work, message, recalled)),\n',
      },
    ],
  },
  {
    name: 'busy-has-looked',
    why: 'an owner without room speaks for a dead one, in whose log it has not looked',
    directed: 'no-room',
    patches: [
      {
        file: 'cluster/routing/edge.ts',
        find: '    if (isLater && hasLooked(reply)) pending.lostBefore = 0',
        replace: '    if (isLater) pending.lostBefore = 0',
      },
    ],
  },
  {
    name: 'runs-by-key',
    why: 'whoever the key leads to at each copy runs it: when the key changes hands, two actors do',
    directed: 'key-changes-hands',
    patches: [
      {
        file: 'cluster/member.ts',
        find: '      sendsOnByKey: cluster !== null,',
        replace: '      sendsOnByKey: false,',
      },
    ],
  },
  {
    name: 'refused-runs-on',
    why: 'what stands behind a message that was refused takes effect before its repeat',
    directed: 'refused-first',
    patches: [
      {
        file: 'cluster/sharding/turn/refusals.ts',
        find: '    if (!isRetryable(items[0]!.code)) return\n    // What',
        replace: '    if (items) return\n    // What',
      },
    ],
  },
  {
    name: 'void-of-spilled',
    why: 'a message is voided although it took effect: its mark has left the window',
    directed: 'known-by-row',
    patches: [
      {
        file: 'cluster/sharding/turn/dedup.ts',
        find: '    return this.#findSpilled(activation, messageId, (spilled) => spilled !== null)\n',
        replace: '    return false\n',
      },
    ],
  },
  {
    name: 'noted-twice',
    test: 'cluster/sharding/commit/outbox.test.ts',
    why: 'while it is not known whether the log has the actor of an effect, another is looked for',
    patches: [
      {
        file: 'cluster/sharding/commit/outbox.ts',
        find: "      if (lost.outcome === 'unknown') shard.gate.wait(at, isLost)\n      else again()\n",
        replace: '      again()\n',
      },
    ],
  },
  {
    name: 'nobody-as-of-the-answer',
    test: 'cluster/sharding/commit/outbox.test.ts',
    why: 'nobody had the key when it was asked, and what gave it was taken before the answer came',
    patches: [
      {
        file: 'cluster/sharding/commit/outbox.ts',
        find: '        if (mayCome) {\n',
        replace: '        if (this.#before(line, item).length + line.staying.length > 0) {\n',
      },
    ],
  },
  {
    name: 'repeat-before-commit',
    test: 'cluster/sharding/turn/dedup.test.ts',
    why: 'a repeat is answered before the entry by which it is known is committed',
    patches: [
      {
        file: 'cluster/sharding/turn/turns.ts',
        find: '      work.gate = Math.max(work.gate, known.gate)\n',
        replace: '',
      },
    ],
  },
  {
    name: 'snapshot-forgets-spill',
    test: 'cluster/sharding/turn/loading.test.ts',
    why: 'an actor that was loaded does not look for marks that had left its window',
    patches: [
      {
        file: 'cluster/sharding/turn/activation.ts',
        find: '  activation.marks.spilled ||= body.spilled\n',
        replace: '',
      },
    ],
  },
  {
    name: 'judges-without-lease',
    test: 'cluster/membership/death-watch.test.ts',
    why: 'a member declares others dead whose beats may not have got through, as its own did not',
    patches: [
      {
        file: 'cluster/membership/death-watch.ts',
        find: '    if (!mayJudge()) this.#detector.restart()\n',
        replace: '    mayJudge()\n',
      },
    ],
  },
]
