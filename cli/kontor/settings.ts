// What all commands of `kontor` have in common: the options that stand behind each of them.

import { Option, type Command } from 'commander'
import { Caller } from './caller.ts'
import { FORMATS, Output, type Format } from './output.ts'
import type { Profiles } from './profiles.ts'
import type { World } from './world.ts'

export interface Common {
  readonly profile?: string
  readonly output: Format
}

export interface Parts {
  readonly world: World
  readonly profiles: Profiles
}

export function withCommon(command: Command): Command {
  return command
    .option('-p, --profile <name>', 'as whom; default: KONTOR_PROFILE, or the one in use')
    .addOption(
      new Option('-o, --output <format>', 'how results are written')
        .choices(FORMATS)
        .default('table' satisfies Format),
    )
}

export function callerOf({ world, profiles }: Parts, { profile }: Common): Promise<Caller> {
  return Caller.of(world, profiles, profile)
}

export function outputOf({ world }: Parts, { output }: Common): Output {
  return new Output(world, output)
}
