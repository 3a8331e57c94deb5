// Access control entries: their grammar, and the compiled set that answers "may they?". Roles and
// scopes are text that people write; stations ask `acl.covers('actors/order', 'create')` on every
// request. Source: specification "Scopes and ACEs", CONTRACT 1.14.
//
//   ace        := "*" | "*:*" | [attribute "@"] resource *("/" segment) ":" permission
//   permission := "*" | name *(":" name)            -- sub-names only for graph fields

import { type Attributes, NO_ATTRIBUTES } from './attributes.ts'
import {
  type Ace,
  type AceResult,
  actorAce,
  FIELD_NAMES_MAX,
  graphAce,
  NAME,
  SEGMENT,
  wrong,
} from './ace-forms.ts'
import { RESOURCES, resourceOf, WHOLE } from './ace-resources.ts'
import { GrantedPlace } from './granted-place.ts'

export type { Ace } from './ace-forms.ts'

/** Bounds of entries and of their compiled sets; part of ACE_LIMITS. */
export const ACE_LIMITS = {
  aceCharsMax: 1_024,
  /** Entries of one scope. */
  acesMax: 1_000,
  /** Answers that one compiled set remembers. */
  aclAnswersMax: 4_096,
  /** Characters of a question whose answer is remembered: callers choose paths and types. */
  aclQuestionCharsMax: 256,
} as const

const ATTRIBUTE = /^([^@:/]+)@/

/** Reads one entry. A reason names what is wrong and what would be right. */
export function parseAce(text: string): AceResult {
  if (text.length > ACE_LIMITS.aceCharsMax) {
    return wrong(`an ACE has at most ${ACE_LIMITS.aceCharsMax} characters`)
  }
  if (text === '*' || text === '*:*') {
    return { ok: true, ace: { attribute: null, path: [], permission: '*' } }
  }
  const attribute = ATTRIBUTE.exec(text)?.[1] ?? null
  const rest = attribute === null ? text : text.slice(attribute.length + 1)
  const colon = rest.indexOf(':')
  if (colon < 0) {
    return wrong(
      `"${text}" names no permission: write <resource>:<permission>, ` +
        'for example registry:read',
    )
  }
  return checkAce(text, attribute, rest.slice(0, colon).split('/'), rest.slice(colon + 1))
}

function checkAce(
  text: string,
  attribute: string | null,
  segments: readonly string[],
  permission: string,
): AceResult {
  const resource = resourceOf(segments)
  if (resource === null) {
    return wrong(
      `"${text}" names no known resource; resources are ` +
        `${Object.keys(RESOURCES).join(', ')}, and *:* for all`,
    )
  }
  if (!segments.every((segment) => SEGMENT.test(segment))) {
    return wrong(
      `"${text}" has a path segment that is empty or holds a space, a colon or an ` +
        'asterisk; leave the segment out to cover all below',
    )
  }
  if (WHOLE.has(resource) && segments.length > 1) {
    return wrong(`"${text}" has a path below ${resource}, which is granted whole: ${resource}:...`)
  }
  const known = RESOURCES[resource]!
  const [name, ...sub] = permission.split(':') as [string, ...string[]]
  const fits = known === null ? NAME.test(name) : known.includes(name)
  if (name !== '*' && !fits) {
    return wrong(
      known === null
        ? `"${text}" needs a message type as its permission, or *`
        : `"${text}" names no permission of ${resource}: it has ${known.join(', ')} and *`,
    )
  }
  if (sub.length > 0 && !(resource === 'graph' && name === 'field')) {
    return wrong(`"${text}" has sub-names behind ${name}; only graph fields have them`)
  }
  if (sub.length > FIELD_NAMES_MAX || !sub.every((part) => SEGMENT.test(part))) {
    return wrong(`"${text}" should name a field as field[:<field>[:<sub-field>]]`)
  }
  if (resource === 'graph') return graphAce(text, { attribute, path: segments, permission })
  if (attribute !== null) {
    return wrong(`"${text}" has an attribute; only graph[/<node type>]:query may have one`)
  }
  if (resource === 'actors') return actorAce(text, { attribute, path: segments, permission })
  return { ok: true, ace: { attribute, path: segments, permission } }
}

/** The text of an entry; `parseAce` reads it back to the same. */
export function formatAce(ace: Ace): string {
  const attribute = ace.attribute === null ? '' : `${ace.attribute}@`
  return `${attribute}${ace.path.length === 0 ? '*' : ace.path.join('/')}:${ace.permission}`
}

export type ScopeResult =
  | { readonly ok: true; readonly aces: readonly Ace[] }
  | { readonly ok: false; readonly reason: string }

/** Reads a space-separated list of entries (RFC 6749 3.3). */
export function parseScope(text: string): ScopeResult {
  const aces = new Map<string, Ace>()
  for (const part of text.split(' ')) {
    if (part === '') continue
    const parsed = parseAce(part)
    if (!parsed.ok) return parsed
    aces.set(formatAce(parsed.ace), parsed.ace)
    if (aces.size > ACE_LIMITS.acesMax) {
      return { ok: false, reason: `a scope has at most ${ACE_LIMITS.acesMax} ACEs` }
    }
  }
  return { ok: true, aces: [...aces.values()] }
}

