// The log of a part that runs on a thread of its own, as it sees it.

/** Where a part reports what an operator should know. */
export interface ThreadLog {
  info(fields: object, text: string): void
  warn(fields: object, text: string): void
  error(fields: object, text: string): void
}
