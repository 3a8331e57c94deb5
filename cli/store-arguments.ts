// The arguments of the commands that read a whole store. It stands between the command line and
// move.ts and verify-log.ts, which take the same ones.

import { parseArgs } from 'node:util'

export interface StoreArguments {
  /** A data directory; undefined: as the settings say. */
  readonly data: string | undefined
  /** A settings file beside the environment. */
  readonly config: string | undefined
  /** What is missing is put back, where a command can. */
  readonly repair: boolean
}

/** Exit codes: the usage was asked for, or wrong arguments (EX_USAGE of sysexits). */
const EXIT = { asked: 0, usage: 64 } as const

/** What was given, or the exit code once the usage was printed. */
export function storeArguments(
  usage: string,
  { mayRepair = false }: { readonly mayRepair?: boolean } = {},
): StoreArguments | number {
  try {
    const { values } = parseArgs({
      options: {
        data: { type: 'string' },
        config: { type: 'string' },
        help: { type: 'boolean' },
        ...(mayRepair ? { repair: { type: 'boolean' as const } } : null),
      },
    })
    const { data, config, help, repair } = values as { repair?: boolean } & typeof values
    if (help !== true) return { data, config, repair: repair === true }
    console.log(usage)
    return EXIT.asked
  } catch (error) {
    console.error((error as Error).message)
    console.error(usage)
    return EXIT.usage
  }
}
