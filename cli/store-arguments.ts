// The arguments of the commands that read a whole store. It stands between the command line and
// move.ts and verify-log.ts, which take the same ones.

import { parseArgs } from 'node:util'

export interface StoreArguments {
  /** A data directory; undefined: as the settings say. */
  readonly data: string | undefined
  /** A settings file beside the environment. */
  readonly config: string | undefined
}

/** Exit codes: the usage was asked for, or wrong arguments (EX_USAGE of sysexits). */
const EXIT = { asked: 0, usage: 64 } as const

/** What was given, or the exit code once the usage was printed. */
export function storeArguments(usage: string): StoreArguments | number {
  try {
    const { values } = parseArgs({
      options: {
        data: { type: 'string' },
        config: { type: 'string' },
        help: { type: 'boolean' },
      },
    })
    if (values.help !== true) return { data: values.data, config: values.config }
    console.log(usage)
    return EXIT.asked
  } catch (error) {
    console.error((error as Error).message)
    console.error(usage)
    return EXIT.usage
  }
}
