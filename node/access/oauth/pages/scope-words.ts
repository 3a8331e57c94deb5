// Scopes as people read them on the page on which they agree: what an application will be able to
// do, an entry of permission each. Source: CONTRACT 1.14, specification "Scopes and ACEs".

import { formatAce, parseScope } from '../../../../protocol/ace.ts'
import type { Ace } from '../../../../protocol/ace.ts'

export interface ScopeWords {
  readonly words: string
  /** As it is written; null: nothing was asked for in particular. */
  readonly ace: string | null
}

/** What each resource holds. */
const THINGS: Readonly<Record<string, string>> = {
  graph: 'records',
  reactor: 'reactors',
  components: 'components',
  jobs: 'jobs',
  'job-definitions': 'job definitions',
  ingresses: 'ingresses',
  rules: 'business rules',
  sendings: 'e-mails that are sent',
  registry: 'settings of the shop',
  'iam/principals': 'people and their rights',
  'iam/clients': 'applications and their rights',
  'iam/roles': 'roles',
  apps: 'apps',
  files: 'files',
  enums: 'lists of values',
  inventories: 'inventories',
  channels: 'sales channels',
  events: 'events',
  signals: 'messages about the health of the system',
  cluster: 'the state of the servers',
  me: 'your own account',
}

const VERBS: Readonly<Record<string, string>> = {
  read: 'See',
  write: 'Change',
  delete: 'Delete',
  schedule: 'Schedule',
  invoke: 'Run',
  http: 'Call',
  query: 'Find and count',
  explain: 'See how searches are answered of',
  'update-search': 'Build the search anew of',
  subscribe: 'Be told of',
}

/** An entry in words for each of a scope; of none: everything. */
export function scopeInWords(scope: string | null): readonly ScopeWords[] {
  if (scope === null) return [{ words: EVERYTHING, ace: null }]
  const scopes = parseScope(scope)
  if (!scopes.ok) return [{ words: scope, ace: null }]
  return scopes.aces.map((ace) => ({ words: wordsOf(ace), ace: formatAce(ace) }))
}

/** What nobody guesses from the name of the resource (CONTRACT 1.8 "Me"). */
const ONESELF: Readonly<Record<string, string>> = {
  read: 'See your name, your e-mail address, your rights, and where you are signed in',
  write: 'Change your password, make and delete tokens in your name, and sign you out elsewhere',
  '*': 'See and change your own account: your rights, your password, your tokens and sign-ins',
}

const EVERYTHING = 'Everything that you may do yourself, now and later'

function wordsOf(ace: Ace): string {
  const [first, ...rest] = ace.path
  if (first === undefined) return EVERYTHING
  if (first === 'actors') return actorWords(ace.permission, rest)
  if (first === 'graph') return graphWords(ace, rest)
  if (first === 'me') return ONESELF[ace.permission] ?? `${ace.permission} ${THINGS[first]}`
  const isTwo = first === 'iam'
  const resource = isTwo ? `${first}/${rest[0] ?? ''}` : first
  const below = isTwo ? rest.slice(1) : rest
  const thing = `${THINGS[resource] ?? resource}${below.length > 0 ? `: ${below.join('/')}` : ''}`
  if (ace.permission === '*') return `See and change ${thing}`
  return `${VERBS[ace.permission] ?? ace.permission} ${thing}`
}

/** `actors/order:create`: a message to an actor, or all of them. */
function actorWords(permission: string, [type, id]: readonly string[]): string {
  const whom =
    type === undefined ? 'records of every kind' : `${plural(type)}${id ? ` (${id})` : ''}`
  if (permission === '*') return `Create and change ${whom}`
  if (permission === 'create') return `Create ${whom}`
  if (permission === 'delete') return `Delete ${whom}`
  return `Send “${permission}” to ${whom}`
}

function graphWords({ attribute, permission }: Ace, [node, id]: readonly string[]): string {
  const what = node === undefined ? 'records of every kind' : plural(node)
  const which = id === undefined ? what : `${what} (${id})`
  const [name, ...field] = permission.split(':')
  const only = attribute === null ? '' : `, those of your own “${attribute}” alone`
  if (name === '*') return `Find and read ${which}${only}`
  if (name !== 'field') return `${VERBS[name!] ?? name} ${which}${only}`
  return field.length === 0 ? `Read all of ${which}` : `Read “${field.join('.')}” of ${which}`
}

/** `orderLine` as people say it: order lines. */
function plural(type: string): string {
  const words = type
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replaceAll('.', ' ')
    .toLowerCase()
  if (/(s|x|ch|sh)$/.test(words)) return `${words}es`
  return /[^aeiou]y$/.test(words) ? `${words.slice(0, -1)}ies` : `${words}s`
}
