// The command line of `kontor`. Results go to standard output, all else to standard error.

import { Command, CommanderError } from 'commander'
import { EXIT, EXIT_HELP, Failure } from './failure.ts'
import { addIamCommands } from './iam-commands.ts'
import { Profiles } from './profiles.ts'
import { addSessionCommands } from './session-commands.ts'
import type { World } from './world.ts'

const ENVIRONMENT = `
Environment:
  KONTOR_URL, KONTOR_TOKEN   a node and a token in place of a profile
  KONTOR_PROFILE             a profile in place of the one in use
  KONTOR_CLIENT_SECRET       for login --client-secret
  KONTOR_CONFIG_DIR          where profiles are kept; default ~/.config/kontor
  NO_COLOR                   no colours
`

/** Runs one command; returns the exit code. */
export async function run(args: readonly string[], world: World): Promise<number> {
  const program = programOf(world)
  try {
    await program.parseAsync(args, { from: 'user' })
    return EXIT.done
  } catch (error) {
    if (error instanceof CommanderError) {
      return error.exitCode === 0 ? EXIT.done : EXIT.wrongArguments
    }
    if (!(error instanceof Failure)) throw error
    world.say(`${error.message}\n`)
    return error.exitCode
  }
}

function programOf(world: World): Command {
  const program = new Command('kontor')
  program
    .description('Kontor from a terminal: sign in, and see to people, applications and roles.')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => world.out(text),
      writeErr: (text) => world.say(text),
      getOutHasColors: () => world.outIsTerminal && !world.env['NO_COLOR'],
      getErrHasColors: () => world.sayIsTerminal && !world.env['NO_COLOR'],
    })
    .showHelpAfterError('(more: --help)')
    .addHelpText('after', ENVIRONMENT + EXIT_HELP)
  const parts = { world, profiles: new Profiles(world) }
  addSessionCommands(program, parts)
  addIamCommands(program, parts)
  return program
}
