// `kontor login`, `logout`, `whoami`, `profiles`: who a command is.

import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { type Command, InvalidArgumentError } from 'commander'
import { EXIT, Failure } from './failure.ts'
import { listen, paste } from './loopback.ts'
import { NO_URL, nodeUrl, urlOfEnvironment } from './node-url.ts'
import { NAME, type Profile } from './profiles.ts'
import { type Common, type Parts, callerOf, outputOf, withCommon } from './settings.ts'
import { SignIn } from './sign-in.ts'
import type { World } from './world.ts'

interface LoginOptions {
  readonly url?: string
  readonly clientId?: string
  readonly clientSecret?: boolean
  readonly bootstrap?: boolean
  readonly scope?: string
  readonly browser: boolean
  readonly profile: string
}

/** What a node calls itself where no setting says otherwise: another name of it is refused. */
export const DEFAULT_URL = 'http://127.0.0.1:8080'

export function addSessionCommands(program: Command, parts: Parts): void {
  const { profiles, world } = parts
  program
    .command('login')
    .description('sign in to a node, as a person in a browser or as an application')
    .option('--url <url>', `the node (default: KONTOR_URL, else ${DEFAULT_URL})`, urlOf)
    .option('--client-id <id>', 'the application to sign in with')
    .option(
      '--client-secret',
      'sign in as the application itself: its secret is asked for, or read',
    )
    .option(
      '--bootstrap',
      "sign in with the secret of a node's first start (./data/bootstrap.json)",
    )
    .option('--scope <aces>', 'no more than these, with spaces between them')
    .option('--no-browser', 'there is none here: an address is shown, and one is pasted')
    .option('-p, --profile <name>', 'what to call it', nameOf, 'default')
    .addHelpText('after', LOGIN_HELP)
    .action(async (options: LoginOptions) => {
      const profile = await signedIn(world, options)
      await profiles.put(options.profile, profile, true)
      world.say(`Signed in to ${profile.url} as profile "${options.profile}".\n`)
    })
  program
    .command('logout')
    .description('end the session of a profile, and forget it')
    .option('-p, --profile <name>', 'which; default: the one in use')
    .action(async ({ profile: wanted }: { readonly profile?: string }) => {
      const { name, profile } = await profiles.find(wanted)
      // Forgotten here even where the node is away: then it ends by itself.
      const failure = await new SignIn(world).revoke(profile).then(
        () => null,
        (error: unknown) => error as Failure,
      )
      await profiles.remove(name)
      if (failure !== null) throw failure
      world.say(`Signed out of ${profile.url}.\n`)
    })
  withCommon(program.command('whoami').description('who calls, and what this sign-in may')).action(
    async (options: Common) => {
      const { body } = await (await callerOf(parts, options)).call('GET', '/resources/me')
      outputOf(parts, options).one(body)
    },
  )
  addProfileCommands(program, parts)
}

const LOGIN_HELP = `
People sign in with an application that is registered for it, once for all of them:
  kontor login --bootstrap
  kontor iam clients create --name "Kontor CLI" --cli
  kontor login --client-id <the clientId of the answer>
`

function addProfileCommands(program: Command, parts: Parts): void {
  const { profiles } = parts
  const command = program.command('profiles').description('sign-ins that are kept here')
  withCommon(command.command('list', { isDefault: true }).description('all of them')).action(
    async (options: Common) => {
      const { current, profiles: all } = await profiles.all()
      const rows = Object.entries(all).map(([name, { url, clientId, clientSecret }]) => {
        const as = clientSecret === undefined ? 'person' : 'application'
        return { name, url, clientId, as, isCurrent: name === current }
      })
      outputOf(parts, options).list(
        rows,
        [
          ['', ({ isCurrent }) => (isCurrent ? '*' : ' ')],
          ['NAME', ({ name }) => name],
          ['URL', ({ url }) => url],
          ['AS', ({ as }) => as],
        ],
        rows,
      )
    },
  )
  command
    .command('use <name>')
    .description('the one that commands go by')
    .action((name: string) => profiles.use(name))
}

async function signedIn(world: World, options: LoginOptions): Promise<Profile> {
  const { url = urlOfEnvironment(world) ?? DEFAULT_URL, scope } = options
  warnOfPlainHttp(world, url)
  const signIn = new SignIn(world)
  const wish = { url, ...(scope !== undefined && { scope }) }
  if (options.bootstrap === true) {
    const { clientId, clientSecret } = await bootstrapCredentials(world)
    return signIn.asClient({ ...wish, clientId }, clientSecret)
  }
  const { clientId } = options
  if (clientId === undefined) {
    throw new Failure(`--client-id is missing\n${LOGIN_HELP}`, EXIT.wrongArguments)
  }
  if (options.clientSecret === true) {
    const told = world.env['KONTOR_CLIENT_SECRET'] ?? (await world.ask('Client secret: ', true))
    const secret = told.trim()
    if (secret === '') {
      throw new Failure(
        'the client secret is empty: type it, or set KONTOR_CLIENT_SECRET',
        EXIT.wrongArguments,
      )
    }
    return signIn.asClient({ ...wish, clientId }, secret)
  }
  const loopback = await listen()
  try {
    const visit = async (address: string): Promise<URL> => {
      if (!options.browser || !(await world.openBrowser(address))) return paste(world, address)
      world.say(`Sign in in the browser. If none has opened:\n\n  ${address}\n\n`)
      return loopback.back
    }
    const { redirectUri } = loopback
    return await signIn.asPerson({ ...wish, clientId, redirectUri, visit })
  } finally {
    loopback.close()
  }
}

function warnOfPlainHttp(world: World, url: string): void {
  const { protocol, hostname } = new URL(url)
  const isLocal = ['localhost', '127.0.0.1', '[::1]'].includes(hostname)
  if (protocol === 'http:' && !isLocal) {
    world.say(`Warning: ${url} is not encrypted; whoever is on the way reads the tokens.\n`)
  }
}

async function bootstrapCredentials(
  world: World,
): Promise<{ readonly clientId: string; readonly clientSecret: string }> {
  const secret = world.env['KONTOR_BOOTSTRAP_SECRET']
  if (secret) return { clientId: 'bootstrap', clientSecret: secret }
  const path = resolve(join(world.env['KONTOR_DATA_DIR'] || './data', 'bootstrap.json'))
  try {
    const { clientId, clientSecret } = JSON.parse(await readFile(path, 'utf8')) as {
      clientId?: unknown
      clientSecret?: unknown
    }
    if (typeof clientId === 'string' && typeof clientSecret === 'string') {
      return { clientId, clientSecret }
    }
    throw new Error('it holds no clientId and clientSecret')
  } catch (error) {
    const why = (error as Error).message
    throw new Failure(`set KONTOR_BOOTSTRAP_SECRET, or run where ${path} can be read: ${why}`)
  }
}

function urlOf(text: string): string {
  const url = nodeUrl(text)
  if (url === null) throw new InvalidArgumentError(NO_URL)
  return url
}

function nameOf(text: string): string {
  if (NAME.test(text)) return text
  throw new InvalidArgumentError('Letters, digits, ".", "_" and "-", 64 at most.')
}
