// Which version of the schema the index that is read was laid out for: plans and metadata are made
// on that one, so that an index that is filled beside takes nothing away. The live schema may be
// ahead. Source: PROTOCOL 3.13.8.

import type { SchemaVersion } from '../graph/live-schema.ts'

/** Versions whose layouts are remembered: the one that is read, and those that came since. */
const VERSIONS_MAX = 8

export class ServedSchema {
  #version: SchemaVersion
  /** By the fingerprints of their layouts, oldest first. */
  readonly #versions = new Map<string, SchemaVersion>()

  constructor(version: SchemaVersion, fingerprint: string) {
    this.#version = version
    this.keep(version, fingerprint)
  }

  get version(): SchemaVersion {
    return this.#version
  }

  /** Null: none of those that are remembered has the layout. */
  find(fingerprint: string): SchemaVersion | null {
    return this.#versions.get(fingerprint) ?? null
  }

  /** The newest version, and its layout. */
  keep(version: SchemaVersion, fingerprint: string): void {
    this.#versions.delete(fingerprint)
    this.#versions.set(fingerprint, version)
    if (this.#versions.size <= VERSIONS_MAX) return
    this.#versions.delete(this.#versions.keys().next().value!)
  }

  /**
   * The index that is read has this layout. True: it is another version from now on. Of an index
   * that another program has made nothing is known: it stays the version that it was.
   */
  serve(fingerprint: string): boolean {
    const version = this.#versions.get(fingerprint)
    if (version === undefined || version === this.#version) return false
    this.#version = version
    return true
  }
}
