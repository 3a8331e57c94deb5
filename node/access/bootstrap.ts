// The first identity: a store with none gets the client `bootstrap`, which may do everything. An
// empty store has no other way to its first token. Source: CONTRACT 0 "Bootstrap".
//
// A secret from the settings is the client's bootstrap secret "when set": at a start with another
// one it replaces the former bootstrap secret (tokens that are out stay good; secrets issued later
// too). Who sets the process's environment owns its store, so this is how a lost secret is mended.
// A client `bootstrap` that was deleted is not made again while other identities exist.

import { chmod, mkdir, open, readFile, rename, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { ActorSystem, SystemEntry } from '../../cluster/actor-system.ts'
import type { World } from '../../cluster/clock.ts'
import { LIMITS } from '../../config/limits.ts'
import { uuidMaker } from '../../protocol/ids.ts'
import { etagOf, failureOf, putRequest } from '../system-actor.ts'
import type { WriteCondition } from '../system-actor.ts'
import { BOOTSTRAP_CLIENT } from './client.ts'
import type { Client } from './client.ts'
import { OWNER_ROLE } from './role.ts'
import type { Secrets } from './secret.ts'

export interface BootstrapOptions {
  readonly actorSystem: ActorSystem
  readonly world: World
  readonly secrets: Secrets
  readonly dataDir: string
  /** KONTOR_BOOTSTRAP_SECRET, or null. */
  readonly secret: string | null
  /** Shows a text to the operator, once. */
  readonly tell: (text: string) => void
  /** A person reads it as it is told; else it is kept somewhere, which is no place for secrets. */
  readonly isTerminal: boolean
}

/** Makes the first identity where there is none. Throws when the store refuses. */
export async function bootstrap(options: BootstrapOptions): Promise<void> {
  const { system } = options.actorSystem
  if (system.size('client') === 0 && system.size('principal') === 0) {
    await createFirst(options)
    return
  }
  const client = system.get<Client>('client', BOOTSTRAP_CLIENT)
  if (client !== null && options.secret !== null) await replaceSecret(options, client)
}

async function createFirst(options: BootstrapOptions): Promise<void> {
  const { secret, secrets } = options
  const path = filePath(options)
  // Of one in the file nobody knows who wrote it there.
  const chosen = secret ?? (await readSecret(path))
  const own = chosen ?? secrets.make()
  // The file comes before the commit: a crash in between leaves a secret to go on with, never a
  // client whose secret nobody knows.
  if (secret === null) await writeSecret(options, path, own)
  const hash = chosen === null ? secrets.hashMade(own) : await secrets.hashChosen(own)
  const now = new Date(options.world.clock.nowMs()).toISOString()
  const client: Client = {
    properties: {
      name: 'Bootstrap',
      description: 'Made at the first start; use it to make other clients, then delete it.',
      redirectUris: [],
      grantTypes: ['client_credentials'],
    },
    roles: [OWNER_ROLE],
    secrets: [bootstrapSecret(options, hash)],
    isSystem: false,
    createdAt: now,
    suspendedAt: null,
  }
  const won = await write(options, client, { ifAbsent: true })
  if (secret !== null) return
  if (won) {
    const shown = options.isTerminal
      ? `client_secret ${own} (also in ${resolve(path)})`
      : `secret in ${resolve(path)}`
    options.tell(`First start: client_id ${BOOTSTRAP_CLIENT}, ${shown}`)
  } else await rm(path, { force: true })
}

async function replaceSecret(
  options: BootstrapOptions,
  client: SystemEntry<Client>,
): Promise<void> {
  const former = client.value.secrets.filter((one) => one.source === 'bootstrap')
  const hashes = former.map((one) => one.hash)
  if (former.length > 0 && (await options.secrets.matches([options.secret!], hashes))) return
  const issued = client.value.secrets.filter((one) => one.source !== 'bootstrap')
  const hash = await options.secrets.hashChosen(options.secret!)
  const secrets = [...issued, bootstrapSecret(options, hash)]
  const condition = { ifMatch: [etagOf(client.version)] }
  if (!(await write(options, { ...client.value, secrets }, condition))) return
  await rm(filePath(options), { force: true })
  options.tell(
    `The secret of client ${BOOTSTRAP_CLIENT} is now the one in the settings; ` +
      'its former bootstrap secret no longer works',
  )
}

function bootstrapSecret({ world }: BootstrapOptions, hash: string): Client['secrets'][number] {
  const now = world.clock.nowMs()
  return {
    secretId: uuidMaker(world.random)(now),
    hash,
    source: 'bootstrap',
    createdAt: new Date(now).toISOString(),
    expiresAt: null,
  }
}

/** False when another member of the cluster was first. */
async function write(
  { actorSystem }: BootstrapOptions,
  value: Client,
  condition: WriteCondition,
): Promise<boolean> {
  const body = { value, ...condition }
  const origin = { by: 'system', trace: 'bootstrap' }
  const reply = await actorSystem.ask(putRequest('client', BOOTSTRAP_CLIENT, body, origin))
  const error = failureOf(reply)
  if (error === null) return true
  if (error.code === 'CONFLICT') return false
  throw new Error(`the client ${BOOTSTRAP_CLIENT} could not be written: ${error.message}`)
}

function filePath(options: BootstrapOptions): string {
  return join(options.dataDir, 'bootstrap.json')
}

/** The secret of a file that an unfinished first start left; null: there is none to use. */
async function readSecret(path: string): Promise<string | null> {
  try {
    const content = JSON.parse(await readFile(path, 'utf8')) as { clientSecret?: unknown }
    const secret = content.clientSecret
    const { secretCharsMin: min, secretCharsMax: max } = LIMITS.access
    const isUsable = typeof secret === 'string' && secret.length >= min && secret.length <= max
    return isUsable ? secret : null
  } catch (error) {
    if (error instanceof SyntaxError) return null
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

/** Written aside and renamed: whoever reads the file reads all of it. */
async function writeSecret(
  { dataDir }: BootstrapOptions,
  path: string,
  clientSecret: string,
): Promise<void> {
  await mkdir(dataDir, { recursive: true })
  const aside = `${path}.new`
  const file = await open(aside, 'w', 0o600)
  try {
    await chmod(aside, 0o600)
    await file.writeFile(
      `${JSON.stringify({ clientId: BOOTSTRAP_CLIENT, clientSecret }, null, 2)}\n`,
    )
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(aside, path)
}