/** What one list of entries grants of the nodes of a type. */
export interface NodeGrant {
  readonly all: boolean
  /** Ids of single nodes. */
  readonly ids: readonly string[]
  /** Attributes by which nodes are seen, if their type has them as fields. */
  readonly attributes: readonly string[]
}

const isAbove = (ace: Ace, path: readonly string[]): boolean =>
  ace.path.every((segment, i) => segment === path[i])

/** Room for the answers of several sets: what all of them remember is bounded together. */
export class AnswerRoom {
  used = 0
  readonly #max: number

  constructor(max: number) {
    this.#max = max
  }

  get isFull(): boolean {
    return this.used >= this.#max
  }
}

/**
 * What somebody may do: a set of entries, compiled. Answers are remembered, so that the questions
 * of the hot path cost two map look-ups. Never changes; a changed role makes a new one.
 */
export class Acl {
  /** True for the owner: every resource and permission. */
  readonly everything: boolean
  /** The entries as granted; of a narrowed one, those asked for. */
  readonly aces: readonly Ace[]
  /** What the identity is said to be: what attribute entries go by. */
  readonly attributes: Attributes
  readonly #root = new GrantedPlace()
  readonly #base: Acl | null
  readonly #answers = new Map<string, Map<string, boolean>>()
  #remembered = 0
  #room = new AnswerRoom(ACE_LIMITS.aclAnswersMax)
  #text: string | null = null

  constructor(
    aces: readonly Ace[],
    base: Acl | null = null,
    attributes: Attributes = base?.attributes ?? NO_ATTRIBUTES,
  ) {
    this.aces = aces
    this.attributes = attributes
    this.#base = base
    for (const ace of aces) if (ace.attribute === null) this.#grant(ace)
    this.everything = this.#root.all && (base === null || base.everything)
  }

