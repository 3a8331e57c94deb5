// The installations that a bench starts for its scenarios, one for each name, on a store of its
// own: a node by itself, or a member of a cluster on engines that are started with the first.

import { ClusterEngines } from '../cluster/engines.ts'
import { Members } from '../cluster/members.ts'
import type { Driver } from '../options.ts'
import { Installation } from './installation.ts'

const SHARDS = 16

export class OwnInstallations {
  readonly #driver: Driver
  #engines: ClusterEngines | null = null
  readonly #members: Members[] = []

  constructor(driver: Driver) {
    this.#driver = driver
  }

  async start(name: string): Promise<Installation> {
    if (this.#driver === 'embedded') return Installation.start(name)
    this.#engines ??= await ClusterEngines.start()
    const members = new Members({ engines: this.#engines, quotas: null, shards: SHARDS })
    this.#members.push(members)
    await members.add(1)
    return members.all[0]!.installation
  }

  /** Ends what runs beside the installations, and those of clusters. */
  async stop(): Promise<void> {
    for (const members of this.#members) await members.stop()
    await this.#engines?.stop()
  }
}
