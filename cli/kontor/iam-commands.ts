// `kontor iam`: people, applications and roles. Source: CONTRACT 1.8.

import type { Command } from 'commander'
import type { Caller } from './caller.ts'
import { EXIT, Failure } from './failure.ts'
import { CALLBACK } from './loopback.ts'
import { type Common, type Parts, callerOf, outputOf, withCommon } from './settings.ts'

const IAM = '/resources/iam'
const PAGE = 100

interface Kind {
  /** As it stands in paths and answers. */
  readonly plural: 'principals' | 'clients' | 'roles'
  readonly one: string
  readonly columns: readonly (readonly [string, (row: Shown) => unknown])[]
}

interface Shown {
  readonly id?: string
  readonly key?: string
  readonly description?: string
  readonly properties?: { readonly name?: string; readonly email?: string }
  readonly roles?: readonly string[]
  readonly suspendedAt?: string | null
  readonly lastActiveAt?: string | null
  readonly acl?: { readonly entries: readonly { resource: string; permission: string }[] }
}

const NAMED = [
  ['ID', ({ id }: Shown) => id],
  ['NAME', ({ properties }: Shown) => properties?.name],
] as const
const STATE = [
  ['ROLES', ({ roles }: Shown) => roles],
  ['SUSPENDED', ({ suspendedAt }: Shown) => suspendedAt],
  ['LAST ACTIVE', ({ lastActiveAt }: Shown) => lastActiveAt],
] as const

const PRINCIPALS: Kind = {
  plural: 'principals',
  one: 'principal',
  columns: [...NAMED, ['E-MAIL', ({ properties }) => properties?.email], ...STATE],
}
const CLIENTS: Kind = { plural: 'clients', one: 'client', columns: [...NAMED, ...STATE] }
const ROLES: Kind = {
  plural: 'roles',
  one: 'role',
  columns: [
    ['KEY', ({ key }) => key],
    ['DESCRIPTION', ({ description }) => description],
    ['ENTRIES', ({ acl }) => acl?.entries.map((one) => `${one.resource}:${one.permission}`)],
  ],
}

export function addIamCommands(program: Command, parts: Parts): void {
  const iam = program.command('iam').description('people, applications and roles')
  const people = addKind(iam, parts, PRINCIPALS)
  addPeople(people, parts)
  addIdentity(people, parts, PRINCIPALS)
  const clients = addKind(iam, parts, CLIENTS)
  addClients(clients, parts)
  addIdentity(clients, parts, CLIENTS)
  addRoles(addKind(iam, parts, ROLES), parts)
}

/** What all three have. */
function addKind(iam: Command, parts: Parts, kind: Kind): Command {
  const { plural, one, columns } = kind
  const command = iam.command(plural).description(`list, show, make, change and delete ${plural}`)
  const list = command.command('list').description(`all ${plural}`)
  list.option('--search <text>', 'whose name holds this')
  if (kind !== ROLES) list.option('--role-prefix <text>', 'with a role that begins so')
  withCommon(list).action(
    async (options: Common & { readonly search?: string; readonly rolePrefix?: string }) => {
      const { search, rolePrefix } = options
      const rows = await allOf(await callerOf(parts, options), plural, { search, rolePrefix })
      outputOf(parts, options).list(rows, columns, rows)
    },
  )
  withCommon(command.command('show <id>').description(`one ${one}`)).action(
    async (id: string, options: Common) => {
      const { body } = await (await callerOf(parts, options)).call('GET', pathOf(plural, id))
      outputOf(parts, options).one(body)
    },
  )
  withCommon(command.command('delete <id>').description(`delete a ${one}`)).action(
    async (id: string, options: Common) => {
      await (await callerOf(parts, options)).call('DELETE', pathOf(plural, id))
      outputOf(parts, options).done(`Deleted ${id}.`)
    },
  )
  return command
}

/** What people and applications have. */
function addIdentity(command: Command, parts: Parts, { plural, one }: Kind): void {
  const set = command.command('roles <id> [roles...]')
  withCommon(set.description(`give a ${one} these roles, and no others`)).action(
    async (id: string, roles: readonly string[], options: Common) => {
      const caller = await callerOf(parts, options)
      const path = `${pathOf(plural, id)}/roles`
      outputOf(parts, options).one((await caller.call('PUT', path, { body: { roles } })).body)
    },
  )
  for (const [name, method, told] of [
    ['suspend', 'PUT', 'Suspended'],
    ['resume', 'DELETE', 'No longer suspended:'],
  ] as const) {
    const what =
      name === 'suspend' ? `end its sessions, and keep a ${one} out` : `let a ${one} in again`
    withCommon(command.command(`${name} <id>`).description(what)).action(
      async (id: string, options: Common) => {
        await (await callerOf(parts, options)).call(method, `${pathOf(plural, id)}/suspend`)
        outputOf(parts, options).done(`${told} ${id}.`)
      },
    )
  }
}

function addPeople(command: Command, parts: Parts): void {
  const create = command
    .command('create')
    .description('make a person, with a temporary password')
    .requiredOption('--name <name>', 'what to call them')
    .requiredOption('--email <address>', 'what they sign in with')
    .option('--role <key...>', 'roles')
  withCommon(create).action(
    async (options: Common & { name: string; email: string; role?: readonly string[] }) => {
      const caller = await callerOf(parts, options)
      const { name, email, role: roles = [] } = options
      const body = { properties: { name, email }, roles }
      const made = (await caller.call('POST', `${IAM}/principals`, { body })).body as Shown
      const password = await reset(caller, made.id!)
      outputOf(parts, options).one({ ...made, ...password })
    },
  )
  withCommon(
    command.command('reset-password <id>').description('make a temporary password'),
  ).action(async (id: string, options: Common) => {
    outputOf(parts, options).one(await reset(await callerOf(parts, options), id))
  })
}