  /** Its own entries and those of the sets that it narrows: what all lists grant is granted. */
  get lists(): readonly (readonly Ace[])[] {
    return [this.aces, ...(this.#base?.lists ?? [])]
  }

  /** All that it goes by: two of the same text grant the same. */
  get text(): string {
    const own = (): string =>
      JSON.stringify([this.aces.map(formatAce), this.attributes, this.#base?.text])
    return (this.#text ??= own())
  }

  /**
   * The entries on the graph, list by list: what all lists grant is granted here. For members that
   * have to answer as this set would (`aclOfLists`).
   */
  get graphLists(): readonly (readonly string[])[] {
    const isGraph = ({ path }: Ace): boolean => path.length === 0 || path[0] === 'graph'
    return [this.aces.filter(isGraph).map(formatAce), ...(this.#base?.graphLists ?? [])]
  }

  /** The attributes that these entries go by; what else the identity is doesn't travel. */
  get graphAttributes(): Attributes {
    const used = this.aces.flatMap(({ attribute }) =>
      attribute !== null && Object.hasOwn(this.attributes, attribute)
        ? [[attribute, this.attributes[attribute]!] as const]
        : [],
    )
    return { ...Object.fromEntries(used), ...this.#base?.graphAttributes }
  }

  /** What each list grants of the nodes of a type: seen is what every one of them opens. */
  graphGrants(node: string): readonly NodeGrant[] {
    const path = ['graph', node]
    const place = this.#root.children.get('graph')?.children.get(node)
    const own: NodeGrant = {
      all: this.#evaluate(path, 'query'),
      ids: Array.from(place?.children ?? []).flatMap(([id, at]) => (at.grants('query') ? id : [])),
      attributes: this.aces.flatMap((ace) =>
        ace.attribute !== null && isAbove(ace, path) ? ace.attribute : [],
      ),
    }
    return [own, ...(this.#base?.graphGrants(node) ?? [])]
  }

  #grant(ace: Ace): void {
    let place = this.#root
    for (const segment of ace.path) {
      let child = place.children.get(segment)
      if (!child) place.children.set(segment, (child = new GrantedPlace()))
      place = child
    }
    if (ace.permission === '*') place.all = true
    else place.permissions.add(ace.permission)
  }

  /**
   * May they do `permission` on `resource` (`actors/order`, `registry/channels/web`)? An entry on
   * a resource covers all below it.
   */
  covers(resource: string, permission: string): boolean {
    if (this.everything) return true
    const known = this.#answers.get(resource)?.get(permission)
    return known === undefined ? this.#learn(resource, permission) : known
  }

  #learn(resource: string, permission: string): boolean {
    const answer = this.#decide(resource.split('/'), permission)
    // What is longer is nobody's usual question.
    if (resource.length + permission.length > ACE_LIMITS.aclQuestionCharsMax) return answer
    if (this.#remembered >= ACE_LIMITS.aclAnswersMax) {
      this.#answers.clear()
      this.#room.used -= this.#remembered
      this.#remembered = 0
    }
    if (this.#room.isFull) return answer
    let answers = this.#answers.get(resource)
    if (!answers) this.#answers.set(resource, (answers = new Map()))
    answers.set(permission, answer)
    this.#remembered++
    this.#room.used++
    return answer
  }

  /** From now on its answers count with those of other sets: none is remembered without room. */
  remembersIn(room: AnswerRoom): this {
    this.#room.used -= this.#remembered
    room.used += this.#remembered
    this.#room = room
    return this
  }

  /** Every list has to grant it. */
  #decide(path: readonly string[], permission: string): boolean {
    if (!this.#evaluate(path, permission)) return false
    return this.#base === null || this.#base.#decide(path, permission)
  }

  #evaluate(path: readonly string[], permission: string): boolean {
    let place: GrantedPlace | undefined = this.#root
    for (const segment of path) {
      if (place.grants(permission)) return true
      place = place.children.get(segment)
      if (!place) return false
    }
    return place.grants(permission)
  }

  /** Answers at hand; never more than ACE_LIMITS.aclAnswersMax. */
  get remembered(): number {
    let count = 0
    for (const answers of this.#answers.values()) count += answers.size
    return count
  }

  /**
   * True when something at, above or below `resource` may grant the permission: whether it is
   * worth finding out which one is meant before refusing. Never false where `covers` is true.
   */
  reaches(resource: string, permission: string): boolean {
    if (this.everything) return true
    if (this.#base !== null && !this.#base.reaches(resource, permission)) return false
    const path = resource.split('/')
    if (this.#evaluate(path, permission)) return true
    let place: GrantedPlace | undefined = this.#root
    for (const segment of path) place = place?.children.get(segment)
    return place?.grantsBelow(permission) ?? false
  }

  /** True when everything that the entry grants is granted here: a scope may not ask for more. */
  coversAce(ace: Ace): boolean {
    if (this.everything) return true
    if (this.#base !== null && !this.#base.coversAce(ace)) return false
    const { attribute } = ace
    if (attribute !== null) {
      const same = this.aces.filter((own) => own.attribute === attribute)
      if (same.some((own) => isAbove(own, ace.path))) return true
    }
    return this.#holds(ace)
  }

  /** Whether this list alone grants all that an entry does, whose attribute doesn't count. */
  #holds({ path, permission }: Ace): boolean {
    if (this.#evaluate(path, permission)) return true
    if (permission !== '*' || path.length === 0) return false
    const all = RESOURCES[resourceOf(path)!] ?? null
    return all !== null && all.every((one) => this.#evaluate(path, one))
  }

  /**
   * True only when everything that the other set grants is granted here, by what either identity
   * is said to be: nobody gives more than they hold (CONTRACT 1.8). Of a set that is narrowed one
   * list has to be covered whole: what only several of its lists together keep out counts as in.
   */
  coversAcl(other: Acl): boolean {
    if (this.everything) return true
    let list: Acl | null = other
    while (list !== null && !list.aces.every((ace) => this.#grantsToo(ace, other.attributes))) {
      list = list.#base
    }
    return list !== null && (this.#base === null || this.#base.coversAcl(other))
  }

  /** Whether this list grants all that an entry grants somebody with these attributes. */
  #grantsToo(ace: Ace, attributes: Attributes): boolean {
    if (this.#holds(ace)) return true
    const { attribute } = ace
    if (attribute === null) return false
    const values = valuesOf(attributes, attribute)
    // It opens nothing; whoever gives it a value is asked again.
    if (values.length === 0) return true
    const own = valuesOf(this.attributes, attribute)
    if (!values.every((value) => own.includes(value))) return false
    return this.aces.some((one) => one.attribute === attribute && isAbove(one, ace.path))
  }

  /** As `coversAce`, whatever a holder of the entry (of a role) is said to be. */
  coversForAnybody(ace: Ace): boolean {
    return this.coversAce({ ...ace, attribute: null })
  }
}

const valuesOf = (attributes: Attributes, name: string): Attributes[string] =>
  Object.hasOwn(attributes, name) ? attributes[name]! : []

/** The set of the owner: every resource and permission. */
export const OWNER_ACL = new Acl([{ attribute: null, path: [], permission: '*' }])

/** What a token may do: what its client has, cut to the scopes it asked for (CONTRACT 1.14). */
export function narrow(acl: Acl, scopes: readonly Ace[]): Acl {
  return new Acl(scopes, acl)
}

/** The set that grants what each of the lists grants: nothing without a list that can be read. */
export function aclOfLists(
  lists: readonly (readonly string[])[],
  attributes: Attributes = NO_ATTRIBUTES,
): Acl {
  let acl: Acl | null = null
  for (const list of lists.toReversed()) {
    const scope = parseScope(list.join(' '))
    acl = new Acl(scope.ok ? scope.aces : [], acl, attributes)
  }
  return acl ?? new Acl([])
}
