// The arguments of the commands that read a whole store. move.ts, verify-log.ts and backup.ts take
// the same ones.

import { parseArgs } from 'node:util'

export interface StoreArguments {
  /** A data directory; undefined: as the settings say. */
  readonly data: string | undefined
  /** A settings file beside the environment. */
  readonly config: string | undefined
  /** What is missing is put back, where a command can. */
  readonly repair: boolean
  /** Where to, for a command that writes a directory. */
  readonly to: string | undefined
}

export interface ArgumentKinds {
  /** Default: true. */
  readonly mayConfigure?: boolean
  /** Default: false. */
  readonly mayRepair?: boolean
  /** Default: false; then it must be named. */
  readonly hasTarget?: boolean
}

/** Exit code for wrong arguments: EX_USAGE of sysexits. */
export const EXIT_USAGE = 64
const EXIT_ASKED = 0

/** What was given, or the exit code once the usage was printed. */
export function storeArguments(
  usage: string,
  { mayConfigure = true, mayRepair = false, hasTarget = false }: ArgumentKinds = {},
): StoreArguments | number {
  try {
    const { values } = parseArgs({
      options: {
        data: { type: 'string' },
        help: { type: 'boolean' },
        ...(mayConfigure ? { config: { type: 'string' as const } } : null),
        ...(mayRepair ? { repair: { type: 'boolean' as const } } : null),
        ...(hasTarget ? { to: { type: 'string' as const } } : null),
      },
    })
    const { data, config, help, repair, to } = values as Partial<StoreArguments> & typeof values
    if (help === true) {
      console.log(usage)
      return EXIT_ASKED
    }
    if (hasTarget && !to) throw new Error('--to DIR is missing: where the backup is to be')
    return { data, config, repair: repair === true, to }
  } catch (error) {
    console.error((error as Error).message)
    console.error(usage)
    return EXIT_USAGE
  }
}