async function reset(caller: Caller, id: string): Promise<object> {
  return (await caller.call('POST', `${pathOf('principals', id)}/password/reset`)).body as object
}

interface NewClient extends Common {
  readonly name: string
  readonly cli?: boolean
  readonly public?: boolean
  readonly redirect?: readonly string[]
  readonly grant?: readonly string[]
  readonly scope?: string
  readonly role?: readonly string[]
}

function addClients(command: Command, parts: Parts): void {
  const create = command
    .command('create')
    .description('register an application; its secret is shown this once')
    .requiredOption('--name <name>', 'what people see when they sign in with it')
    .option('--cli', 'one for this program: without secret, over a port of the own machine')
    .option('--public', 'without secret: it runs where people could read it')
    .option('--redirect <uri...>', 'where sign-ins go back to')
    .option('--grant <type...>', 'authorization_code, client_credentials, refresh_token')
    .option(
      '--scope <aces>',
      'what its tokens have at most; for people a must where you are no owner',
    )
    .option('--role <key...>', 'roles, for client_credentials')
  withCommon(create).action(async (options: NewClient) => {
    const caller = await callerOf(parts, options)
    const { role: roles = [] } = options
    const answer = await caller.call('POST', '/iam/clients', { body: registrationOf(options) })
    const made = answer.body as { readonly clientId: string }
    if (roles.length > 0) {
      const path = `${pathOf('clients', made.clientId)}/roles`
      await caller.call('PUT', path, { body: { roles } })
    }
    outputOf(parts, options).one({ ...made, roles })
  })
  const secrets = command.command('secrets').description('secrets of an application')
  withCommon(secrets.command('create <id>').description('another one, shown this once')).action(
    async (id: string, options: Common) => {
      const caller = await callerOf(parts, options)
      const path = `${pathOf('clients', id)}/secrets`
      outputOf(parts, options).one((await caller.call('POST', path, { body: {} })).body)
    },
  )
  withCommon(secrets.command('delete <id> <secretId>').description('one of them')).action(
    async (id: string, secretId: string, options: Common) => {
      const path = `${pathOf('clients', id)}/secrets/${encodeURIComponent(secretId)}`
      await (await callerOf(parts, options)).call('DELETE', path)
      outputOf(parts, options).done(`Deleted ${secretId}.`)
    },
  )
}

function registrationOf(options: NewClient): object {
  const { name, scope } = options
  const isPublic = options.public === true || options.cli === true
  const forPeople = ['authorization_code', 'refresh_token']
  const own = options.cli === true ? [`http://127.0.0.1${CALLBACK}`] : []
  return {
    name,
    redirect_uris: options.redirect ?? own,
    grant_types: options.grant ?? (isPublic ? forPeople : ['client_credentials']),
    ...(isPublic && { token_endpoint_auth_method: 'none' }),
    ...(scope !== undefined && { scope }),
  }
}

function addRoles(command: Command, parts: Parts): void {
  const set = command
    .command('set <key> [entries...]')
    .description('make a role, or change it: its entries, each as resource:permission')
    .option('--description <text>', 'what it is for')
  withCommon(set).action(
    async (key: string, entries: readonly string[], options: Common & { description?: string }) => {
      const caller = await callerOf(parts, options)
      const found = await readRole(caller, key)
      const body = {
        description: options.description ?? found?.role.description ?? '',
        acl: { entries: entries.map(entryOf) },
      }
      const headers: Record<string, string> = found === null ? {} : { 'If-Match': found.etag }
      await caller.call('PUT', pathOf('roles', key), { body, headers })
      outputOf(parts, options).done(`${found === null ? 'Made' : 'Changed'} ${key}.`)
    },
  )
}

async function readRole(
  caller: Caller,
  key: string,
): Promise<{ readonly role: Shown; readonly etag: string } | null> {
  try {
    const { body, etag } = await caller.call('GET', pathOf('roles', key))
    return { role: body as Shown, etag: etag ?? '*' }
  } catch (error) {
    if (error instanceof Failure && error.exitCode === EXIT.notFound) return null
    throw error
  }
}

function entryOf(text: string): { readonly resource: string; readonly permission: string } {
  const at = text.indexOf(':')
  if (at > 0) return { resource: text.slice(0, at), permission: text.slice(at + 1) }
  throw new Failure(`"${text}" is no entry: resource:permission`, EXIT.wrongArguments)
}

function pathOf(plural: Kind['plural'], id: string): string {
  return `${IAM}/${plural}/${encodeURIComponent(id)}`
}

/** All pages of a list. */
async function allOf(
  caller: Caller,
  plural: Kind['plural'],
  query: Readonly<Record<string, string | undefined>>,
): Promise<readonly Shown[]> {
  const rows: Shown[] = []
  for (let after: string | null = null; ;) {
    const asked = new URLSearchParams({ limit: String(PAGE) })
    for (const [name, value] of Object.entries({ ...query, after: after ?? undefined })) {
      if (value !== undefined) asked.set(name, value)
    }
    const { body } = await caller.call('GET', `${IAM}/${plural}?${asked.toString()}`)
    const page = body as Readonly<Record<string, unknown>> & { readonly lastCursor: string | null }
    const found = page[plural] as readonly Shown[]
    rows.push(...found)
    if (found.length < PAGE || page.lastCursor === null) return rows
    after = page.lastCursor
  }
}
