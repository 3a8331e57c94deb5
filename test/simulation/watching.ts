// A simulated member watches the feed of all: what it hears of changed ledgers, as live queries do.
// Source: PROTOCOL 3.15, 3.18, 4.1 (K6).

import type { Clock } from '../../cluster/clock.ts'
import { LogFollowers } from '../../cluster/feed/log-followers.ts'
import type { Covered } from '../../cluster/feed/watch/coverage.ts'
import { FeedWatch } from '../../cluster/feed/watch/feed-watch.ts'
import type { Member } from '../../cluster/member.ts'
import { decodeSnapshot } from '../../cluster/sharding/turn/activation.ts'
import { NodeChanges } from '../../node/live/queries/node-changes.ts'
import type { Log } from '../../protocol/log.ts'
import type { Journal } from '../../storage/journal.ts'
import { ledger } from './clients/ledger.ts'

export interface WatchingOptions {
  readonly name: string
  readonly journal: Journal
  readonly clock: Clock
  readonly log: Log
}

const STREAM = 'ledgers'

export class Watching {
  /** Of the process; another of its name begins anew. */
  readonly name: string
  /** All that it was told, in order. */
  readonly heard: Covered[] = []
  readonly followers: LogFollowers
  readonly #options: WatchingOptions

  constructor(options: WatchingOptions) {
    const { name, journal, clock } = options
    this.name = name
    this.#options = options
    this.followers = new LogFollowers({ ...journal, clock })
  }

  begin(member: Member): void {
    const { journal, clock, log } = this.#options
    const { derived } = journal
    const { behaviours } = member
    const changes = new NodeChanges({ behaviours, derived, decodeSnapshot, clock })
    const watch = new FeedWatch({
      wire: {
        others: () => member.ownership.others(),
        tell: (to, notice) => member.tell(to, notice),
      },
      ...{ followers: this.followers, clock, log },
    })
    watch.add({
      name: STREAM,
      matcher: (interest) => changes.matcher(interest),
      take: (covered) => void this.heard.push(covered),
    })
    member.onWatch = (notice, from) => watch.hear(notice, from)
    void watch.want(STREAM, { types: ledger.nodeTypes.map(({ name }) => name) })
  }
}
