// What a mutant is: patches of sources, and what they break.

/** A place in a source that must be there exactly once, and what stands there instead. */
export interface Patch {
  readonly file: string
  readonly find: string
  readonly replace: string
}

export interface Mutant {
  readonly name: string
  readonly why: string
  readonly patches: readonly Patch[]
  /** The seed at which a search for one that catches it begins; the first of all without it. */
  readonly first?: number
  /** Schedule that catches it; without one seeds do. */
  readonly directed?: string
  /** Unit test that catches it, where no simulated cluster comes. */
  readonly test?: string
}
