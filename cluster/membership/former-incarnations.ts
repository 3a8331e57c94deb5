// What this machine knows of incarnations of its member's name that began on it. A process that
// starts again asks it before it waits for the one before (joining.ts);
// node/membership/incarnation-file.ts finds out. Source: PROTOCOL 3.3.1.

export interface FormerIncarnations {
  /** This process is about to begin an incarnation. Kept when it returns. */
  begins(incarnation: string): void
  /**
   * True: it began here, and the process that lived it is no more, so that it answers nothing and
   * sends nothing any more. False: it may be merely stopped, or nobody here knows.
   */
  isOver(incarnation: string): boolean
}
