// Mutants of the graph index: versions, removals, offsets. Source: PROTOCOL 3.13.

import type { Mutant } from './mutant.ts'

const TWIN = 'storage/memory/search-engine.ts'
const TWIN_MUTANTS = 'const { hardDeletes, internalVersions } = this.#options.mutants ?? {}'
const WRITER = 'storage/elastic/writer.ts'

export const GRAPH_MUTANTS: readonly Mutant[] = [
  {
    name: 'hard-index-deletes',
    directed: 'late-bulk',
    why: 'a removed node is forgotten with its version, and a late older write brings it back',
    patches: [
      {
        file: TWIN,
        find: TWIN_MUTANTS,
        replace: 'const { hardDeletes, internalVersions } = { hardDeletes: true }',
      },
    ],
  },
  {
    name: 'internal-index-versions',
    directed: 'late-bulk',
    why: 'whoever writes last wins: a late bulk of an old owner takes a node back in time',
    patches: [
      {
        file: TWIN,
        find: TWIN_MUTANTS,
        replace: 'const { hardDeletes, internalVersions } = { internalVersions: true }',
      },
    ],
  },
  {
    name: 'index-offset-before-result',
    directed: 'lost-bulk',
    why: 'the offset says that nodes are there which a bulk that failed has never written',
    patches: [
      {
        file: WRITER,
        find: '    for (const some of this.#bulks(writes)) await this.#send(some, refused)',
        replace:
          '    await this.#options.saveOffsets(offsets)\n' +
          '    for (const some of this.#bulks(writes)) await this.#send(some, refused)',
      },
    ],
  },
  {
    name: 'removed-nodes-by-diff',
    why: 'nodes that went are told by comparing states, of which the older one is not known',
    patches: [
      {
        file: 'cluster/feed/projection-batch.ts',
        find: '  for (const [key, ref] of refs ?? []) all.set(key, ref)\n',
        replace:
          '  for (const [key, ref] of refs ?? [])\n' +
          '    if (places.has(key) || before?.has(key)) all.set(key, ref)\n',
      },
      {
        file: 'cluster/feed/projection-batch.ts',
        find: 'function touchedRefs({ isNew, refs }: TouchedActor,',
        replace: 'function touchedRefs({ isNew, refs, places: before }: TouchedActor,',
      },
    ],
  },
  {
    name: 'nodes-apart',
    directed: 'half-a-bulk',
    why: 'an answer puts an actor together from nodes that come into sight one by one',
    patches: [
      {
        file: 'storage/elastic/document.ts',
        find: '  if (whole !== undefined) keepWhole(whole, own)\n',
        replace: '',
      },
    ],
  },
  {
    name: 'own-node-untouched',
    why: 'a change of one node leaves the actor as its own document held it before',
    patches: [
      {
        file: 'cluster/feed/projection-batch.ts',
        find: '  else if (own !== undefined) all.set(refKey(own), own)\n',
        replace: '',
      },
    ],
  },
  {
    name: 'sleeper-writes-index',
    test: 'node/indexing/cluster/cluster-index.test.ts',
    why: 'who slept for a day writes what another has removed since: nobody knows that any more',
    patches: [
      {
        file: 'node/indexing/cluster/index-feed.ts',
        find: '      beforeBulk: () => this.#checkServed(),\n',
        replace: '      beforeBulk: () => undefined,\n',
      },
    ],
  },
  {
    name: 'gap-untold',
    first: 3,
    why: 'what was lost between two parts of the feed is not told, and a live view stays behind',
    patches: [
      {
        file: 'cluster/feed/watch/coverage.ts',
        find: '    const gap = from > before || dropped > 0',
        replace: '    const gap = dropped > 0',
      },
    ],
  },
  {
    name: 'newest-state-told',
    test: 'cluster/sharding/commit/committed-states.test.ts',
    why: 'beside an entry goes the newest state of its actor, which may never be committed',
    patches: [
      {
        file: 'cluster/sharding/shard.ts',
        find: 'this.context.onCommitted(this.number, group, first, body)',
        replace:
          'this.context.onCommitted(this.number, group.map((o) => ({ ...o, state: o.activation?.state })), first, body)',
      },
    ],
  },
]
