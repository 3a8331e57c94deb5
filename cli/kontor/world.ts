// What a command of `kontor` touches of the machine. Tests give another one.

/** Everything outside of a command. */
export interface World {
  readonly env: Readonly<Record<string, string | undefined>>
  /** The user's own folder. */
  readonly home: string
  readonly nowMs: () => number
  readonly fetch: typeof fetch
  /** Results; a pipe may stand behind it. */
  readonly out: (text: string) => void
  /** Everything that is said to a person. */
  readonly say: (text: string) => void
  /** Whether a person looks at `out`, and at `say`. */
  readonly outIsTerminal: boolean
  readonly sayIsTerminal: boolean
  /** One line that a person types, or the whole of a pipe; secret: it is not shown. */
  readonly ask: (question: string, isSecret: boolean) => Promise<string>
  /** False: there is no browser to be had. */
  readonly openBrowser: (url: string) => Promise<boolean>
}
